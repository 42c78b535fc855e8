//! The tasks of a connection's exchanges, and the queue of their events to the reader.

use std::future::Future;

use bytes::Bytes;
use oxmcp_protocol::RequestId;
use tokio::{select, sync::mpsc, task::AbortHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Error;

/// How many events wait for the reader. Beyond it the exchanges wait, and their servers with them: backpressure.
const MAX_EVENTS: usize = 16;

/// An event for the reader.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Bytes),
    /// One request failed.
    Failed(RequestId, Error),
    /// The connection is over.
    End(Error),
}

/// The way to spawn exchanges, and from them to the reader.
#[derive(Debug)]
pub(crate) struct Tasks {
    events: mpsc::Sender<Event>,
    /// Cancels all exchanges.
    cancel_all: CancellationToken,
    /// Set when events are not read any more, while exchanges go on.
    closing: CancellationToken,
}

impl Tasks {
    /// With the events, and a guard that cancels all exchanges when it is dropped.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Event>, DropGuard) {
        let (events, receiver) = mpsc::channel(MAX_EVENTS);
        let tasks = Self {
            events,
            cancel_all: CancellationToken::new(),
            closing: CancellationToken::new(),
        };
        let guard = tasks.cancel_all.clone().drop_guard();
        (tasks, receiver, guard)
    }

    /// Spawns an exchange, or a part of one that outlives it.
    pub(crate) fn spawn(&self, exchange: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let cancel_all = self.cancel_all.clone();
        let task = tokio::spawn(async move {
            cancel_all.run_until_cancelled(exchange).await;
        });
        task.abort_handle()
    }

    /// Tells the reader. Waits while the queue is full.
    pub(crate) async fn send_event(&self, event: Event) {
        select! {
            biased;
            () = self.closing.cancelled() => {}
            // The reader may be gone.
            _ = self.events.send(event) => {}
        }
    }

    /// Drops further events, so that no exchange waits for the reader.
    pub(crate) fn discard_events(&self) {
        self.closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{sync::watch, task::yield_now};

    use super::*;

    fn event(number: usize) -> Event {
        Event::Message(vec![b' '; number].into())
    }

    async fn next(events: &mut mpsc::Receiver<Event>) -> usize {
        match events.recv().await {
            Some(Event::Message(message)) => message.len(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_reader_is_told_by_exchanges_and_by_those_that_they_spawn() {
        let (tasks, mut events, _guard) = Tasks::new();
        let tasks = Arc::new(tasks);
        let inner = Arc::clone(&tasks);
        tasks.spawn(async move {
            inner.send_event(event(1)).await;
            let innermost = Arc::clone(&inner);
            inner.spawn(async move { innermost.send_event(event(2)).await });
        });
        assert_eq!((next(&mut events).await, next(&mut events).await), (1, 2));
    }

    #[tokio::test]
    async fn all_is_told_in_the_end_however_short_the_queue_is() {
        let (tasks, mut events, _guard) = Tasks::new();
        let tasks = Arc::new(tasks);
        let (give_up, given_up) = watch::channel(false);
        for number in 0..MAX_EVENTS * 3 {
            let (inner, mut given_up) = (Arc::clone(&tasks), given_up.clone());
            tasks.spawn(async move {
                // Every other gives up when it is asked.
                let given_up = given_up.wait_for(|it| *it && number % 2 == 1);
                select! {
                    biased;
                    _ = given_up => {}
                    () = inner.send_event(event(number)) => {}
                }
            });
        }
        yield_now().await;
        let mut told = vec![next(&mut events).await];
        give_up.send_replace(true);
        let later = (MAX_EVENTS..MAX_EVENTS * 3).step_by(2);
        let expected: Vec<_> = (0..MAX_EVENTS).chain(later).collect();
        while told.len() < expected.len() {
            told.push(next(&mut events).await);
        }
        told.sort_unstable();
        assert_eq!(told, expected);
    }

    #[tokio::test]
    async fn no_exchange_outlives_the_guard() {
        let (tasks, events, guard) = Tasks::new();
        let tasks = Arc::new(tasks);
        let kept = Arc::new(());
        let spawn = || {
            let (inner, kept) = (Arc::clone(&tasks), Arc::clone(&kept));
            tasks.spawn(async move {
                for _ in 0..=MAX_EVENTS {
                    inner.send_event(event(1)).await;
                }
                drop(kept);
            });
        };
        spawn();
        yield_now().await;
        spawn();
        drop(guard);
        spawn();
        while Arc::strong_count(&kept) > 1 {
            yield_now().await;
        }
        drop(events);
    }

    #[tokio::test]
    async fn no_exchange_waits_for_a_reader_while_closing() {
        let (tasks, _events, _guard) = Tasks::new();
        tasks.discard_events();
        for _ in 0..=MAX_EVENTS {
            tasks.send_event(event(1)).await;
        }
    }
}

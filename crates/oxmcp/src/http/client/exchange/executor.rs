//! The executor of a connection's exchanges, and the queue of their events to the reader.
//!
//! Exchanges have no tasks: the halves of the connection, which the session's driver uses, poll them. So an event reaches the
//! driver without a wake-up of another task.

use std::{
    collections::VecDeque,
    future::Future,
    mem,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, CatchUnwind},
    stream::FuturesUnordered,
};
use oxmcp_protocol::RequestId;
use tokio::sync::Semaphore;

use crate::{error::Error, sync::Mutex};

/// The maximum number of events that wait for the reader. A full queue stops the exchanges, and so slows their servers.
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

type BoxExchange = Pin<Box<dyn Future<Output = ()> + Send>>;
type Exchange = Abortable<CatchUnwind<AssertUnwindSafe<BoxExchange>>>;

/// The exchanges of a connection. All of them end when it is dropped.
pub(crate) struct Executor {
    running: FuturesUnordered<Exchange>,
    spawner: Arc<Spawner>,
}

/// The access to an executor, and from its exchanges to the reader.
///
/// Neither direction wakes a task: the executor looks at both queues each time that it is polled, before it waits.
pub(crate) struct Spawner {
    queues: Mutex<Queues>,
    /// A permit for each further event. Closed when events are no longer read, while exchanges continue.
    capacity: Semaphore,
}

#[derive(Default)]
struct Queues {
    spawned: Vec<Exchange>,
    events: VecDeque<Event>,
    /// Whether the executor is gone.
    is_over: bool,
}

impl Executor {
    pub(crate) fn new() -> (Self, Arc<Spawner>) {
        let spawner = Arc::new(Spawner {
            queues: Mutex::default(),
            capacity: Semaphore::new(MAX_EVENTS),
        });
        let executor = Self {
            running: FuturesUnordered::new(),
            spawner: Arc::clone(&spawner),
        };
        (executor, spawner)
    }

    /// The next event. Until there is one, the exchanges run.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(event) = self.spawner.next_event() {
            return Poll::Ready(event);
        }
        self.run(cx);
        match self.spawner.next_event() {
            Some(event) => Poll::Ready(event),
            None => Poll::Pending,
        }
    }

    /// Polls the exchanges that can make progress.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>) {
        loop {
            self.running
                .extend(self.spawner.queues.lock().spawned.drain(..));
            match self.running.poll_next_unpin(cx) {
                // The panic hook has reported the panic.
                Poll::Ready(Some(Ok(Err(_panic)))) => tracing::error!("an HTTP exchange panicked"),
                Poll::Ready(Some(_)) => {}
                _ if self.spawner.queues.lock().spawned.is_empty() => return,
                _ => {}
            }
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let spawned = {
            let mut queues = self.spawner.queues.lock();
            queues.is_over = true;
            mem::take(&mut queues.spawned)
        };
        // An exchange holds the spawner, whose queue would keep the exchange alive.
        drop(spawned);
    }
}

impl Spawner {
    /// Spawns an exchange, or a part of one that outlives it. After the end of the executor, the future is dropped.
    pub(crate) fn spawn(&self, exchange: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let exchange: BoxExchange = Box::pin(exchange);
        let (abort, registration) = AbortHandle::new_pair();
        // A panic ends one exchange, but not the driver.
        let exchange = AssertUnwindSafe(exchange).catch_unwind();
        let exchange = Abortable::new(exchange, registration);
        let mut queues = self.queues.lock();
        if !queues.is_over {
            queues.spawned.push(exchange);
        }
        abort
    }

    /// Sends an event to the reader. Waits while the queue is full.
    pub(crate) async fn send_event(&self, event: Event) {
        if let Ok(permit) = self.capacity.acquire().await {
            permit.forget();
            self.queues.lock().events.push_back(event);
        }
    }

    /// Drops further events, so that no exchange waits for the reader.
    pub(crate) fn discard_events(&self) {
        self.capacity.close();
    }

    fn next_event(&self) -> Option<Event> {
        let event = self.queues.lock().events.pop_front()?;
        self.capacity.add_permits(1);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{select, sync::watch};

    use super::*;

    fn event(number: usize) -> Event {
        Event::Message(vec![b' '; number].into())
    }

    async fn next(executor: &mut Executor) -> usize {
        match poll_fn(|cx| executor.poll_event(cx)).await {
            Event::Message(message) => message.len(),
            other => panic!("{other:?}"),
        }
    }

    /// Polls once.
    async fn run(executor: &mut Executor) {
        poll_fn(|cx| {
            executor.run(cx);
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn nested_exchanges_notify_the_reader() {
        let (mut executor, spawner) = Executor::new();
        let inner = Arc::clone(&spawner);
        spawner.spawn(async move {
            inner.send_event(event(1)).await;
            let innermost = Arc::clone(&inner);
            inner.spawn(async move { innermost.send_event(event(2)).await });
        });
        let executor = &mut executor;
        assert_eq!((next(executor).await, next(executor).await), (1, 2));
    }

    #[tokio::test]
    async fn short_queue_still_delivers_every_event() {
        let (mut executor, spawner) = Executor::new();
        let (give_up, given_up) = watch::channel(false);
        for number in 0..MAX_EVENTS * 3 {
            let (inner, mut given_up) = (Arc::clone(&spawner), given_up.clone());
            spawner.spawn(async move {
                // Every second exchange gives up when it is asked to.
                let given_up = given_up.wait_for(|it| *it && number % 2 == 1);
                select! {
                    biased;
                    _ = given_up => {}
                    () = inner.send_event(event(number)) => {}
                }
            });
        }
        run(&mut executor).await;
        let mut told = vec![next(&mut executor).await];
        give_up.send_replace(true);
        let later = (MAX_EVENTS..MAX_EVENTS * 3).step_by(2);
        let expected: Vec<_> = (0..MAX_EVENTS).chain(later).collect();
        while told.len() < expected.len() {
            told.push(next(&mut executor).await);
        }
        told.sort_unstable();
        assert_eq!(told, expected);
    }

    #[tokio::test]
    async fn no_exchange_outlives_the_executor() {
        let (mut executor, spawner) = Executor::new();
        let kept = Arc::new(());
        let spawn = || {
            let (inner, kept) = (Arc::clone(&spawner), Arc::clone(&kept));
            spawner.spawn(async move {
                for _ in 0..=MAX_EVENTS {
                    inner.send_event(event(1)).await;
                }
                drop(kept);
            });
        };
        spawn();
        run(&mut executor).await;
        spawn();
        drop(executor);
        spawn();
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[tokio::test]
    async fn no_exchange_waits_for_a_reader_while_closing() {
        let (_executor, spawner) = Executor::new();
        spawner.discard_events();
        for _ in 0..=MAX_EVENTS {
            spawner.send_event(event(1)).await;
        }
    }

    #[tokio::test]
    async fn abort_or_panic_ends_only_one_exchange() {
        let (mut executor, spawner) = Executor::new();
        let held = Arc::new(());
        let inner = Arc::clone(&held);
        let abort = spawner.spawn(async move {
            std::future::pending::<()>().await;
            drop(inner);
        });
        run(&mut executor).await;
        assert_eq!(Arc::strong_count(&held), 2);
        abort.abort();
        spawner.spawn(async { panic!("it is a bad exchange") });
        let inner = Arc::clone(&spawner);
        spawner.spawn(async move { inner.send_event(event(7)).await });
        assert_eq!(next(&mut executor).await, 7);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

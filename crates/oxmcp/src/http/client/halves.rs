//! The two halves of a connection to an endpoint.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use tokio::{select, time::timeout};

use crate::{
    debug::opaque_debug,
    error::Result,
    http::client::exchange::{
        executor::{Event, Executor},
        message::OutgoingMessage,
        shared::{Exchanges, MAX_UNACCEPTED},
    },
    sync::Mutex,
    transport::traits::{Frame, Messages, ReadHalf, WriteHalf},
};

/// The time for which closing waits until messages are accepted, and until a session that is being opened is open.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The executor, which both halves poll. It is dropped with the last of them.
type SharedExecutor = Arc<Mutex<Executor>>;

/// Reads the messages that a server sends to an [`Endpoint`](super::Endpoint).
///
/// The exchanges with the server run while this half reads or the other one writes. One task must use both, as
/// [`ReadHalf`] says: only the task that has polled last is woken.
pub struct EndpointReader {
    executor: SharedExecutor,
    current: Bytes,
}

/// Sends messages to the server of an [`Endpoint`](super::Endpoint). Closing it ends the session.
///
/// The task that uses the [`EndpointReader`] must use it, too.
pub struct EndpointWriter {
    exchanges: Arc<Exchanges>,
    executor: SharedExecutor,
}

pub(crate) fn halves(
    exchanges: Arc<Exchanges>,
    executor: Executor,
) -> (EndpointReader, EndpointWriter) {
    let executor = Arc::new(Mutex::new(executor));
    let reader = EndpointReader {
        executor: Arc::clone(&executor),
        current: Bytes::new(),
    };
    let writer = EndpointWriter {
        exchanges,
        executor,
    };
    (reader, writer)
}

/// Polls the executor until there is an event.
async fn next_event(executor: &SharedExecutor) -> Event {
    poll_fn(|cx| {
        let mut executor = executor.lock();
        executor.poll_event(cx)
    })
    .await
}

/// Polls the executor forever.
async fn run(executor: &SharedExecutor) {
    poll_fn::<(), _>(|cx| {
        let mut executor = executor.lock();
        executor.run(cx);
        Poll::Pending
    })
    .await;
}

impl ReadHalf for EndpointReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        match next_event(&self.executor).await {
            Event::Message(message) => {
                self.current = message;
                Ok(Some(Frame::Message(&self.current)))
            }
            Event::Failed(id, error) => Ok(Some(Frame::Failed { id, error })),
            Event::End(error) => Err(error),
        }
    }
}

impl WriteHalf for EndpointWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        for message in messages {
            match OutgoingMessage::read(message, &self.exchanges.mirror) {
                // The exchanges that this waits for must continue.
                Ok(message) => select! {
                    biased;
                    () = self.exchanges.start(message) => {}
                    () = run(&self.executor) => {}
                },
                Err((Some(id), error)) => self.exchanges.refuse(id, error),
                Err((None, error)) => return Err(error),
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let exchanges = &self.exchanges;
        exchanges.spawner.discard_events();
        let closing = async {
            // Messages that were sent before are accepted before the end, as far as possible.
            let _accepted = timeout(
                SETTLE_TIMEOUT,
                exchanges.unaccepted.acquire_many(MAX_UNACCEPTED),
            )
            .await;
            // A session that is being opened is the one to be ended.
            let _recovered = timeout(SETTLE_TIMEOUT, exchanges.recovering.lock()).await;
            exchanges.end_session(&exchanges.session()).await;
        };
        let closed = timeout(CLOSE_TIMEOUT, async {
            select! {
                biased;
                () = closing => {}
                () = run(&self.executor) => {}
            }
        });
        if closed.await.is_err() {
            tracing::debug!("timed out ending the session on the server");
        }
        Ok(())
    }
}

opaque_debug!(EndpointReader);

opaque_debug!(EndpointWriter);

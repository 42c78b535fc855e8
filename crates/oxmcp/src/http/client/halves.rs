//! The two halves of a connection to an endpoint.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::DropGuard;

use crate::{
    debug::opaque_debug,
    error::Result,
    http::client::exchange::{
        message::OutgoingMessage,
        shared::{Exchanges, MAX_UNACCEPTED},
        tasks::Event,
    },
    transport::traits::{Frame, Messages, ReadHalf, WriteHalf},
};

/// How long closing waits for messages to be accepted before it ends the session, and for a session that is being opened.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long closing may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the messages that a server sends to an [`Endpoint`](super::Endpoint).
pub struct EndpointReader {
    events: mpsc::Receiver<Event>,
    current: Bytes,
    /// Cancels all exchanges when both halves are dropped.
    _guard: Arc<DropGuard>,
}

/// Sends messages to the server of an [`Endpoint`](super::Endpoint). Closing it ends the session.
pub struct EndpointWriter {
    exchanges: Arc<Exchanges>,
    _guard: Arc<DropGuard>,
}

pub(super) fn halves(
    exchanges: Arc<Exchanges>,
    events: mpsc::Receiver<Event>,
    guard: DropGuard,
) -> (EndpointReader, EndpointWriter) {
    let guard = Arc::new(guard);
    let reader = EndpointReader {
        events,
        current: Bytes::new(),
        _guard: Arc::clone(&guard),
    };
    let writer = EndpointWriter {
        exchanges,
        _guard: guard,
    };
    (reader, writer)
}

impl ReadHalf for EndpointReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        match self.events.recv().await {
            Some(Event::Message(message)) => {
                self.current = message;
                Ok(Some(Frame::Message(&self.current)))
            }
            Some(Event::Failed(id, error)) => Ok(Some(Frame::Failed { id, error })),
            Some(Event::End(error)) => Err(error),
            None => Ok(None),
        }
    }
}

impl WriteHalf for EndpointWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        for message in messages {
            match OutgoingMessage::read(message, &self.exchanges.mirror) {
                Ok(message) => self.exchanges.start(message).await,
                Err((Some(id), error)) => self.exchanges.refuse(id, error),
                Err((None, error)) => return Err(error),
            }
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let exchanges = &self.exchanges;
        exchanges.tasks.discard_events();
        let closing = async {
            // Messages that were sent before are accepted before the end, as far as possible.
            let _accepted = timeout(
                SETTLE_TIMEOUT,
                exchanges.unaccepted.acquire_many(MAX_UNACCEPTED),
            )
            .await;
            // A session that is just being opened is the one to be ended.
            let _recovered = timeout(SETTLE_TIMEOUT, exchanges.recovering.lock()).await;
            exchanges.end_session(&exchanges.session()).await;
        };
        if timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::debug!("the server did not end the session in time");
        }
        Ok(())
    }
}

opaque_debug!(EndpointReader);

opaque_debug!(EndpointWriter);

//! The state that all exchanges with one server share.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::AbortHandle;
use http::{HeaderMap, HeaderValue};
use oxmcp_protocol::{RequestId, revision::Revision};
use tokio::sync::{Semaphore, watch};

use crate::{
    error::Error,
    http::{
        client::{
            exchange::{
                executor::{Event, Spawner},
                message::OutgoingMessage,
                requests::{RequestSender, Target},
                response,
                session::{Session, SessionSetup},
            },
            reconnect::retry::Reconnect,
        },
        names::PROTOCOL_VERSION,
    },
    sync::Mutex,
    transport::mirror::Mirror,
};

/// How many notifications and answers may be sent and not accepted yet: beyond it sending waits, so that a server that asks and
/// does not listen makes nothing grow.
pub(crate) const MAX_UNACCEPTED: u32 = 256;

/// The exchanges of one connection to an endpoint.
pub(crate) struct Exchanges {
    pub(crate) requests: RequestSender,
    pub(crate) spawner: Arc<Spawner>,
    pub(crate) reconnect: Reconnect,
    /// The longest message and the longest event that is read.
    pub(crate) max_message: usize,
    pub(crate) mirror: Mirror,
    /// Whether sessions keep a stream open for what belongs to no request.
    pub(crate) opens_standalone_stream: bool,
    /// Holds messages back until a session is open.
    pub(crate) barrier: Barrier,
    /// A permit for each notification and answer that is not accepted yet.
    pub(crate) unaccepted: Arc<Semaphore>,
    /// Held while a lost session is opened anew.
    pub(crate) recovering: tokio::sync::Mutex<()>,
    pub(in crate::http::client) state: Mutex<State>,
}

/// The mutable part.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) setup: SessionSetup,
    /// Where messages go in the transport of 2024-11-05.
    pub(crate) messages_2024: Option<Target>,
    /// The requests in flight.
    pub(crate) in_flight: BTreeMap<RequestId, InFlight>,
    /// The end of the stream by GET, for messages of the server that belong to no request.
    pub(crate) standalone_stream: Option<AbortHandle>,
    /// The revision of the last modern request. Messages that name none are of the same.
    pub(crate) modern: Option<Revision>,
    /// Whether a server has answered: from then on it is waited for when it cannot be reached.
    pub(crate) was_reached: bool,
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) abort: AbortHandle,
    pub(crate) is_modern: bool,
}

impl Exchanges {
    pub(crate) fn new(
        requests: RequestSender,
        spawner: Arc<Spawner>,
        reconnect: Reconnect,
        max_message: usize,
        mirror: Mirror,
    ) -> Self {
        Self {
            requests,
            spawner,
            reconnect,
            max_message,
            mirror,
            opens_standalone_stream: true,
            barrier: Barrier::new(),
            unaccepted: Arc::new(Semaphore::new(MAX_UNACCEPTED as usize)),
            recovering: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    pub(crate) fn session(&self) -> Session {
        self.state.lock().session.clone()
    }

    /// The headers of a message.
    pub(crate) fn headers(&self, message: &OutgoingMessage, session: &Session) -> HeaderMap {
        let mut headers = self.requests.post_headers.clone();
        match self.modern_revision(message, session) {
            Some(revision) => {
                let revision = HeaderValue::from_static(revision.as_str());
                headers.insert(PROTOCOL_VERSION, revision);
                for (name, value) in &message.mirrored {
                    headers.insert(name, value.clone());
                }
            }
            None => session.add_headers(&mut headers),
        }
        for (name, value) in &message.trace {
            headers.insert(name, value.clone());
        }
        headers
    }

    fn modern_revision(&self, message: &OutgoingMessage, session: &Session) -> Option<Revision> {
        if message.modern.is_some() {
            return message.modern;
        }
        let state = self.state.lock();
        // The transport of 2024-11-05 has no header for it.
        let is_legacy =
            session.revision.is_some() || message.is("initialize") || state.messages_2024.is_some();
        state.modern.filter(|_| !is_legacy)
    }

    /// Ends a session on the server, where it has an id.
    pub(crate) async fn end_session(&self, session: &Session) {
        let deleting = self.requests.delete(|headers| session.add_headers(headers));
        if session.id.is_some()
            && let Ok(response) = deleting.await
        {
            response::discard(response.into_body()).await;
        }
    }

    /// Ends the connection.
    pub(crate) async fn end(&self, error: Error) {
        self.spawner.send_event(Event::End(error)).await;
    }
}

/// A barrier that messages wait at while it is closed, by one task or several.
#[derive(Debug)]
pub(crate) struct Barrier(watch::Sender<usize>);

/// Keeps a barrier closed until it is dropped.
#[derive(Debug)]
pub(crate) struct ClosedBarrier(watch::Sender<usize>);

impl Barrier {
    fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn close(&self) -> ClosedBarrier {
        self.0.send_modify(|closed| *closed += 1);
        ClosedBarrier(self.0.clone())
    }

    /// Waits until it is open. Cancel safe.
    pub(crate) async fn pass(&self) {
        if *self.0.borrow() > 0 {
            // Its sender is here, so the channel is not closed.
            let _ = self.0.subscribe().wait_for(|closed| *closed == 0).await;
        }
    }
}

impl Drop for ClosedBarrier {
    fn drop(&mut self) {
        self.0.send_modify(|closed| *closed -= 1);
    }
}

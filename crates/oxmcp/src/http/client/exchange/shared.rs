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
    transport::mirror::HeaderMirror,
};

/// The maximum number of notifications and answers that the server has not accepted yet. Beyond it, sending waits, so that a
/// server that sends requests and does not accept answers causes no unbounded growth.
pub(crate) const MAX_UNACCEPTED: u32 = 256;

/// The exchanges of one connection to an endpoint.
pub(crate) struct Exchanges {
    pub(crate) requests: RequestSender,
    pub(crate) spawner: Arc<Spawner>,
    pub(crate) reconnect: Reconnect,
    /// The maximum length of a message and of an event that is read, in bytes.
    pub(crate) max_message: usize,
    pub(crate) mirror: HeaderMirror,
    /// Whether sessions keep a stream open for messages that belong to no request.
    pub(crate) opens_standalone_stream: bool,
    /// Holds messages back until a session is open.
    pub(crate) barrier: Barrier,
    /// A permit for each notification and answer that is not accepted yet.
    pub(crate) unaccepted: Arc<Semaphore>,
    /// Held while a lost session is replaced.
    pub(crate) recovering: tokio::sync::Mutex<()>,
    pub(crate) doubts: Doubts,
    pub(crate) state: Mutex<State>,
}

/// The mutable state of the exchanges.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) setup: SessionSetup,
    /// The target of messages in the transport of 2024-11-05.
    pub(crate) messages_2024: Option<Target>,
    /// The requests in flight.
    pub(crate) in_flight: BTreeMap<RequestId, InFlight>,
    /// The handle that ends the GET stream, for messages of the server that belong to no request.
    pub(crate) standalone_stream: Option<AbortHandle>,
    /// The revision of the last modern request. It applies also to messages that name none.
    pub(crate) modern: Option<Revision>,
    /// Whether the server has answered: from then on, sending waits for it when it cannot be reached.
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
        mirror: HeaderMirror,
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
            doubts: Doubts::default(),
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
        // The transport of 2024-11-05 has no header for the revision.
        let is_legacy =
            session.revision.is_some() || message.is("initialize") || state.messages_2024.is_some();
        state.modern.filter(|_| !is_legacy)
    }

    /// Ends a session on the server, if the session has an id.
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

/// The doubt whether the server still knows the session, after a refusal that gives no reason. Another session is then opened once,
/// and not again before a request has been answered: a server that refuses everything would get sessions without end.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<Option<u64>>);

impl Doubts {
    /// Begins to doubt the session of this generation. Returns whether another session may be opened in its place.
    pub(crate) fn begin(&self, generation: u64) -> bool {
        // Requests of one session may be refused at the same time.
        *self.0.lock().get_or_insert(generation) == generation
    }

    /// Ends the doubt, as a request was answered.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }
}

/// A barrier at which messages wait while one task or several keep it closed.
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

    /// Waits until the barrier is open. Cancel safe.
    pub(crate) async fn pass(&self) {
        if *self.0.borrow() > 0 {
            // `self` holds the sender, so the channel is not closed.
            let _ = self.0.subscribe().wait_for(|closed| *closed == 0).await;
        }
    }
}

impl Drop for ClosedBarrier {
    fn drop(&mut self) {
        self.0.send_modify(|closed| *closed -= 1);
    }
}

//! What all exchanges of one connection share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::AbortHandle;
use http::{HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use crate::http::client::exchange::barrier::Gate;
use crate::http::client::exchange::engine::{Event, Inlet};
use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::requests::{Target, Wire};
use crate::http::client::exchange::response;
use crate::http::client::exchange::session::{Restore, Session};
use crate::http::client::reconnect::retry::Reconnect;
use crate::{
    Error, Revision, http::names::PROTOCOL_VERSION, jsonrpc::RequestId, transport::Mirror,
};

/// How many notifications and answers may be on their way: beyond it what is to be sent waits, so that a server that asks
/// and does not listen makes nothing grow.
pub(crate) const UNTAKEN: u32 = 256;

/// A connection.
pub(crate) struct Link {
    pub(crate) wire: Wire,
    pub(crate) inlet: Inlet,
    pub(crate) reconnect: Reconnect,
    /// The longest message and the longest event that is read.
    pub(crate) max_message: usize,
    /// What of messages their headers repeat.
    pub(crate) mirror: Mirror,
    /// What comes first in a session.
    pub(crate) gate: Gate,
    /// One place for each notification and answer on its way.
    pub(crate) untaken: Arc<Semaphore>,
    /// Held by whoever opens a session anew.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// What changes while a connection lasts.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) session: Session,
    pub(crate) restore: Restore,
    /// Where messages go by the rules of 2024-11-05.
    pub(crate) messages_2024: Option<Target>,
    /// The requests that run.
    pub(crate) calls: BTreeMap<RequestId, Running>,
    /// The stream on which the server says what belongs to no request.
    pub(crate) listening: Option<AbortHandle>,
    /// The revision of the modern requests that were made. What does not name it itself is of the same.
    pub(crate) modern: Option<Revision>,
    /// Whether a server has answered: from then on it is worth to wait for it.
    pub(crate) reached: bool,
}

/// A request that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) abort: AbortHandle,
    pub(crate) modern: bool,
}

impl Link {
    pub(crate) fn new(wire: Wire, inlet: Inlet, reconnect: Reconnect, max_message: usize) -> Self {
        Self {
            wire,
            inlet,
            reconnect,
            max_message,
            mirror: Mirror::new(),
            gate: Gate::new(),
            untaken: Arc::new(Semaphore::new(UNTAKEN as usize)),
            renewing: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self) -> Session {
        self.state().session.clone()
    }

    /// The headers of a message.
    pub(crate) fn headers(&self, message: &Outgoing, session: &Session) -> HeaderMap {
        if message.modern().is_some() {
            return message.about.headers.clone();
        }
        if session.revision.is_some() {
            return session.posted.as_ref().clone();
        }
        let mut headers = self.wire.posted.clone();
        let revision = {
            let state = self.state();
            // The transport of 2024-11-05 has no such header.
            let is_legacy = message.is("initialize") || state.messages_2024.is_some();
            state.modern.filter(|_| !is_legacy)
        };
        match revision {
            Some(revision) => {
                let revision = HeaderValue::from_static(revision.as_str());
                headers.insert(PROTOCOL_VERSION, revision);
            }
            None => session.add_headers(&mut headers),
        }
        headers
    }

    /// Tells that a request is not sent.
    pub(crate) fn refuse(&self, id: RequestId, error: Error) {
        let inlet = self.inlet.clone();
        // Whoever writes here reads, too, and must not wait for itself.
        self.inlet.begin(async move {
            inlet.tell(Event::Failed(id, error)).await;
        });
    }

    /// Ends a session on the server, where it has an id.
    pub(crate) async fn leave(&self, session: &Session) {
        let leave = self.wire.delete(|headers| session.add_headers(headers));
        if session.id.is_some()
            && let Ok(response) = leave.await
        {
            response::discard(response.into_body()).await;
        }
    }

    /// Ends the connection.
    pub(crate) async fn end(&self, error: Error) {
        self.inlet.tell(Event::End(error)).await;
    }
}

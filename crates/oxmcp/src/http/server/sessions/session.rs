//! A session that `initialize` has opened.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use oxmcp_protocol::Revision;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    quota::{Evictable, EvictionEntry, QuotaPermit},
    shared::SharedSession,
    streams::Streams,
};
use crate::{
    debug::opaque_debug,
    error::Result,
    server::ServerRole,
    session::{
        connection::{Caller, Connection},
        driver::budget::Charge,
        sealing::random,
        task::{Latch, after},
    },
    sync::Mutex,
    transport::principal::Principal,
};

/// The maximum number of bytes that wait for a client without a GET stream. Few clients ever open one.
const MAX_UNSENT: usize = 64 << 10;

/// A session that `initialize` has opened. Its connection has no driver: each request has a branch of the connection, and messages
/// outside requests wait in the connection's outbox for the stream that the client opens with GET.
pub(crate) struct Session {
    id: Arc<str>,
    principal: Option<Arc<str>>,
    /// The session as other nodes know it, if there are any.
    shared: OnceLock<Arc<dyn SharedSession>>,
    connection: Arc<Connection>,
    peer: Arc<ServerRole>,
    pub(crate) streams: Streams,
    /// Set when the session's streams end because its client must find another node.
    leaving: Latch,
    activity: Mutex<Activity>,
    _tracked: TaskTrackerToken,
}

struct Activity {
    /// The number of requests in flight and of open streams.
    in_use: usize,
    /// The time at which that number became 0, initially the time at which the session was opened.
    idle_since: Instant,
    /// Set until the first message after `initialize`.
    evictable: Option<EvictionEntry<Session>>,
    /// `None` after another session got the permit.
    permit: Option<QuotaPermit>,
    /// The charge for the stored data about the client.
    charge: Option<Charge>,
}

impl Session {
    /// Creates a session that `initialize` may open, for the caller of that request.
    pub(crate) fn new(
        id: Arc<str>,
        peer: Arc<ServerRole>,
        caller: &Caller,
        permit: QuotaPermit,
        tracked: TaskTrackerToken,
    ) -> Arc<Self> {
        let limits = Arc::clone(&peer.server().features().limits);
        let max_unsent = limits.max_unsent_bytes.min(MAX_UNSENT);
        let connection = Connection::trunk_of(Arc::clone(&peer) as _, limits, max_unsent);
        // Until the client opens a stream.
        connection.outbox.is_for_later();
        Arc::new(Self {
            id,
            principal: caller.principal.as_ref().map(Principal::shared),
            shared: OnceLock::new(),
            connection,
            peer,
            streams: Streams::default(),
            leaving: Latch::default(),
            activity: Mutex::new(Activity {
                in_use: 0,
                idle_since: Instant::now(),
                evictable: None,
                permit: Some(permit),
                charge: None,
            }),
            _tracked: tracked,
        })
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// Whether the session belongs to the principal of a request.
    pub(crate) fn belongs_to(&self, principal: Option<&str>) -> bool {
        self.principal.as_deref() == principal
    }

    /// The negotiated revision. `None` if `initialize` failed.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.peer
            .legacy_session()
            .client()
            .map(|peer| peer.revision)
    }

    /// The server's role in the session.
    pub(crate) fn peer(&self) -> &Arc<ServerRole> {
        &self.peer
    }

    /// A branch of the connection for a request, with its own outbox.
    pub(crate) fn branch(&self, caller: Caller) -> Arc<Connection> {
        self.connection.branch(caller)
    }

    /// The session as other nodes know it. `None` if only this node has it.
    pub(crate) fn shared(&self) -> Option<&Arc<dyn SharedSession>> {
        self.shared.get()
    }

    /// Shares the session with other nodes from now on.
    pub(crate) fn share(&self, shared: Arc<dyn SharedSession>) {
        // A session is opened only once.
        let _ = self.shared.set(shared);
    }

    /// Keeps the session in use until the returned guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> SessionGuard {
        let mut activity = self.activity.lock();
        activity.in_use += 1;
        let evictable = activity.evictable.take();
        drop(activity);
        drop(evictable);
        SessionGuard(Arc::clone(self))
    }

    /// Charges the stored data about the client to the budget when it is known. Returns false if the budget is used up.
    pub(crate) fn charge_client(&self) -> bool {
        let Some(budget) = self.connection.outbox.budget() else {
            return true;
        };
        let mut charge = budget.charge(0);
        let has_room = charge.grow(self.peer.legacy_session().client_bytes());
        self.activity.lock().charge = Some(charge);
        has_room
    }

    /// Makes the session evictable until it is first used.
    pub(crate) fn set_evictable(&self, evictable: EvictionEntry<Self>) {
        self.activity.lock().evictable = Some(evictable);
    }

    /// Waits until no request is in flight here, and then ends the GET stream: the client reopens it on another node. Cancel safe.
    pub(crate) async fn settle(&self) {
        self.connection.in_flight().settled().await;
        self.leave();
    }

    /// Ends the streams outside requests from now on.
    pub(crate) fn leave(&self) {
        self.leaving.set();
    }

    /// Waits until such streams end. Cancel safe.
    pub(crate) async fn leaving(&self) {
        self.leaving.wait().await;
    }

    /// Closes the session in the background.
    pub(crate) fn begin_close(&self) {
        self.connection.begin_close();
    }

    /// The time at which the session expires without further use. `None` while it is in use.
    pub(crate) fn expires_at(&self, idle: Duration) -> Option<Instant> {
        let activity = self.activity.lock();
        (activity.in_use == 0).then(|| after(activity.idle_since, idle))
    }
}

impl Evictable for Session {
    fn evict(&self) -> bool {
        let mut activity = self.activity.lock();
        let evictable = activity.evictable.take();
        let permit = evictable.as_ref().and_then(|_| activity.permit.take());
        drop(activity);
        let is_evicted = permit.is_some();
        if is_evicted {
            tracing::debug!(session = %self.id, "evicting unused session");
            self.begin_close();
        }
        is_evicted
    }
}

/// The ID of a new session: 128 random bits.
pub(crate) fn new_id() -> Result<Arc<str>> {
    let random = random::<16>()?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)).into())
}

/// Whether a text has the form of a session ID. Other texts are never looked up in a store.
pub(crate) fn is_id(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 32 && text.bytes().all(is_hex)
}

/// A guard that keeps a session in use until it is dropped.
#[derive(Debug)]
pub(crate) struct SessionGuard(Arc<Session>);

impl Deref for SessionGuard {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock();
        activity.in_use -= 1;
        activity.idle_since = Instant::now();
    }
}

opaque_debug!(Session, |it| { connection: it.connection });

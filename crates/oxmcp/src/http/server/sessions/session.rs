//! Session that `initialize` opened.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use oxmcp_protocol::Revision;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    nodes::Forwarder,
    persistence::{Persistence, SessionSettings},
    quota::{Evict, Evictable, QuotaPermit},
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
        task::after,
    },
    store::SessionRecord,
    sync::Mutex,
    transport::principal::Principal,
};

/// How many bytes may wait for a client of a session that gets no stream of its own: few of them ever do.
const MAX_UNSENT: usize = 64 << 10;

/// A session that `initialize` opened. No driver reads and writes its connection: each request brings its own branch of it, and
/// what belongs to no request waits in the connection's outbox for the stream that the client gets by GET.
pub(in crate::http::server) struct Session {
    id: Arc<str>,
    principal: Option<Arc<str>>,
    /// Its record in a store, where there is one.
    persistence: OnceLock<Box<Persistence>>,
    /// Takes what belongs to no request to whichever node sends it, where there are others.
    forwarder: OnceLock<Arc<Forwarder>>,
    connection: Arc<Connection>,
    peer: Arc<ServerRole>,
    pub(super) streams: Streams,
    activity: Mutex<Activity>,
    _tracked: TaskTrackerToken,
}

struct Activity {
    /// How many requests are answered, and streams open.
    in_use: usize,
    /// When that was none, or else when the session was opened.
    idle_since: Instant,
    /// Set while nothing has come after `initialize`.
    evictable: Option<Evictable<Session>>,
    /// `None` once it was given to another session.
    permit: Option<QuotaPermit>,
    /// What is kept of what the client has said of itself.
    charge: Option<Charge>,
}

impl Session {
    /// A session that `initialize` may open, for the caller of that request.
    pub(super) fn new(
        id: Arc<str>,
        peer: Arc<ServerRole>,
        caller: &Caller,
        permit: QuotaPermit,
        tracked: TaskTrackerToken,
    ) -> Arc<Self> {
        let limits = Arc::clone(&peer.server().features().limits);
        let max_unsent = limits.max_unsent_bytes.min(MAX_UNSENT);
        let connection = Connection::trunk_of(Arc::clone(&peer) as _, limits, max_unsent);
        // Until the client gets a stream.
        connection.outbox.is_for_later();
        Arc::new(Self {
            id,
            principal: caller.principal.as_ref().map(Principal::shared),
            persistence: OnceLock::new(),
            forwarder: OnceLock::new(),
            connection,
            peer,
            streams: Streams::default(),
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

    /// Keeps its streams and the ids of the server's own requests apart from those of the nodes that had the session before: a
    /// client may come back to a stream of theirs, or answer what they have asked.
    pub(super) fn set_apart(&self) -> Result<()> {
        let (name, number) = (random::<4>()?, random::<4>()?);
        self.streams
            .set_prefix(&format!("{:08x}", u32::from_be_bytes(name)));
        // Far from each other, and below 2^53: not every client can read what is beyond.
        let first = (i64::from(u32::from_le_bytes(number)) + 1) << 20;
        self.connection.calls().count_from(first);
        Ok(())
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(super) fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// Whether it belongs to the principal of a request.
    pub(super) fn belongs_to(&self, principal: Option<&str>) -> bool {
        self.principal.as_deref() == principal
    }

    /// The revision that was agreed on. `None` where `initialize` failed.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.peer
            .legacy_session()
            .client()
            .map(|peer| peer.revision)
    }

    /// The server at its end of the session.
    pub(in crate::http::server) fn peer(&self) -> &Arc<ServerRole> {
        &self.peer
    }

    /// A branch of its connection for a request, with an outbox of its own.
    pub(in crate::http::server) fn branch(&self, caller: Caller) -> Arc<Connection> {
        self.connection.branch(caller)
    }

    /// Its record in a store, where there is one.
    pub(super) fn persistence(&self) -> Option<&Persistence> {
        self.persistence.get().map(|it| &**it)
    }

    /// Lets it be saved from here on.
    pub(super) fn persist(&self, persistence: Persistence) {
        // It is opened once.
        let _ = self.persistence.set(Box::new(persistence));
    }

    /// Lets other nodes send what belongs to no request. Returns false where they did before.
    pub(super) fn forward_by(&self, forwarder: Arc<Forwarder>) -> bool {
        self.connection.note_shared();
        self.forwarder.set(forwarder).is_ok()
    }

    /// Takes what belongs to no request to whichever node sends it, where there are others.
    pub(super) fn forwarder(&self) -> Option<&Arc<Forwarder>> {
        self.forwarder.get()
    }

    /// Whether its streams are those of other nodes, too.
    pub(super) fn is_shared(&self) -> bool {
        self.forwarder.get().is_some()
    }

    /// What has changed in it since it was opened. None once its connection was cut: it watches nothing any more here, but may go on
    /// elsewhere.
    pub(super) fn settings(&self) -> Option<SessionSettings> {
        let settings = SessionSettings {
            initialized: self.peer.legacy_session().initialized_client().is_some(),
            log_level: self.peer.log_filter().level(),
            watched: self.peer.subscribed_uris(),
        };
        (!self.connection.is_cut()).then_some(settings)
    }

    /// The record of a session that was opened by these params of `initialize`.
    pub(super) fn new_record(&self, initialize: Box<RawValue>) -> Option<SessionRecord> {
        let mut record = SessionRecord::new(initialize, self.revision()?);
        record.principal = self.principal.as_ref().map(|it| it.as_ref().to_owned());
        Some(record)
    }

    /// Keeps the session in use until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> SessionGuard {
        let mut activity = self.activity.lock();
        activity.in_use += 1;
        let evictable = activity.evictable.take();
        drop(activity);
        drop(evictable);
        SessionGuard(Arc::clone(self))
    }

    /// Counts what is kept of its client, once that is known. Returns false where there is no room.
    pub(super) fn charge_client(&self) -> bool {
        let Some(budget) = self.connection.outbox.budget() else {
            return true;
        };
        let mut charge = budget.charge(0);
        let has_room = charge.grow(self.peer.legacy_session().client_bytes());
        self.activity.lock().charge = Some(charge);
        has_room
    }

    /// Lets it be evicted until it is used for the first time.
    pub(super) fn set_evictable(&self, evictable: Evictable<Self>) {
        self.activity.lock().evictable = Some(evictable);
    }

    /// Closes it in the background.
    pub(super) fn begin_close(&self) {
        self.connection.begin_close();
    }

    /// When it expires if nothing happens. `None` while it is in use.
    pub(super) fn expires_at(&self, idle: Duration) -> Option<Instant> {
        let activity = self.activity.lock();
        (activity.in_use == 0).then(|| after(activity.idle_since, idle))
    }
}

impl Evict for Session {
    fn evict(&self) -> bool {
        let mut activity = self.activity.lock();
        let evictable = activity.evictable.take();
        let permit = evictable.as_ref().and_then(|_| activity.permit.take());
        drop(activity);
        let is_evicted = permit.is_some();
        if is_evicted {
            tracing::debug!(session = %self.id, "an unused session is evicted");
            self.begin_close();
        }
        is_evicted
    }
}

/// The id of a new session: 128 random bits.
pub(in crate::http::server) fn new_id() -> Result<Arc<str>> {
    let random = random::<16>()?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)).into())
}

/// Whether a text has the form of a session id. No other gets anywhere near a store.
pub(in crate::http::server) fn is_id(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 32 && text.bytes().all(is_hex)
}

/// Keeps a session in use until it is dropped.
#[derive(Debug)]
pub(super) struct SessionGuard(Arc<Session>);

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

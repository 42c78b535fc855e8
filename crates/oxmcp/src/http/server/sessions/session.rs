//! A session that `initialize` opened.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use http::Response;
use tokio::time::Instant;

use crate::{
    Error, Result, Revision, Server,
    http::server::{
        ResponseBody, answer, ending, endpoint::StreamableHttp, kept::Kept, open::Entered,
        places::Place, streams::Streams, unused::IsUnused,
    },
    server::{ServerPeer, ServerSession, random},
    session::{Connection, Origin, after},
};

/// How many bytes may wait for a client of a session that gets no stream of its own: few of them ever do.
const MAX_WAITING: usize = 64 << 10;

/// A session that `initialize` opened. Nobody drives its connection: each request brings its own branch of it, and what
/// belongs to no request waits in the connection's outbox for the stream that the client gets by GET.
pub(super) struct Session {
    id: Box<str>,
    principal: Option<Arc<str>>,
    /// Where it is kept, if it is.
    kept: OnceLock<Box<Kept>>,
    connection: Arc<Connection>,
    peer: Arc<ServerPeer>,
    pub(super) streams: Streams,
    activity: Mutex<Activity>,
    _open: Entered,
}

struct Activity {
    /// How many requests are answered, and streams open.
    open: usize,
    /// When that was none, or else when the session was opened.
    last: Instant,
    /// That nothing has come after `initialize`.
    unused: Option<IsUnused>,
    /// `None` once it was given to another.
    place: Option<Place>,
}

/// A session that is being made. Dropped before it has begun, as where the client goes away, it ends: something of it may run
/// or be watched already.
pub(super) struct Unbegun {
    session: Arc<Session>,
    is_begun: bool,
}

impl Deref for Unbegun {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Unbegun {
    fn drop(&mut self) {
        if !self.is_begun {
            self.session.connection.end();
        }
    }
}

impl Session {
    /// A session that `initialize` may open, for whom the request comes from.
    ///
    /// # Errors
    /// How it is refused where there is no room for it.
    pub(super) fn unbegun(
        endpoint: &StreamableHttp,
        server: Server,
        id: Box<str>,
        origin: &Origin,
    ) -> Result<Unbegun, Box<Response<ResponseBody>>> {
        let place = enter(endpoint, origin)?;
        let limits = Arc::clone(&server.features().limits);
        let max_unsent = limits.max_unsent_bytes.min(MAX_WAITING);
        let peer = ServerPeer::new(server);
        let connection = Connection::trunk_of(Arc::clone(&peer) as _, limits, max_unsent);
        // Until the client gets a stream.
        connection.outbox.is_for_later();
        let session = Arc::new(Self {
            id,
            principal: origin.principal.clone(),
            kept: OnceLock::new(),
            connection,
            peer,
            streams: Streams::default(),
            activity: Mutex::new(Activity {
                open: 0,
                last: Instant::now(),
                unused: None,
                place: Some(place),
            }),
            _open: endpoint.state.sessions.open(),
        });
        Ok(Unbegun {
            session,
            is_begun: false,
        })
    }

    /// Lets its streams and the ids of the server's own requests be others than those of the nodes that had the session
    /// before: a client may come back to a stream of theirs, or answer what they have asked.
    pub(super) fn set_apart(&self) -> Result<()> {
        let (name, number) = (random::<4>()?, random::<4>()?);
        self.streams
            .set_apart(&data_encoding::HEXLOWER.encode(&name));
        // Far from each other, and below 2^53: not every client can read what is beyond.
        let first = (i64::from(u32::from_le_bytes(number)) + 1) << 20;
        self.connection.calls().count_from(first);
        Ok(())
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(super) fn principal(&self) -> Option<&Arc<str>> {
        self.principal.as_ref()
    }

    /// Where it is kept, if it is.
    pub(super) fn kept(&self) -> Option<&Kept> {
        self.kept.get().map(|kept| &**kept)
    }

    /// Lets it be kept.
    pub(super) fn keep(&self, kept: Kept) {
        // It is opened once.
        let _ = self.kept.set(Box::new(kept));
    }

    /// Whether it belongs to whom a request comes from.
    pub(super) fn belongs_to(&self, principal: Option<&str>) -> bool {
        self.principal.as_deref() == principal
    }

    /// The revision that was agreed on. `None` where `initialize` failed.
    pub(super) fn revision(&self) -> Option<Revision> {
        self.peer.callers().legacy().map(|peer| peer.revision)
    }

    /// The server at its end of the session.
    pub(super) fn peer(&self) -> &ServerPeer {
        &self.peer
    }

    /// What belongs to one request goes to an outbox of its own.
    pub(super) fn branch(&self, origin: Origin) -> Arc<Connection> {
        self.connection.branch(origin)
    }

    /// The session lasts at least until what this returns is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> InUse {
        let mut activity = self.lock();
        activity.open += 1;
        let unused = activity.unused.take();
        drop(activity);
        drop(unused);
        InUse(Arc::clone(self))
    }

    /// It may give way to another until it is used for the first time.
    pub(super) fn is_unused(&self, unused: IsUnused) {
        self.lock().unused = Some(unused);
    }

    /// Ends the session in favour of another, which gets its place at once, unless it was used meanwhile.
    pub(super) fn give_way(&self) {
        let mut activity = self.lock();
        let unused = activity.unused.take();
        let place = unused.as_ref().and_then(|_| activity.place.take());
        drop(activity);
        if place.is_some() {
            tracing::debug!(session = self.id(), "a session that nobody used gives way");
            self.begin_close();
        }
    }

    /// Ends it in the background.
    pub(super) fn begin_close(&self) {
        self.connection.begin_close();
    }

    /// Until when it lasts if nothing happens. `None` while something is open.
    pub(super) fn lasts_until(&self, idle: Duration) -> Option<Instant> {
        let activity = self.lock();
        (activity.open == 0).then(|| after(activity.last, idle))
    }

    fn lock(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a session that was opened in its place, and sees it to its end. Where there is one already that somebody has made
/// meanwhile, that is the one.
pub(super) fn begin(endpoint: &StreamableHttp, mut unbegun: Unbegun) -> Arc<Session> {
    let session = Arc::clone(&unbegun);
    if let Err(other) = endpoint.state.sessions.insert(&session) {
        return other;
    }
    unbegun.is_begun = true;
    let handle = ServerSession::new(Arc::clone(&session.connection), Arc::clone(&session.peer));
    session.peer.server().remember(&handle);
    ending::watch(endpoint, &session);
    if endpoint.state.closing.is_set() {
        session.begin_close();
    }
    session
}

/// What a store fails to do is no matter of the client.
pub(super) fn log(done: Result<()>) {
    if let Err(error) = done {
        tracing::warn!(%error, "a store failed");
    }
}

/// Makes room for one more session, for whom it is.
///
/// # Errors
/// How it is refused where there is none.
fn enter(endpoint: &StreamableHttp, origin: &Origin) -> Result<Place, Box<Response<ResponseBody>>> {
    let limits = &endpoint.settings.limits;
    let entered = endpoint
        .state
        .sessions
        .enter(origin.principal.as_ref(), limits);
    entered.map_err(|full| {
        let (status, why) = full.why(limits);
        Box::new(answer::refuse(status, None, &Error::internal(why)))
    })
}

/// 128 random bits.
pub(super) fn new_id() -> Result<Box<str>> {
    let random = random::<16>()?;
    Ok(data_encoding::HEXLOWER.encode(&random).into())
}

/// Whether this is the id of a session as they are made. No other gets anywhere near a store.
pub(super) fn is_id(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 32 && text.bytes().all(is_hex)
}

/// Something of a session is open.
#[derive(Debug)]
pub(super) struct InUse(Arc<Session>);

impl Deref for InUse {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut activity = self.0.lock();
        activity.open -= 1;
        activity.last = Instant::now();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

//! The lifecycle of sessions: how they open, and how the client, the server, the endpoint or the idle timeout ends them.
//!
//! Sessions do not have their own tasks or timers: there may be thousands, most of them inactive. One task expires the idle ones.

use std::{
    mem,
    ops::Deref,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{session::Session, shared::renew, stream_writer::log};
use crate::{
    error::Error,
    http::server::{
        endpoint::{State, StreamableHttp},
        response::{self, Refused},
        settings::Settings,
    },
    server::{Server, ServerRole, ServerSession},
    session::{
        connection::Caller,
        task::{after, spawn, spawn_on, spawn_polled},
    },
    transport::principal::Principal,
};

/// The number of sweeps within the idle timeout. An idle session may last longer by one interval.
const SWEEPS_PER_IDLE: u32 = 64;
/// The minimum interval between two sweeps, however short the idle timeout is.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum time that the sweeper stays without sessions.
const SWEEPER_LINGERS: Duration = Duration::from_secs(1);

/// A session that is being opened. Dropping it before it is open, as when the client disconnects, ends the session: handlers may
/// already be running, and resources may be watched.
pub(crate) struct UnopenedSession {
    session: Arc<Session>,
    /// The sessions that were evicted to make space.
    evicted: Vec<Arc<Session>>,
    is_open: bool,
}

impl UnopenedSession {
    /// Creates a session for the caller of a request.
    ///
    /// # Errors
    /// The response that refuses the request, if the quota is exceeded.
    pub(crate) fn new(
        endpoint: &StreamableHttp,
        server: Server,
        id: Arc<str>,
        caller: &Caller,
    ) -> Result<Self, Refused> {
        let limits = &endpoint.settings.limits;
        let sessions = &endpoint.state.sessions;
        let permit = sessions.acquire(
            caller.principal.as_ref().map(Principal::shared).as_ref(),
            limits,
        );
        let (permit, evicted) = permit.map_err(|exceeded| {
            let (status, why) = exceeded.why(limits);
            response::refuse(status, None, &Error::internal(why))
        })?;
        let peer = if endpoint.settings.json_only {
            ServerRole::answers_only(server)
        } else {
            ServerRole::new(server)
        };
        let session = Session::new(id, peer, caller, permit, sessions.track());
        let outbox = &session.connection().outbox;
        outbox.count_in(&endpoint.state.budget, false);
        Ok(Self {
            session,
            evicted,
            is_open: false,
        })
    }

    /// Takes the sessions that were evicted to make space.
    pub(crate) fn take_evicted(&mut self) -> Vec<Arc<Session>> {
        mem::take(&mut self.evicted)
    }

    /// Opens the session. If another request has restored the same session in the meantime, returns that one.
    pub(crate) fn open(mut self, endpoint: &StreamableHttp) -> Arc<Session> {
        let session = Arc::clone(&self.session);
        if let Err(other) = endpoint.state.sessions.insert(&session) {
            return other;
        }
        self.is_open = true;
        let handle =
            ServerSession::new(Arc::clone(session.connection()), Arc::clone(session.peer()));
        session.peer().server().add_connection(handle.connection());
        end_when_closing(endpoint, &session);
        let sessions = &endpoint.state.sessions;
        sessions.ensure_sweeper(|| sweep(endpoint.clone()));
        if endpoint.state.closing.is_set() {
            session.leave();
        }
        session
    }
}

impl Deref for UnopenedSession {
    type Target = Arc<Session>;

    fn deref(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for UnopenedSession {
    fn drop(&mut self) {
        if !self.is_open {
            self.session.connection().end();
        }
    }
}

/// A weak reference to an endpoint.
pub(crate) struct WeakEndpoint {
    settings: Arc<Settings>,
    state: Weak<State>,
}

impl WeakEndpoint {
    pub(crate) fn of(endpoint: &StreamableHttp) -> Self {
        Self {
            settings: Arc::clone(&endpoint.settings),
            state: Arc::downgrade(&endpoint.state),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn upgrade(&self) -> Option<StreamableHttp> {
        let state = self.state.upgrade()?;
        Some(StreamableHttp {
            settings: Arc::clone(&self.settings),
            state,
        })
    }
}

/// Registers the end of a session, which starts when either side closes it.
fn end_when_closing(endpoint: &StreamableHttp, session: &Arc<Session>) {
    let weak = WeakEndpoint::of(endpoint);
    let closing = Arc::downgrade(session);
    session.connection().when_closing(Box::new(move || {
        if let (Some(endpoint), Some(session)) = (weak.upgrade(), closing.upgrade()) {
            let runtime = session.connection().runtime.clone();
            spawn_on(&runtime, end(endpoint, session));
        }
    }));
}

/// Expires idle sessions as long as there are sessions, and renews the records of those in use, which may be in use only by a
/// stream.
async fn sweep(mut endpoint: StreamableHttp) {
    let weak = WeakEndpoint::of(&endpoint);
    let idle = endpoint.settings.limits.http.session_idle;
    let interval = (idle / SWEEPS_PER_IDLE).max(MIN_SWEEP_INTERVAL);
    loop {
        let next = sweep_once(&endpoint, idle, interval);
        let is_unused = select! {
            biased;
            () = endpoint.state.sessions.all_gone() => true,
            () = sleep_until(next) => false,
        };
        if is_unused {
            // Another session may be opened immediately, and would need another sweeper.
            drop(endpoint);
            sleep(interval.min(SWEEPER_LINGERS)).await;
            endpoint = match weak.upgrade() {
                Some(endpoint) if !endpoint.state.sessions.end_sweeper() => endpoint,
                _ => return,
            };
        }
    }
}

/// Checks all sessions. Returns the time of the next check.
fn sweep_once(endpoint: &StreamableHttp, idle: Duration, interval: Duration) -> Instant {
    let now = Instant::now();
    let mut next = after(now, idle);
    let (mut expired, mut renewals) = (Vec::new(), Vec::new());
    let sessions = &endpoint.state.sessions;
    sessions.for_each(|session| match session.expires_at(idle) {
        Some(at) if at <= now => expired.push(Arc::clone(session)),
        Some(at) => next = next.min(at),
        None => {
            let shared = session.shared().map(Arc::clone);
            renewals.extend(shared.and_then(|it| it.renewal(interval)));
        }
    });
    renew(renewals);
    for session in expired {
        expire(endpoint, session);
    }
    next.max(after(now, interval))
}

/// Ends a session that exceeded the idle timeout, unless it is already ending.
fn expire(endpoint: &StreamableHttp, session: Arc<Session>) {
    if session.connection().take_on_closing() {
        tracing::debug!(session = %session.id(), "closing idle session");
        spawn(end(endpoint.clone(), session));
    }
}

/// Ends a session that its client has deleted. If other nodes do not know it, most of the work is done immediately, without a task.
pub(crate) fn close(endpoint: &StreamableHttp, session: &Arc<Session>) {
    let ends_here = session.shared().is_none() && session.connection().take_on_closing();
    session.begin_close();
    if ends_here {
        spawn_polled(end(endpoint.clone(), Arc::clone(session)));
    }
}

/// Ends a session: running handlers may finish within the drain time.
async fn end(endpoint: StreamableHttp, session: Arc<Session>) {
    let connection = session.connection();
    let sessions = &endpoint.state.sessions;
    let shared = session.shared();
    // Another node may continue a session that is only idle here, or was open when this endpoint closed.
    let is_over = connection.is_closing() && !endpoint.state.closing.is_set()
        || shared.is_some_and(|it| it.is_over());
    // The stored record may belong to another session, for which this one was evicted.
    if let Some(shared) = shared.filter(|_| is_over && !sessions.holds_other(&session)) {
        shared.remove(false).await;
    }
    sessions.remove(&session);
    let limit = if endpoint.state.drained.is_set() {
        Duration::ZERO
    } else {
        connection.limits.drain
    };
    connection.in_flight().refuse_new();
    // Handlers that have not finished by then are cancelled by the end of the connection.
    let _ = timeout(limit, connection.in_flight().settled()).await;
    connection.notifications().flush(limit).await;
    connection.end();
    if let Some(store) = &endpoint.settings.events
        && (is_over || endpoint.settings.sessions.is_none())
        && !sessions.holds_other(&session)
    {
        log(store.forget(session.id()).await);
    }
    // The session counts as open until then, so that closing the endpoint waits.
    connection.middleware_ended().await;
}

//! How sessions end: by their client or server, with the endpoint, or because nothing happens in them any more. No session has
//! a task or a timer for it: there may be thousands, in most of which nothing happens.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    select,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    http::server::{
        endpoint::{Settings, State, StreamableHttp},
        kept::{self, Kept},
        session::{Session, log},
    },
    session::after,
};

/// A session that is idle may last longer by such a part of the time that it has: it is not looked at more often, however many
/// there are.
const PARTS: u32 = 64;
/// Nobody looks for idle sessions more often than that, however short they may last.
const SHORTEST: Duration = Duration::from_millis(10);

/// An endpoint, seen from what must not keep it.
struct WeakEndpoint {
    settings: Arc<Settings>,
    state: Weak<State>,
}

impl WeakEndpoint {
    fn of(endpoint: &StreamableHttp) -> Self {
        Self {
            settings: Arc::clone(&endpoint.settings),
            state: Arc::downgrade(&endpoint.state),
        }
    }

    fn upgrade(self) -> Option<StreamableHttp> {
        let state = self.state.upgrade()?;
        Some(StreamableHttp {
            settings: self.settings,
            state,
        })
    }
}

/// Sees a session to its end that is in its place.
pub(super) fn watch(endpoint: &StreamableHttp, session: &Arc<Session>) {
    let (weak, ending) = (WeakEndpoint::of(endpoint), Arc::downgrade(session));
    session.connection().when_closing(Box::new(move || {
        if let (Some(endpoint), Some(session)) = (weak.upgrade(), ending.upgrade()) {
            let runtime = session.connection().runtime.clone();
            runtime.spawn(end(endpoint, session));
        }
    }));
    if endpoint.state.sessions.begin_sweeping() {
        let endpoint = endpoint.clone();
        tokio::spawn(sweep(Sweeper {
            endpoint,
            is_done: false,
        }));
    }
}

/// Who looks for sessions that are idle, as long as there are sessions. Dropped with its runtime, it lets others do it.
struct Sweeper {
    endpoint: StreamableHttp,
    is_done: bool,
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if !self.is_done {
            self.endpoint.state.sessions.stop_sweeping();
        }
    }
}

async fn sweep(mut sweeper: Sweeper) {
    let endpoint = &sweeper.endpoint;
    let idle = endpoint.settings.limits.http_session_idle;
    let pause = (idle / PARTS).max(SHORTEST);
    loop {
        let now = Instant::now();
        let mut next = after(now, idle);
        let mut over = Vec::new();
        endpoint
            .state
            .sessions
            .for_each(|session| match session.lasts_until(idle) {
                Some(until) if until <= now => over.push(Arc::clone(session)),
                Some(until) => next = next.min(until),
                None => {}
            });
        for session in over {
            expire(endpoint, session);
        }
        select! {
            biased;
            () = endpoint.state.sessions.all_gone() => {
                if endpoint.state.sessions.end_sweeping() {
                    sweeper.is_done = true;
                    return;
                }
            }
            () = sleep_until(next.max(after(now, pause))) => {}
        }
    }
}

/// Ends a session that was idle for too long, unless it ends already.
fn expire(endpoint: &StreamableHttp, session: Arc<Session>) {
    if session.connection().forget_closing() {
        tracing::debug!(session = session.id(), "a session was idle for too long");
        tokio::spawn(end(endpoint.clone(), session));
    }
}

/// Ends a session: what runs may finish within a bound.
async fn end(endpoint: StreamableHttp, session: Arc<Session>) {
    let connection = session.connection();
    // Another node may go on with what is only idle here, or was when this one was closed.
    let is_over = connection.is_closing() && !endpoint.state.closing.is_set()
        || session.kept().is_some_and(Kept::is_over);
    if is_over {
        kept::remove(&session).await;
    }
    endpoint.state.sessions.remove(&session);
    let limit = connection.limits.drain;
    connection.in_flight().drain();
    // What has not finished by then is cancelled with the rest.
    let _ = timeout(limit, connection.in_flight().settled()).await;
    connection.lane().flush(limit).await;
    connection.end();
    if let Some(store) = &endpoint.settings.events
        && (is_over || endpoint.settings.sessions.is_none())
    {
        log(store.forget(session.id()).await);
    }
}

//! Connections that wait for the next request.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use http::Uri;
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use super::connection::Connection;

/// Connections of one client.
#[derive(Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order in which they were used.
    kept: Vec<Kept>,
    /// Closes those that nobody uses.
    sweeper: Option<AbortHandle>,
}

struct Kept {
    connection: Connection,
    until: Instant,
}

impl Pool {
    /// How long an idle connection is kept: less than most servers and proxies keep one, so that it is not used while it
    /// dies.
    pub(super) const IDLE: Duration = Duration::from_secs(50);
    /// How many are kept: more than most clients have calls in flight.
    pub(super) const MOST: usize = 64;

    /// A connection to where a URI leads, the one that was used last.
    pub(super) fn take(self: &Arc<Self>, uri: &Uri) -> Option<Connection> {
        let mut state = self.lock();
        let mut kept = state.kept.iter();
        let last = kept.rposition(|it| it.connection.origin().is_of(uri))?;
        let connection = state.kept.remove(last).connection;
        drop(state);
        if let Some(shared) = connection.share() {
            self.put(shared);
        }
        Some(connection)
    }

    /// Keeps a connection for the next request.
    pub(super) fn put(self: &Arc<Self>, connection: Connection) {
        let kept = Kept {
            connection,
            until: Instant::now() + Self::IDLE,
        };
        let mut state = self.lock();
        let oldest = (state.kept.len() >= Self::MOST).then(|| state.kept.remove(0));
        state.kept.push(kept);
        if state.sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            let sweeper = tokio::spawn(sweep(Arc::downgrade(self)));
            state.sweeper = Some(sweeper.abort_handle());
        }
        drop(state);
        drop(oldest);
    }

    /// Closes what was not used for long. Returns when to look again; with `None` nothing is kept, and nobody looks.
    fn sweep(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let fresh = state.kept.iter().position(|it| it.until > now);
        let fresh = fresh.unwrap_or(state.kept.len());
        let old: Vec<_> = state.kept.drain(..fresh).collect();
        let next = state.kept.first().map(|oldest| oldest.until);
        if next.is_none() {
            state.sweeper = None;
        }
        drop(state);
        drop(old);
        next
    }

    #[cfg(all(test, feature = "http-server"))]
    pub(super) fn len(&self) -> usize {
        self.lock().kept.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

async fn sweep(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.sweep()) {
        sleep_until(next).await;
    }
}

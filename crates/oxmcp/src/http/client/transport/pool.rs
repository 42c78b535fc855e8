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

use crate::http::client::transport::connection::Connection;

/// Connections of one client.
#[derive(Default)]
pub(crate) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order in which they were used.
    kept: Vec<Kept>,
    sweeper: Option<Sweeper>,
}

/// Closes those that nobody uses.
struct Sweeper {
    task: AbortHandle,
    /// When it looks next.
    looks: Instant,
}

struct Kept {
    connection: Connection,
    until: Instant,
}

impl Pool {
    /// How long an idle connection is kept where nothing is known of how long the server keeps it. Many a server closes one
    /// after five seconds; a request that crosses that on its way is lost, and nobody knows whether it was served. What has
    /// been closed before is seen, so that servers that wait for less do no other harm.
    pub(crate) const USUAL: Duration = Duration::from_secs(4);
    /// How long one is kept at most: where the server says that it keeps it for longer, and with HTTP/2, whose end is
    /// announced.
    pub(crate) const LONGEST: Duration = Duration::from_secs(50);
    /// How many are kept: more than most clients have calls in flight.
    pub(crate) const MOST: usize = 64;

    /// A connection to where a URI leads that has room for a request, the one that was used last.
    pub(crate) fn take(self: &Arc<Self>, uri: &Uri) -> Option<Connection> {
        self.take_if(uri, Connection::has_room)
    }

    /// The same, whether it has room or not.
    pub(crate) fn take_any(self: &Arc<Self>, uri: &Uri) -> Option<Connection> {
        self.take_if(uri, |_| true)
    }

    fn take_if(
        self: &Arc<Self>,
        uri: &Uri,
        suits: impl Fn(&Connection) -> bool,
    ) -> Option<Connection> {
        let mut state = self.lock();
        let mut kept = state.kept.iter().map(|it| &it.connection);
        let last = kept.rposition(|it| it.origin().is_of(uri) && suits(it))?;
        let mut connection = state.kept.remove(last).connection;
        connection.occupy();
        drop(state);
        if let Some(shared) = connection.share() {
            self.put(shared);
        }
        Some(connection)
    }

    /// Keeps a connection for the next request, where there is time for one.
    pub(crate) fn put(self: &Arc<Self>, connection: Connection) {
        let idle = connection.idle();
        if idle.is_zero() {
            return;
        }
        let until = Instant::now() + idle;
        let kept = Kept { connection, until };
        let mut state = self.lock();
        let oldest = (state.kept.len() >= Self::MOST).then(|| state.kept.remove(0));
        state.kept.push(kept);
        let sweeper = state.sweeper.as_ref();
        if sweeper.is_none_or(|it| it.looks > until || it.task.is_finished()) {
            let task = tokio::spawn(sweep(Arc::downgrade(self), until)).abort_handle();
            let looks = until;
            if let Some(late) = state.sweeper.replace(Sweeper { task, looks }) {
                late.task.abort();
            }
        }
        drop(state);
        drop(oldest);
    }

    /// Closes what was not used for long. Returns when to look again; with `None` nothing is kept, and nobody looks.
    fn sweep(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.lock();
        let old: Vec<_> = state.kept.extract_if(.., |it| it.until <= now).collect();
        let next = state.kept.iter().map(|it| it.until).min();
        match (next, &mut state.sweeper) {
            (Some(next), Some(sweeper)) => sweeper.looks = next,
            _ => state.sweeper = None,
        }
        drop(state);
        drop(old);
        next
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().kept.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.task.abort();
        }
    }
}

async fn sweep(pool: Weak<Pool>, first: Instant) {
    let mut looks = Some(first);
    while let Some(next) = looks {
        sleep_until(next).await;
        looks = pool.upgrade().and_then(|pool| pool.sweep());
    }
}

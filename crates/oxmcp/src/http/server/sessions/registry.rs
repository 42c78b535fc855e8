//! The registry of an endpoint's sessions, by ID.

use std::{collections::HashMap, fmt, future::Future, sync::Arc};

use futures_util::future::join_all;
use tokio::task::AbortHandle;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use super::{
    quota::{EvictionQueue, QuotaExceeded, QuotaPermit, SessionQuota},
    session::Session,
};
use crate::{
    limits::Limits,
    session::task::spawn,
    sync::{Mutex, RwLock},
};

/// The sessions of an endpoint, by ID.
#[derive(Default)]
pub(crate) struct Sessions {
    by_id: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    /// All sessions, including those that are being opened or closed.
    all: TaskTracker,
    quota: SessionQuota,
    eviction_queue: Arc<EvictionQueue<Session>>,
    /// The task that expires idle sessions.
    sweeper: Mutex<Option<AbortHandle>>,
}

impl Sessions {
    /// Counts one more session until the returned guard is dropped.
    pub(crate) fn track(&self) -> TaskTrackerToken {
        self.all.token()
    }

    /// Acquires a permit for one more session. If the quota is exceeded, the oldest unused session is evicted: of the same
    /// principal if that principal has too many, else of all. Also returns the evicted sessions.
    ///
    /// # Errors
    /// If the quota is exceeded and no session is unused.
    pub(crate) fn acquire(
        &self,
        principal: Option<&Arc<str>>,
        limits: &Limits,
    ) -> Result<(QuotaPermit, Vec<Arc<Session>>), QuotaExceeded> {
        let mut evicted = Vec::new();
        loop {
            let exceeded = match self.quota.acquire(principal, limits) {
                Ok(permit) => return Ok((permit, evicted)),
                Err(exceeded) => exceeded,
            };
            // Evicted sessions take time to close, especially with a slow store. At most as many as the limit may be closing.
            if self.all.len() >= limits.http.max_sessions.saturating_mul(2) {
                return Err(exceeded);
            }
            evicted.push(self.evict(exceeded, principal).ok_or(exceeded)?);
        }
    }

    /// Evicts the oldest unused session: of this principal if it has too many, else of all. `None` if no session is unused.
    pub(crate) fn evict(
        &self,
        exceeded: QuotaExceeded,
        principal: Option<&Arc<str>>,
    ) -> Option<Arc<Session>> {
        let of = principal.filter(|_| exceeded == QuotaExceeded::Principal);
        self.eviction_queue.evict_oldest(of)
    }

    /// Makes a session that was just opened evictable until it is used.
    pub(crate) fn set_unused(&self, session: &Arc<Session>) {
        let principal = session.principal().map(Arc::clone);
        let place = self.eviction_queue.add(principal, Arc::downgrade(session));
        session.set_evictable(place);
    }

    /// Registers a session. A closing session with the same ID is replaced: it was evicted, and is still ending.
    ///
    /// # Errors
    /// The registered session with the same ID.
    pub(crate) fn insert(&self, session: &Arc<Session>) -> Result<(), Arc<Session>> {
        let mut by_id = self.by_id.write();
        let there = by_id.get(session.id());
        if let Some(there) = there.filter(|it| !it.connection().is_closing()) {
            return Err(Arc::clone(there));
        }
        by_id.insert(Arc::clone(session.id()), Arc::clone(session));
        Ok(())
    }

    /// The session with this ID. `None` if it does not exist or belongs to another principal.
    pub(crate) fn find(&self, id: &str, principal: Option<&str>) -> Option<Arc<Session>> {
        let by_id = self.by_id.read();
        let session = by_id.get(id)?;
        session.belongs_to(principal).then(|| Arc::clone(session))
    }

    /// Removes a session. Another session with the same ID stays: a request that came before the end may have restored it from the
    /// store.
    pub(crate) fn remove(&self, session: &Arc<Session>) {
        let mut by_id = self.by_id.write();
        let there = by_id.get(session.id());
        if there.is_some_and(|there| Arc::ptr_eq(there, session)) {
            by_id.remove(session.id());
            if let Some(shared) = session.shared() {
                shared.unsubscribe();
            }
        }
    }

    /// Whether another session with the same ID is registered.
    pub(crate) fn holds_other(&self, session: &Arc<Session>) -> bool {
        let by_id = self.by_id.read();
        let there = by_id.get(session.id());
        there.is_some_and(|there| !Arc::ptr_eq(there, session))
    }

    /// The number of sessions, except those that are being opened.
    pub(crate) fn open(&self) -> usize {
        self.by_id.read().len()
    }

    pub(crate) fn for_each(&self, visit: impl FnMut(&Arc<Session>)) {
        self.by_id.read().values().for_each(visit);
    }

    /// Waits until nothing is in flight in any session. The GET stream of a session ends when nothing is in flight in it. Cancel
    /// safe.
    pub(crate) async fn settle(&self) {
        loop {
            let mut sessions = Vec::new();
            self.for_each(|session| sessions.push(Arc::clone(session)));
            let is_busy = |it: &Arc<Session>| !it.connection().in_flight().is_empty();
            let was_busy = sessions.iter().any(is_busy);
            join_all(sessions.iter().map(|session| session.settle())).await;
            // Other requests may have started in the meantime.
            if !was_busy {
                return;
            }
        }
    }

    /// Closes all sessions, in the background.
    pub(crate) fn close_all(&self) {
        self.for_each(|session| session.begin_close());
    }

    /// Waits until no sessions and no guards are left. Cancel safe.
    pub(crate) async fn all_gone(&self) {
        // Sessions can still be added, but only a closed tracker can be waited for.
        self.all.close();
        self.all.wait().await;
    }

    /// Spawns the task that expires idle sessions, unless it is running.
    pub(crate) fn ensure_sweeper<F>(&self, sweep: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut sweeper = self.sweeper.lock();
        // A sweeper that has finished was dropped with its runtime.
        if sweeper.as_ref().is_none_or(AbortHandle::is_finished) {
            *sweeper = Some(spawn(sweep()).abort_handle());
        }
    }

    /// Returns whether the sweeper ends because there are no sessions. A session that is opened in the meantime is either seen here
    /// or spawns another sweeper.
    pub(crate) fn end_sweeper(&self) -> bool {
        let mut sweeper = self.sweeper.lock();
        let ends = self.all.is_empty();
        if ends {
            *sweeper = None;
        }
        ends
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("open", &self.all.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{
        server::{Server, ServerRole},
        session::connection::Caller,
    };

    fn session(sessions: &Sessions) -> Arc<Session> {
        let (permit, _) = sessions.acquire(None, &Limits::default()).unwrap();
        let (server, caller) = (Server::new("s", "1"), Caller::default());
        let peer = ServerRole::new(server);
        Session::new("id".into(), peer, &caller, permit, sessions.track())
    }

    #[tokio::test]
    async fn ending_session_removes_no_namesake() {
        let sessions = Sessions::default();
        let (first, second) = (session(&sessions), session(&sessions));
        assert!(sessions.insert(&first).is_ok());
        sessions.remove(&first);
        assert!(sessions.insert(&second).is_ok());
        sessions.remove(&first);
        assert!(sessions.find("id", None).is_some());
        sessions.remove(&second);
        assert!(sessions.find("id", None).is_none());
    }

    #[tokio::test]
    async fn closing_session_is_replaced_by_its_namesake() {
        let sessions = Sessions::default();
        let (first, second) = (session(&sessions), session(&sessions));
        assert!(sessions.insert(&first).is_ok());
        assert!(sessions.insert(&second).is_err());
        first.begin_close();
        assert!(sessions.insert(&second).is_ok());
        sessions.remove(&first);
        assert!(sessions.find("id", None).is_some());
    }

    #[tokio::test]
    async fn sweeper_stops_and_restarts_with_sessions() {
        let sessions = Sessions::default();
        let begun = AtomicUsize::new(0);
        let begin = || {
            sessions.ensure_sweeper(|| {
                begun.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>()
            });
            begun.load(Ordering::Relaxed)
        };
        let open = session(&sessions);
        assert_eq!((begin(), begin()), (1, 1));
        assert!(!sessions.end_sweeper(), "there is a session");
        assert_eq!(begin(), 1);
        drop(open);
        assert!(sessions.end_sweeper());
        assert_eq!(begin(), 2, "though the one before has not returned yet");
    }

    #[test]
    fn invalid_id_can_be_looked_up() {
        let sessions = Sessions::default();
        for text in ["", "x", "12345678", "0123456789", &"z".repeat(1000)] {
            assert!(sessions.find(text, None).is_none());
        }
    }
}

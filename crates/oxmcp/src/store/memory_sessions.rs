//! A store of sessions in memory, bounded by count and size.

use std::{
    collections::{BTreeMap, HashMap, hash_map},
    fmt,
    sync::MutexGuard,
    time::Duration,
};

use tokio::time::Instant;

use super::sessions::{
    CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession, TOMBSTONE,
};
use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// A [`SessionStore`] in the memory of this process, for tests, and for several endpoints in one process (as an `Arc`).
///
/// It is bounded by count and size, and its records expire. It does not outlive the process.
///
/// ```
/// use oxmcp::store::MemorySessionStore;
///
/// let store = MemorySessionStore::new().max_sessions(100).max_record_bytes(10_000);
/// # let _ = store;
/// ```
pub struct MemorySessionStore {
    max_sessions: usize,
    max_record_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Entry>,
    /// The IDs, ordered by their expiry.
    by_expiry: BTreeMap<(Instant, u64), String>,
    /// The number of sessions of each principal.
    by_principal: HashMap<String, usize>,
    /// The number of the next entry.
    next: u64,
}

struct Entry {
    /// `None` if the session was removed.
    stored: Option<StoredSession>,
    /// The expiry, and the number of the entry.
    place: (Instant, u64),
}

impl MemorySessionStore {
    /// Creates an empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_sessions: 10_000,
            max_record_bytes: 64 << 10,
            state: Mutex::default(),
        }
    }

    /// Sets the maximum number of sessions. Beyond it, those that would expire first are evicted. Default: 10 000.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets the maximum size of a record in bytes. A change that would exceed it is refused. Default: 64 KiB, ten times the
    /// usual client metadata with a hundred subscriptions.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// Locks the state, and removes expired sessions.
    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code that could panic runs under the lock.
        let mut state = self.state.lock();
        state.expire(Instant::now());
        state
    }

    fn check(&self, record: &SessionRecord) -> Result<()> {
        if record.bytes() <= self.max_record_bytes {
            return Ok(());
        }
        Err(Error::limit(format!(
            "session record is too large: the limit is {} bytes; raise `max_record_bytes` of the session store",
            self.max_record_bytes
        )))
    }
}

impl State {
    fn insert(&mut self, id: &str, stored: Option<StoredSession>, lasts: Duration) {
        self.take(id);
        if let Some(principal) = stored.as_ref().and_then(|it| it.record.principal.as_ref()) {
            *self.by_principal.entry(principal.clone()).or_default() += 1;
        }
        self.next += 1;
        let place = (expiry(lasts), self.next);
        self.by_expiry.insert(place, id.to_owned());
        self.sessions.insert(id.to_owned(), Entry { stored, place });
    }

    fn take(&mut self, id: &str) {
        let Some(before) = self.sessions.remove(id) else {
            return;
        };
        self.by_expiry.remove(&before.place);
        let principal = before.stored.and_then(|it| it.record.principal);
        if let Some(principal) = principal
            && let hash_map::Entry::Occupied(mut count) = self.by_principal.entry(principal)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    fn has_room(&self, principal: Option<&String>, max_per_owner: usize) -> bool {
        let count = principal.map(|it| self.by_principal.get(it).copied().unwrap_or_default());
        count.is_none_or(|it| it < max_per_owner)
    }

    fn stored(&mut self, id: &str) -> Option<&mut StoredSession> {
        self.sessions.get_mut(id)?.stored.as_mut()
    }

    fn expire(&mut self, now: Instant) {
        while let Some(first) = self.by_expiry.first_entry()
            && first.key().0 <= now
        {
            let id = first.remove();
            self.take(&id);
        }
    }

    fn make_room(&mut self, max_sessions: usize) {
        while self.sessions.len() > max_sessions {
            let Some((_, id)) = self.by_expiry.pop_first() else {
                return;
            };
            self.take(&id);
        }
    }
}

/// The expiry of a session that is kept for this time from now.
fn expiry(lasts: Duration) -> Instant {
    /// A year, since an instant is bounded.
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + lasts.min(LONGEST)
}

impl SessionStore for MemorySessionStore {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        self.check(&record)?;
        let mut state = self.lock();
        if state.sessions.contains_key(id) {
            return Ok(CreateOutcome::Exists);
        }
        if !state.has_room(record.principal.as_ref(), max_per_owner) {
            return Ok(CreateOutcome::PrincipalFull);
        }
        state.insert(id, Some(StoredSession::new(record, 1)), lasts);
        state.make_room(self.max_sessions);
        Ok(CreateOutcome::Created)
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        Ok(self.lock().stored(id).cloned())
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        let mut state = self.lock();
        let Some(stored) = state.stored(id) else {
            return Ok(None);
        };
        let mut record = stored.record.clone();
        record.apply(change);
        self.check(&record)?;
        *stored = StoredSession::new(record, stored.version + 1);
        Ok(Some(stored.version))
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        let mut state = self.lock();
        let Some(stored) = state.stored(id).cloned() else {
            return Ok(None);
        };
        let version = stored.version;
        state.insert(id, Some(stored), lasts);
        Ok(Some(version))
    }

    async fn remove(&self, id: &str) -> Result<()> {
        let mut state = self.lock();
        state.insert(id, None, TOMBSTONE);
        state.make_room(self.max_sessions);
        Ok(())
    }
}

impl Default for MemorySessionStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("MemorySessionStore")
            .field("sessions", &state.sessions.len())
            .finish_non_exhaustive()
    }
}

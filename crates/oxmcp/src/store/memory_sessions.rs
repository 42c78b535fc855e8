//! Store of sessions in memory, bounded by count, size and age.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::MutexGuard,
    time::Duration,
};

use tokio::time::Instant;

use super::sessions::{SessionRecord, SessionStore};
use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// A [`SessionStore`] in the memory of this process: for tests, and for several endpoints in one process. It does not
/// outlive the process.
///
/// It is bounded by count, by size and by how long nobody has asked for a session.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::store::MemorySessionStore;
///
/// let store = MemorySessionStore::new().max_sessions(100).max_idle(Duration::from_secs(600));
/// # let _ = store;
/// ```
pub struct MemorySessionStore {
    max_sessions: usize,
    max_record_bytes: usize,
    max_idle: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Entry>,
    /// The ids by when they were used, the oldest first.
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

struct Entry {
    record: SessionRecord,
    used: Instant,
    /// Which use it was.
    number: u64,
}

impl MemorySessionStore {
    /// An empty store with the default bounds.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_sessions: 10_000,
            max_record_bytes: 64 << 10,
            max_idle: Duration::from_secs(60 * 60),
            state: Mutex::default(),
        }
    }

    /// How many sessions are kept; beyond it those go that have not been used for the longest time. Default: 10 000.
    #[must_use]
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// How many bytes a record may have; a larger one is refused. Default: 64 KiB, ten times what clients say of
    /// themselves and a hundred subscriptions.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// How long a session is kept that nobody saves or loads. Default: an hour, longer than endpoints keep sessions that
    /// are idle.
    #[must_use]
    pub fn max_idle(mut self, idle: Duration) -> Self {
        self.max_idle = idle;
        self
    }

    /// The state, without what is too old.
    fn lock(&self, now: Instant) -> MutexGuard<'_, State> {
        // Nothing in here calls a user's code that could panic.
        let mut state = self.state.lock();
        state.expire(now, self.max_idle);
        state
    }
}

impl State {
    fn insert(&mut self, id: &str, record: SessionRecord, now: Instant) {
        self.remove(id);
        self.uses += 1;
        let entry = Entry {
            record,
            used: now,
            number: self.uses,
        };
        self.by_use.insert(self.uses, id.to_owned());
        self.sessions.insert(id.to_owned(), entry);
    }

    fn remove(&mut self, id: &str) -> Option<SessionRecord> {
        let entry = self.sessions.remove(id)?;
        self.by_use.remove(&entry.number);
        Some(entry.record)
    }

    fn drop_oldest(&mut self) {
        if let Some((_, id)) = self.by_use.pop_first() {
            self.sessions.remove(&id);
        }
    }

    fn expire(&mut self, now: Instant, max_idle: Duration) {
        while let Some((_, id)) = self.by_use.first_key_value() {
            let used = self.sessions.get(id).map(|entry| entry.used);
            if used.is_some_and(|used| now.saturating_duration_since(used) <= max_idle) {
                return;
            }
            self.drop_oldest();
        }
    }
}

impl SessionStore for MemorySessionStore {
    async fn save(&self, id: &str, record: SessionRecord) -> Result<()> {
        if record.bytes() > self.max_record_bytes {
            return Err(Error::limit(format!(
                "the record of the session has more than {} bytes; raise max_record_bytes of the session store",
                self.max_record_bytes
            )));
        }
        let now = Instant::now();
        let mut state = self.lock(now);
        state.insert(id, record, now);
        while state.sessions.len() > self.max_sessions {
            state.drop_oldest();
        }
        Ok(())
    }

    async fn load(&self, id: &str) -> Result<Option<SessionRecord>> {
        let now = Instant::now();
        let mut state = self.lock(now);
        let Some(record) = state.sessions.get(id).map(|entry| entry.record.clone()) else {
            return Ok(None);
        };
        state.insert(id, record.clone(), now);
        Ok(Some(record))
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.lock(Instant::now()).remove(id);
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

//! Events in memory.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    EventBatch, EventStore, Replay,
    memory_streams::{Bounds, Session},
};
use crate::{Error, Result};

/// How long it takes at most until it is looked for events that are too old.
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// An [`EventStore`] in the memory of this process. It is what an endpoint uses that is not given another one.
///
/// It is bounded by size and by age, for each stream, each session and all together. A session that sends much loses its
/// own oldest events; what it holds never drives out those of sessions that hold less. A stream that has not ended is forgotten
/// once nothing was added to it for a day; should it go on, its indexes do, too, but maybe with a gap.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::store::MemoryEventStore;
///
/// let store = MemoryEventStore::new().max_bytes(16 << 20).max_age(Duration::from_secs(60));
/// # let _ = store;
/// ```
pub struct MemoryEventStore {
    bounds: Bounds,
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<Arc<str>, Session>,
    /// How much each session holds, the most last.
    by_bytes: BTreeSet<(usize, Arc<str>)>,
    bytes: usize,
    /// The highest index of the streams that were forgotten before their end.
    forgotten: u64,
    /// When all that is too old is to be dropped, also that of sessions that nobody asks for.
    sweep: Option<Instant>,
}

impl MemoryEventStore {
    /// An empty store with the default bounds.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bounds: Bounds::default(),
            max_bytes: 64 << 20,
            state: Mutex::default(),
        }
    }

    /// How many bytes all sessions may hold together. Beyond it the session that holds the most loses its oldest events.
    /// Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// How many bytes one session may hold. Default: 8 MiB, two streams that are full.
    #[must_use]
    pub fn max_session_bytes(mut self, bytes: usize) -> Self {
        self.bounds.session_bytes = bytes;
        self
    }

    /// How many bytes one stream may hold. Default: 4 MiB, so that most images and files still fit.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.bounds.stream_bytes = bytes;
        self
    }

    /// How many events one stream may hold. Default: 4096, some minutes of quick progress.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.bounds.stream_events = events;
        self
    }

    /// How many streams one session may have, those included that have ended and can still be replayed; of these the
    /// oldest make room for new ones. Default: 1024, as many as there may be requests in flight.
    #[must_use]
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.bounds.streams = streams;
        self
    }

    /// How long events are kept. Default: 5 minutes: who lost a connection comes back within seconds, or has slept too
    /// long to be interested.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.bounds.age = age;
        self
    }

    /// Adds events, all or none, and returns the index of the last one.
    fn add(&self, session: &str, stream: &str, events: EventBatch) -> Result<u64> {
        let now = Instant::now();
        let mut state = self.lock();
        state.sweep(now, self.bounds.age);
        let name = state.open(session);
        let forgotten = state.forgotten;
        let last = state.with(&name, |session| {
            session.count_after(forgotten);
            session.append(stream, events, now, &self.bounds)
        });
        state.make_room(self.max_bytes);
        last.unwrap_or_else(|| Err(Error::internal("the session is gone")))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here calls a user's code that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Does something to a session and keeps account of what it holds.
    fn with<T>(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let session = self.sessions.get_mut(name)?;
        let before = session.bytes();
        let result = change(session);
        let after = session.bytes();
        self.forgotten = self.forgotten.max(session.forgotten());
        if before != after {
            self.by_bytes.remove(&(before, Arc::clone(name)));
            self.by_bytes.insert((after, Arc::clone(name)));
            self.bytes = self.bytes - before + after;
        }
        Some(result)
    }

    /// The session's name as it is kept, once it has one.
    fn open(&mut self, name: &str) -> Arc<str> {
        if let Some((known, _)) = self.sessions.get_key_value(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.sessions.insert(Arc::clone(&name), Session::default());
        self.by_bytes.insert((0, Arc::clone(&name)));
        name
    }

    /// The session that holds the most gives up its oldest, until all together fits.
    fn make_room(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes {
            let Some((_, name)) = self.by_bytes.last() else {
                return;
            };
            let name = Arc::clone(name);
            if self.with(&name, Session::drop_oldest) != Some(true) {
                return;
            }
        }
    }

    /// Drops what is too old everywhere, now and then.
    fn sweep(&mut self, now: Instant, age: Duration) {
        if self.sweep.is_some_and(|due| now < due) {
            return;
        }
        let pause = (age / 2).min(MAX_PAUSE);
        self.sweep = Some(now + pause);
        let names: Vec<_> = self.sessions.keys().cloned().collect();
        for name in names {
            self.with(&name, |session| session.expire(now, age));
            if self.sessions.get(&name).is_some_and(Session::is_empty) {
                self.remove(&name);
            }
        }
    }

    fn remove(&mut self, name: &str) -> Option<Session> {
        let (name, session) = self.sessions.remove_entry(name)?;
        self.bytes -= session.bytes();
        self.by_bytes.remove(&(session.bytes(), name));
        Some(session)
    }
}

impl EventStore for MemoryEventStore {
    async fn append(&self, session: &str, stream: &str, data: Bytes) -> Result<u64> {
        self.add(session, stream, data.into())
    }

    async fn append_all(
        &self,
        session: &str,
        stream: &str,
        events: EventBatch,
    ) -> Result<Vec<u64>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let count = events.len() as u64;
        let last = self.add(session, stream, events)?;
        Ok((last - count + 1..=last).collect())
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let now = Instant::now();
        let mut state = self.lock();
        state.sweep(now, self.bounds.age);
        let Some((name, _)) = state.sessions.get_key_value(session) else {
            return Ok(Replay::Lost);
        };
        let name = Arc::clone(name);
        let replay = state.with(&name, |session| {
            session.expire(now, self.bounds.age);
            session.after(stream, index, max)
        });
        Ok(replay.unwrap_or(Replay::Lost))
    }

    async fn end(&self, session: &str, stream: &str) -> Result<()> {
        if let Some(session) = self.lock().sessions.get_mut(session) {
            session.end(stream);
        }
        Ok(())
    }

    async fn forget(&self, session: &str) -> Result<()> {
        let forgotten = self.lock().remove(session);
        // What it held is freed while nobody waits for the lock.
        drop(forgotten);
        Ok(())
    }
}

impl Default for MemoryEventStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryEventStore")
            .field("sessions", &state.sessions.len())
            .field("bytes", &state.bytes)
            .finish_non_exhaustive()
    }
}

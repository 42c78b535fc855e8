//! A store of events in memory, bounded by size and age.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{Notify, futures::OwnedNotified},
    time::Instant,
};

use super::events::{ClaimMode, EventBatch, EventStore, Lease, Replay, StreamWrite};
use crate::{
    error::{Error, Result},
    sync::Mutex,
};

/// The longest time between two sweeps for events that are too old.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// An [`EventStore`] in the memory of this process, the default of an endpoint.
///
/// It is bounded by size and age: per stream, per session and in total. A session that sends much loses its own oldest events,
/// and never evicts those of sessions that hold less. An open stream is forgotten after a day without additions; if it
/// continues later, so do its indexes, but possibly with a gap.
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
    sessions: HashMap<Arc<str>, SessionStreams>,
    /// The sessions, ordered by the bytes that they hold and by their numbers.
    by_bytes: BTreeMap<(usize, u64), Arc<str>>,
    /// The number of the next session.
    next: u64,
    bytes: usize,
    /// The highest index of the streams that were forgotten before their end.
    forgotten: u64,
    /// The time of the next sweep for expired events, including those of sessions that are not accessed.
    sweep: Option<Instant>,
}

impl MemoryEventStore {
    /// Creates an empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bounds: Bounds::default(),
            max_bytes: 64 << 20,
            state: Mutex::default(),
        }
    }

    /// Sets the maximum number of bytes of all sessions together. Beyond it, the session that holds the most loses its oldest
    /// events. Default: 64 MiB.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of one session. Default: 8 MiB, enough for two full streams.
    #[must_use]
    pub fn max_session_bytes(mut self, bytes: usize) -> Self {
        self.bounds.session_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes of one stream. Default: 4 MiB, so that most images and files fit.
    #[must_use]
    pub fn max_stream_bytes(mut self, bytes: usize) -> Self {
        self.bounds.stream_bytes = bytes;
        self
    }

    /// Sets the maximum number of events of one stream. Default: 4096, some minutes of frequent progress.
    #[must_use]
    pub fn max_stream_events(mut self, events: usize) -> Self {
        self.bounds.stream_events = events;
        self
    }

    /// Sets the maximum number of streams of one session, including ended ones that can still be replayed. The oldest of those
    /// are evicted for new streams. Default: 1024, the default limit of requests in flight.
    #[must_use]
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.bounds.streams = streams;
        self
    }

    /// Sets how long events are kept. Default: 5 minutes, because a client that lost a connection usually reconnects within
    /// seconds, or so late that the events no longer matter.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Self {
        self.bounds.age = age;
        self
    }

    /// Writes to a stream, all or nothing. Returns the index of its last event. `None` if the lease is not the newest.
    fn write(&self, session: &str, stream: &str, write: StreamWrite) -> Result<Option<u64>> {
        self.begin(session, |session, now| {
            session.write(stream, write, now, &self.bounds)
        })
    }

    /// Changes a session, which is created if needed.
    fn begin<T>(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionStreams, Instant) -> Result<T>,
    ) -> Result<T> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.sweep(now, self.bounds.age);
        let forgotten = state.forgotten;
        state.open(session);
        let changed = state.with(session, |session| {
            session.count_after(forgotten);
            change(session, now)
        });
        state.make_room(self.max_bytes);
        changed.unwrap_or_else(|| Err(Error::internal("session not found")))
    }
}

impl State {
    /// Changes a session and updates the accounting of memory.
    fn with<T>(&mut self, name: &str, change: impl FnOnce(&mut SessionStreams) -> T) -> Option<T> {
        let session = self.sessions.get_mut(name)?;
        let before = session.bytes();
        let result = change(session);
        let after = session.bytes();
        self.forgotten = self.forgotten.max(session.forgotten());
        if before != after {
            let number = session.number;
            let name = self.by_bytes.remove(&(before, number));
            self.by_bytes
                .extend(name.map(|name| ((after, number), name)));
            self.bytes = self.bytes - before + after;
        }
        Some(result)
    }

    /// Registers a session, if it is new.
    fn open(&mut self, name: &str) {
        if self.sessions.contains_key(name) {
            return;
        }
        let (name, number): (Arc<str>, _) = (name.into(), self.next);
        self.next += 1;
        let session = SessionStreams {
            number,
            ..SessionStreams::default()
        };
        self.by_bytes.insert((0, number), Arc::clone(&name));
        self.sessions.insert(name, session);
    }

    /// Drops the oldest events of the session that holds the most, repeatedly, until the total is within the limit.
    fn make_room(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes {
            let Some((_, name)) = self.by_bytes.last_key_value() else {
                return;
            };
            let name = Arc::clone(name);
            if self.with(&name, SessionStreams::drop_oldest) != Some(true) {
                return;
            }
        }
    }

    /// Drops expired events of all sessions, if a sweep is due.
    fn sweep(&mut self, now: Instant, age: Duration) {
        if self.sweep.is_some_and(|due| now < due) {
            return;
        }
        let pause = (age / 2).min(MAX_SWEEP_INTERVAL);
        self.sweep = Some(now + pause);
        let names: Vec<_> = self.sessions.keys().cloned().collect();
        for name in names {
            self.with(&name, |session| session.expire(now, age));
            if self
                .sessions
                .get(&name)
                .is_some_and(SessionStreams::is_empty)
            {
                self.remove(&name);
            }
        }
    }

    fn stream(&mut self, session: &str, stream: &str) -> Option<&mut Stream> {
        let session = self.sessions.get_mut(session)?;
        session.streams.get_mut(stream).map(|it| &mut **it)
    }

    fn remove(&mut self, name: &str) -> Option<SessionStreams> {
        let session = self.sessions.remove(name)?;
        self.bytes -= session.bytes();
        self.by_bytes.remove(&(session.bytes(), session.number));
        Some(session)
    }
}

impl EventStore for MemoryEventStore {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let count = write.events.len() as u64;
        if count == 0 && !(write.ends && self.state.lock().stream(session, stream).is_some()) {
            return Ok(Some(Vec::new()));
        }
        let last = self.write(session, stream, write)?;
        Ok(last.map(|last| (last - count + 1..=last).collect()))
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.sweep(now, self.bounds.age);
        let replay = state.with(session, |session| {
            session.expire(now, self.bounds.age);
            session.after(stream, index, max)
        });
        Ok(replay.unwrap_or(Replay::Lost))
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        let waker = {
            let mut state = self.state.lock();
            let found = state.stream(session, stream);
            let Some(stream) = found.filter(|it| it.last == index && !it.ended) else {
                return Ok(());
            };
            stream.waiters.wait()
        };
        // Every change from here on wakes it, even before its first poll.
        waker.await;
        Ok(())
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.begin(session, |session, now| {
            session.claim(stream, claim, now + lasts, &self.bounds)
        })
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        let mut state = self.state.lock();
        let found = state.stream(session, stream);
        let Some(stream) = found.filter(|it| it.epoch == epoch && !it.ended) else {
            return Ok(false);
        };
        stream.leased_until = Some(Instant::now() + lasts);
        Ok(true)
    }

    async fn forget(&self, session: &str) -> Result<()> {
        let forgotten = self.state.lock().remove(session);
        // The memory is freed after the lock is released.
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
        let state = self.state.lock();
        f.debug_struct("MemoryEventStore")
            .field("sessions", &state.sessions.len())
            .field("bytes", &state.bytes)
            .finish_non_exhaustive()
    }
}

/// The memory of an event in addition to its data, in bytes.
const EVENT_COST: usize = 64;
/// The time for which an open stream is kept without additions. It may belong to a call that takes so long, or to an idle
/// client. But the streams of a session that continues at another node are never ended.
const MAX_STREAM_IDLE: Duration = Duration::from_secs(24 * 60 * 60);

/// The limits of one session.
struct Bounds {
    session_bytes: usize,
    stream_bytes: usize,
    stream_events: usize,
    streams: usize,
    age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            session_bytes: 8 << 20,
            stream_bytes: 4 << 20,
            stream_events: 4096,
            streams: 1024,
            age: Duration::from_secs(5 * 60),
        }
    }
}

/// The streams of a session, and the order of their events.
#[derive(Default)]
struct SessionStreams {
    /// A number that distinguishes the session from others that hold as many bytes.
    number: u64,
    streams: HashMap<Box<str>, Box<Stream>>,
    bytes: usize,
    /// The number of additions so far.
    count: u64,
    /// The highest index of the streams that were forgotten before their end, here or in other sessions.
    forgotten: u64,
}

/// The last events of a stream, without gaps.
#[derive(Default)]
struct Stream {
    additions: VecDeque<Addition>,
    /// The number of events that are kept.
    count: usize,
    /// The index of the newest event, even if it is no longer kept.
    last: u64,
    bytes: usize,
    ended: bool,
    /// The number of the addition to the session with the newest event, and its time.
    newest: u64,
    touched: Option<Instant>,
    /// The epoch of the newest lease, and its expiry.
    epoch: u64,
    leased_until: Option<Instant>,
    waiters: Waiters,
}

/// Events that were added together. Their memory is freed once all of them are dropped.
struct Addition {
    events: EventBatch,
    /// The number of events that are dropped already.
    dropped: usize,
    since: Instant,
    /// The number of the addition in the session.
    number: u64,
}

impl SessionStreams {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The highest index of the streams that are known to have been forgotten before their end.
    fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Makes new streams count from after this index, as if earlier events had been dropped: each may be a forgotten stream,
    /// and no index may be used for two events.
    fn count_after(&mut self, forgotten: u64) {
        self.forgotten = self.forgotten.max(forgotten);
    }

    /// Writes to a stream. Returns `None` if the lease is not the newest.
    fn write(
        &mut self,
        stream: &str,
        write: StreamWrite,
        now: Instant,
        bounds: &Bounds,
    ) -> Result<Option<u64>> {
        let number = self.count + 1;
        let entry = self.entry(stream, bounds.streams)?;
        if write.lease.is_some_and(|lease| lease.epoch < entry.epoch) {
            return Ok(None);
        }
        if entry.ended && !write.events.is_empty() {
            return Err(Error::misuse("cannot add events: the stream has ended"));
        }
        if let Some(Lease { epoch, lasts }) = write.lease {
            entry.epoch = epoch;
            entry.leased_until = Some(now + lasts);
        }
        entry.ended |= write.ends;
        let before = entry.bytes;
        if !write.events.is_empty() {
            entry.push(Addition {
                events: write.events,
                dropped: 0,
                since: now,
                number,
            });
        }
        while entry.bytes > bounds.stream_bytes || entry.count > bounds.stream_events {
            entry.drop_oldest();
        }
        entry.waiters.wake();
        let index = entry.last;
        let after = entry.bytes;
        self.count = number;
        self.bytes = self.bytes - before + after;
        while self.bytes > bounds.session_bytes && self.drop_oldest() {}
        Ok(Some(index))
    }

    /// Leases a stream until `until`. Returns the epoch of the lease.
    fn claim(
        &mut self,
        stream: &str,
        claim: ClaimMode,
        until: Instant,
        bounds: &Bounds,
    ) -> Result<Option<u64>> {
        let now = Instant::now();
        let stream = self.entry(stream, bounds.streams)?;
        let holds = stream.leased_until.is_some_and(|until| until > now);
        if stream.ended || holds && claim == ClaimMode::IfFree {
            return Ok(None);
        }
        stream.epoch += 1;
        stream.leased_until = Some(until);
        stream.touched = Some(now);
        stream.waiters.wake();
        Ok(Some(stream.epoch))
    }

    /// Returns a stream, which is created if needed.
    fn entry(&mut self, stream: &str, max: usize) -> Result<&mut Stream> {
        self.make_room_for(stream, max)?;
        if !self.streams.contains_key(stream) {
            let begun = Stream {
                last: self.forgotten,
                // Most streams never hold more than one addition at a time.
                additions: VecDeque::with_capacity(1),
                ..Stream::default()
            };
            self.streams.insert(stream.into(), Box::new(begun));
        }
        let entry = self.streams.get_mut(stream);
        entry
            .map(|it| &mut **it)
            .ok_or_else(|| Error::internal("stream not found"))
    }

    /// Makes space for a stream. Open streams must be kept, because their indexes would restart otherwise; ended ones can be
    /// evicted.
    fn make_room_for(&mut self, stream: &str, max: usize) -> Result<()> {
        if self.streams.len() < max || self.streams.contains_key(stream) {
            return Ok(());
        }
        let ended = self.streams.iter().filter(|(_, stream)| stream.ended);
        let oldest = ended.min_by_key(|(_, stream)| stream.newest);
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return Err(Error::limit(format!(
                "too many open streams: the session has {max}; raise `max_streams` of the event store"
            )));
        };
        if let Some(stream) = self.streams.remove(&name) {
            self.bytes -= stream.bytes;
        }
        Ok(())
    }

    /// Drops the oldest event of all streams, and those that were added together with it. Returns false if there is none.
    fn drop_oldest(&mut self) -> bool {
        let holding = self.streams.iter_mut().filter_map(|(name, stream)| {
            let number = stream.additions.front()?.number;
            Some((number, name, stream))
        });
        let Some((_, name, stream)) = holding.min_by_key(|(number, ..)| *number) else {
            return false;
        };
        self.bytes -= stream.drop_addition();
        if stream.is_over() {
            let name = name.clone();
            self.streams.remove(&name);
        }
        true
    }

    /// Drops events older than `age`, and streams without events that have ended or have been silent for too long.
    fn expire(&mut self, now: Instant, age: Duration) {
        let max_idle = age.max(MAX_STREAM_IDLE);
        let (mut freed, mut forgotten) = (0, self.forgotten);
        self.streams.retain(|_, stream| {
            let is_old = |it: &Addition| now.saturating_duration_since(it.since) > age;
            while stream.additions.front().is_some_and(is_old) {
                freed += stream.drop_addition();
            }
            let since = stream.touched.unwrap_or(now);
            if !stream.ended && now.saturating_duration_since(since) > max_idle {
                forgotten = forgotten.max(stream.last);
                return false;
            }
            !stream.is_over()
        });
        self.bytes -= freed;
        self.forgotten = forgotten;
    }

    fn after(&self, stream: &str, index: u64, max: usize) -> Replay {
        let found = self.streams.get(stream);
        found.map_or(Replay::Lost, |stream| stream.after(index, max))
    }
}

impl Addition {
    /// The number of events that are left.
    fn count(&self) -> usize {
        self.events.len() - self.dropped
    }

    /// The number of bytes that dropping the addition frees.
    fn cost(&self) -> usize {
        self.events.bytes() + self.count() * EVENT_COST
    }
}

impl Stream {
    /// Whether the stream has ended, and none of its events are left.
    fn is_over(&self) -> bool {
        self.ended && self.additions.is_empty()
    }

    fn push(&mut self, addition: Addition) {
        self.last += addition.count() as u64;
        self.newest = addition.number;
        self.touched = Some(addition.since);
        self.count += addition.count();
        self.bytes += addition.cost();
        self.additions.push_back(addition);
    }

    /// Drops the oldest event.
    fn drop_oldest(&mut self) {
        match self.additions.front_mut() {
            Some(oldest) if oldest.count() > 1 => {
                oldest.dropped += 1;
                self.count -= 1;
                self.bytes -= EVENT_COST;
            }
            _ => {
                self.drop_addition();
            }
        }
    }

    /// Drops the oldest event, and those that were added together with it. Returns the number of freed bytes.
    fn drop_addition(&mut self) -> usize {
        let Some(oldest) = self.additions.pop_front() else {
            return 0;
        };
        self.count -= oldest.count();
        self.bytes -= oldest.cost();
        oldest.cost()
    }

    fn after(&self, index: u64, max: usize) -> Replay {
        let purged = self.last - self.count as u64;
        if index < purged || index > self.last {
            return Replay::Lost;
        }
        let skipped = usize::try_from(index - purged).unwrap_or(usize::MAX);
        let rest = self.count - skipped;
        let places = self.additions.iter().flat_map(|addition| {
            let places = addition.dropped..addition.events.len();
            places.map(|place| (&addition.events, place))
        });
        let events = places.skip(skipped).take(max);
        Replay::Events {
            events: events.map(|(events, place)| events.get(place)).collect(),
            ended: self.ended && rest <= max,
        }
    }
}

/// The tasks that wait for a change of a stream. They are woken when it is dropped, too.
#[derive(Default)]
struct Waiters(Option<Arc<Notify>>);

impl Waiters {
    fn wait(&mut self) -> OwnedNotified {
        Arc::clone(self.0.get_or_insert_default()).notified_owned()
    }

    fn wake(&mut self) {
        if let Some(waiters) = self.0.take() {
            waiters.notify_waiters();
        }
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        self.wake();
    }
}

//! The streams of one session in memory.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use super::{EventBatch, Replay};
use crate::{Error, Result};

/// What an event costs beyond its data, so that many small ones are counted for what they are.
const EVENT_COST: usize = 64;
/// How long a stream that has not ended is remembered though nothing is added to it. It may be that of a call that takes so
/// long, or of a client that was told nothing; but nobody ends the streams of a session that goes on elsewhere.
const MAX_SILENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// What one session may hold.
pub(super) struct Bounds {
    pub(super) session_bytes: usize,
    pub(super) stream_bytes: usize,
    pub(super) stream_events: usize,
    pub(super) streams: usize,
    pub(super) age: Duration,
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

/// The streams of a session, and the order in which their events came.
#[derive(Default)]
pub(super) struct Session {
    streams: HashMap<Box<str>, Box<Stream>>,
    bytes: usize,
    /// How often events have been added.
    count: u64,
    /// The highest index of the streams that were forgotten before their end, here or in other sessions.
    forgotten: u64,
}

/// The last events of a stream, without gaps.
#[derive(Default)]
struct Stream {
    kept: VecDeque<Kept>,
    /// How many events are kept.
    count: usize,
    /// The index of the newest event, also where it is not kept any more.
    last: u64,
    bytes: usize,
    ended: bool,
    /// With which addition to the session its newest event came, and when.
    newest: u64,
    touched: Option<Instant>,
}

/// What was added at once. Its memory is free once all of it is dropped.
struct Kept {
    events: EventBatch,
    /// How many of the events are dropped already.
    dropped: usize,
    since: Instant,
    /// Which addition to the session it was.
    number: u64,
}

impl Session {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The highest index of the streams that are known to have been forgotten before their end.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Streams that begin from here on count from after this index, as if what is before was dropped: each may be one that was
    /// forgotten, and no index may stand for two events.
    pub(super) fn count_after(&mut self, forgotten: u64) {
        self.forgotten = self.forgotten.max(forgotten);
    }

    pub(super) fn append(
        &mut self,
        stream: &str,
        events: EventBatch,
        now: Instant,
        bounds: &Bounds,
    ) -> Result<u64> {
        self.make_room_for(stream, bounds.streams)?;
        self.count += 1;
        let entry = match self.streams.get_mut(stream) {
            Some(entry) => entry,
            None => self.streams.entry(stream.into()).or_insert_with(|| {
                Box::new(Stream {
                    last: self.forgotten,
                    // Of most there is never more than one at a time.
                    kept: VecDeque::with_capacity(1),
                    ..Stream::default()
                })
            }),
        };
        if entry.ended {
            return Err(Error::misuse(
                "the stream has ended, and takes no more events",
            ));
        }
        let before = entry.bytes;
        entry.push(Kept {
            events,
            dropped: 0,
            since: now,
            number: self.count,
        });
        while entry.bytes > bounds.stream_bytes || entry.count > bounds.stream_events {
            entry.drop_oldest();
        }
        let index = entry.last;
        self.bytes = self.bytes - before + entry.bytes;
        while self.bytes > bounds.session_bytes && self.drop_oldest() {}
        Ok(index)
    }

    /// Streams that go on must be remembered, or their indexes would begin anew; those that have ended need not be.
    fn make_room_for(&mut self, stream: &str, max: usize) -> Result<()> {
        if self.streams.len() < max || self.streams.contains_key(stream) {
            return Ok(());
        }
        let ended = self.streams.iter().filter(|(_, stream)| stream.ended);
        let oldest = ended.min_by_key(|(_, stream)| stream.newest);
        let Some(name) = oldest.map(|(name, _)| name.clone()) else {
            return Err(Error::limit(format!(
                "the session has {max} streams that have not ended; raise max_streams of the event store"
            )));
        };
        if let Some(stream) = self.streams.remove(&name) {
            self.bytes -= stream.bytes;
        }
        Ok(())
    }

    /// Drops the oldest event of all streams, and those that came with it. False where there is none.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let holding = self.streams.iter_mut().filter_map(|(name, stream)| {
            let number = stream.kept.front()?.number;
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

    /// Drops what is older than `age`, and streams of which nothing is left and that have ended, or been silent for too long.
    pub(super) fn expire(&mut self, now: Instant, age: Duration) {
        let silence = age.max(MAX_SILENCE);
        let (mut freed, mut forgotten) = (0, self.forgotten);
        self.streams.retain(|_, stream| {
            let is_old = |kept: &Kept| now.saturating_duration_since(kept.since) > age;
            while stream.kept.front().is_some_and(is_old) {
                freed += stream.drop_addition();
            }
            let since = stream.touched.unwrap_or(now);
            if !stream.ended && now.saturating_duration_since(since) > silence {
                forgotten = forgotten.max(stream.last);
                return false;
            }
            !stream.is_over()
        });
        self.bytes -= freed;
        self.forgotten = forgotten;
    }

    pub(super) fn after(&self, stream: &str, index: u64, max: usize) -> Replay {
        let found = self.streams.get(stream);
        found.map_or(Replay::Lost, |stream| stream.after(index, max))
    }

    pub(super) fn end(&mut self, stream: &str) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.ended = true;
        }
    }
}

impl Kept {
    /// How many events are left.
    fn count(&self) -> usize {
        self.events.len() - self.dropped
    }

    /// How many bytes are free once it is dropped.
    fn cost(&self) -> usize {
        self.events.bytes() + self.count() * EVENT_COST
    }
}

impl Stream {
    /// Whether it has ended, and nothing of it is left.
    fn is_over(&self) -> bool {
        self.ended && self.kept.is_empty()
    }

    fn push(&mut self, kept: Kept) {
        self.last += kept.count() as u64;
        self.newest = kept.number;
        self.touched = Some(kept.since);
        self.count += kept.count();
        self.bytes += kept.cost();
        self.kept.push_back(kept);
    }

    /// Drops the oldest event.
    fn drop_oldest(&mut self) {
        match self.kept.front_mut() {
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

    /// Drops the oldest event, and those that came with it. Returns how many bytes that frees.
    fn drop_addition(&mut self) -> usize {
        let Some(oldest) = self.kept.pop_front() else {
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
        let places = self.kept.iter().flat_map(|kept| {
            let places = kept.dropped..kept.events.len();
            places.map(|place| (&kept.events, place))
        });
        let events = places.skip(skipped).take(max);
        Replay::Events {
            events: events.map(|(events, place)| events.get(place)).collect(),
            ended: self.ended && rest <= max,
        }
    }
}

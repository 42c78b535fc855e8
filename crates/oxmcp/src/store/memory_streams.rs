//! The streams of one session in memory.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::Replay;
use crate::{Error, Result};

/// What an event costs beyond its data, so that many small ones are counted for what they are.
const EVENT_COST: usize = 64;

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
    streams: HashMap<String, Stream>,
    bytes: usize,
    /// How many events there have been.
    count: u64,
}

/// The last events of a stream, without gaps.
#[derive(Default)]
struct Stream {
    events: VecDeque<Kept>,
    /// The index of the newest event, also where it is not kept any more.
    last: u64,
    bytes: usize,
    ended: bool,
    /// Which event of the session was the newest one of this stream.
    newest: u64,
}

struct Kept {
    data: Bytes,
    since: Instant,
    /// Which event of the session it is.
    number: u64,
}

impl Kept {
    fn cost(&self) -> usize {
        EVENT_COST.saturating_add(self.data.len())
    }
}

impl Session {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(super) fn append(
        &mut self,
        stream: &str,
        data: Bytes,
        now: Instant,
        bounds: &Bounds,
    ) -> Result<u64> {
        self.make_room_for(stream, bounds.streams)?;
        self.count += 1;
        let entry = self.streams.entry(stream.to_owned()).or_default();
        if entry.ended {
            return Err(Error::misuse(
                "the stream has ended, and takes no more events",
            ));
        }
        let before = entry.bytes;
        let kept = Kept {
            data,
            since: now,
            number: self.count,
        };
        entry.push(kept);
        while entry.bytes > bounds.stream_bytes || entry.events.len() > bounds.stream_events {
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

    /// Drops the oldest event of all streams. False where there is none.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let number = |stream: &Stream| stream.events.front().map(|oldest| oldest.number);
        let holding = self.streams.values_mut().filter_map(|stream| {
            let number = number(stream)?;
            Some((number, stream))
        });
        let Some((_, stream)) = holding.min_by_key(|(number, _)| *number) else {
            return false;
        };
        self.bytes -= stream.drop_oldest();
        true
    }

    /// Drops what is older than `age`, and streams that have ended and of which nothing is left.
    pub(super) fn expire(&mut self, now: Instant, age: Duration) {
        let mut freed = 0;
        self.streams.retain(|_, stream| {
            let is_old = |event: &Kept| now.saturating_duration_since(event.since) > age;
            while stream.events.front().is_some_and(is_old) {
                freed += stream.drop_oldest();
            }
            !(stream.ended && stream.events.is_empty())
        });
        self.bytes -= freed;
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

impl Stream {
    fn push(&mut self, event: Kept) {
        self.last += 1;
        self.newest = event.number;
        self.bytes = self.bytes.saturating_add(event.cost());
        self.events.push_back(event);
    }

    /// Returns how many bytes that frees.
    fn drop_oldest(&mut self) -> usize {
        let freed = self.events.pop_front().map_or(0, |event| event.cost());
        self.bytes -= freed;
        freed
    }

    fn after(&self, index: u64, max: usize) -> Replay {
        let purged = self.last - self.events.len() as u64;
        if index < purged || index > self.last {
            return Replay::Lost;
        }
        let skipped = usize::try_from(index - purged).unwrap_or(usize::MAX);
        let rest = self.events.len() - skipped;
        let events = self.events.iter().skip(skipped).take(max);
        Replay::Events {
            events: events.map(|event| event.data.clone()).collect(),
            ended: self.ended && rest <= max,
        }
    }
}

//! Encodes messages as events of a stream.

use std::{iter, time::Duration};

use memchr::{memchr, memrchr};
use oxmcp_protocol::framing::sse::OutgoingEvent;

use crate::store::EventId;

/// The interval after which a silent stream gets a comment. Proxies close streams that are silent for a minute.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
pub(crate) const COMMENT: &[u8] = b":\n\n";
/// The bytes of events that are stored together. A store that runs out of space evicts them together.
const PART: usize = 16 << 10;
/// The length of an event beyond its message, with an ID but without the name of its stream.
const AROUND: usize = 32;

/// The messages in the buffer of an outbox, which are lines.
pub(crate) fn messages(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    iter::from_fn(move || {
        let end = memchr(b'\n', lines)?;
        let (message, rest) = lines.split_at(end);
        lines = rest.get(1..).unwrap_or_default();
        Some(message)
    })
}

/// Divides messages, which are lines, into parts that are short unless a message is long.
pub(crate) fn parts(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    iter::from_fn(move || {
        let head = lines.get(..PART).unwrap_or(lines);
        let end = memrchr(b'\n', head).or_else(|| memchr(b'\n', lines))?;
        let (part, rest) = lines.split_at(end + 1);
        lines = rest;
        Some(part)
    })
}

/// Appends the messages of an outbox as events without IDs, which cannot be resumed.
pub(crate) fn encode(out: &mut Vec<u8>, lines: &[u8]) {
    // Writing reserves the maximum room for every event, even the last.
    out.reserve(lines.len() + lines.len() / 8 + OutgoingEvent::ROOM);
    for data in messages(lines) {
        let event = OutgoingEvent {
            data,
            ..OutgoingEvent::default()
        };
        event.write(out);
    }
}

/// Writes events of a stream that can be resumed.
pub(crate) struct EventWriter<'a> {
    /// The ID of the first event, if the name of the stream is valid in IDs.
    first: Option<EventId<'a>>,
    out: Vec<u8>,
}

impl<'a> EventWriter<'a> {
    pub(crate) fn new(stream: &'a str) -> Self {
        Self {
            first: EventId::new(stream, 1),
            out: Vec::new(),
        }
    }

    /// Reserves space for this many more events, with this many bytes of data in total.
    pub(crate) fn reserve(&mut self, events: usize, bytes: usize) {
        let around = AROUND + self.first.map_or(0, |id| id.stream().len());
        // Writing reserves the maximum room for every event, even the last.
        self.out
            .reserve(bytes + events * around + OutgoingEvent::ROOM);
    }

    /// Appends an event. Without an index it has no ID.
    pub(crate) fn event(&mut self, index: Option<u64>, data: &[u8]) {
        self.id(index);
        let event = OutgoingEvent {
            data,
            ..OutgoingEvent::default()
        };
        event.write(&mut self.out);
    }

    /// Appends an event without data that tells the client when to reconnect.
    pub(crate) fn retry(&mut self, index: u64, retry: Duration) {
        self.id(Some(index));
        let event = OutgoingEvent {
            retry: Some(retry),
            ..OutgoingEvent::default()
        };
        event.write(&mut self.out);
    }

    /// Starts an event with its ID, which cannot contain a line break.
    fn id(&mut self, index: Option<u64>) {
        let id = self.first.zip(index);
        if let Some(id) = id.and_then(|(first, index)| first.with_index(index)) {
            self.out.extend_from_slice(b"id: ");
            id.write(&mut self.out);
            self.out.push(b'\n');
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let found = |lines: &'static str| messages(lines.as_bytes()).collect::<Vec<_>>();
        assert_eq!(found(""), Vec::<&[u8]>::new());
        assert_eq!(found("a\n"), [b"a"]);
        assert_eq!(found("a\nb\n"), [b"a", b"b"]);
    }

    #[test]
    fn parts_hold_whole_messages_and_stay_short() {
        let line = |length: usize| [vec![b'x'; length], vec![b'\n']].concat();
        let (small, long) = (line(PART / 3), line(PART * 2));
        let found = |lines: &[&Vec<u8>]| {
            let lines = lines.iter().copied().flatten().copied().collect::<Vec<_>>();
            let found = parts(&lines).map(<[u8]>::to_vec).collect::<Vec<_>>();
            assert_eq!(found.concat(), lines);
            found.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert!(found(&[]).is_empty());
        assert_eq!(found(&[&small]), [small.len()]);
        let fitting = line(PART - 1);
        assert_eq!(found(&[&fitting, &small]), [PART, small.len()]);
        let two = small.len() * 2;
        assert_eq!(found(&[&small; 5]), [two, two, small.len()]);
        assert_eq!(found(&[&long, &small]), [long.len(), small.len()]);
        assert_eq!(
            found(&[&small, &long, &small]),
            [small.len(), long.len(), small.len()]
        );
    }
}

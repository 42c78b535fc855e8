//! Messages as events of a stream.

use std::time::Duration;

use crate::codec::sse::Outgoing;

/// How often a stream on which nothing happens says that it is alive: proxies close what is silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What it says.
pub(super) const COMMENT: &[u8] = b":\n\n";

/// The messages of an outbox, which are lines.
pub(super) fn messages(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    // A list may be long, and most outboxes hold one message: a look at each byte costs more than all the rest.
    let ends = memchr::memchr_iter(b'\n', lines).chain([lines.len()]);
    let mut start = 0;
    ends.filter_map(move |end| lines.get(std::mem::replace(&mut start, end + 1)..end))
        .filter(|line| !line.is_empty())
}

/// Appends the messages of an outbox as events that cannot be asked for again.
pub(super) fn encode(out: &mut Vec<u8>, lines: &[u8]) {
    out.reserve(lines.len() + lines.len() / 8);
    for line in messages(lines) {
        event(out, None, line);
    }
}

/// Appends one event.
pub(super) fn event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    let event = Outgoing {
        id,
        data,
        ..Outgoing::default()
    };
    event.write(out);
}

/// An event without data that tells the client when to come back.
pub(super) fn retry_event(id: Option<&str>, retry: Duration) -> Vec<u8> {
    let mut out = Vec::new();
    let event = Outgoing {
        id,
        retry: Some(retry),
        ..Outgoing::default()
    };
    event.write(&mut out);
    out
}

//! Messages as events of a stream.

use std::{iter, time::Duration};

use memchr::memchr;

use crate::codec::sse::Outgoing;

/// How often a stream on which nothing happens says that it is alive: proxies close what is silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What it says.
pub(super) const COMMENT: &[u8] = b":\n\n";

/// The messages of an outbox, which are lines.
pub(super) fn messages(mut lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    iter::from_fn(move || {
        let end = memchr(b'\n', lines)?;
        let (message, rest) = lines.split_at(end);
        lines = rest.get(1..).unwrap_or_default();
        Some(message)
    })
}

/// Whether there is one message, and no more.
pub(super) fn is_alone(lines: &[u8]) -> bool {
    memchr(b'\n', lines).is_some_and(|end| end + 1 == lines.len())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let found = |lines: &'static str| messages(lines.as_bytes()).collect::<Vec<_>>();
        assert_eq!(found(""), Vec::<&[u8]>::new());
        assert_eq!(found("a\n"), [b"a"]);
        assert_eq!(found("a\nb\n"), [b"a", b"b"]);
        let alone = ["a\n", "", "a\nb\n"].map(|lines| is_alone(lines.as_bytes()));
        assert_eq!(alone, [true, false, false]);
    }
}

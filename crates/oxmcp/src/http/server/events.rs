//! Messages as events of a stream.

use std::time::Duration;

/// How often a stream on which nothing happens says that it is alive: proxies close what is silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What it says.
pub(super) const COMMENT: &[u8] = b":\n\n";

/// Appends the messages of an outbox, which are lines, as events without ids.
pub(super) fn encode(out: &mut Vec<u8>, lines: &[u8]) {
    for line in messages(lines) {
        event(out, None, line);
    }
}

/// The messages of an outbox.
pub(super) fn messages(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// Appends one event.
pub(super) fn event(out: &mut Vec<u8>, id: Option<&str>, data: &[u8]) {
    out.reserve(data.len() + 32);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// An event without data that tells the client when to come back.
pub(super) fn retry_event(id: Option<&str>, retry: Duration) -> Vec<u8> {
    let mut out = format!("retry: {}\n", retry.as_millis()).into_bytes();
    event(&mut out, id, b"");
    out
}

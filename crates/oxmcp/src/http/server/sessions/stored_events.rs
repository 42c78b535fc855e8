//! Events as they are stored and sent: messages, and notes between them, which clients do not see.

use bytes::Bytes;

use crate::http::server::event_encoding::EventWriter;

/// The prefix of notes, which the nodes of a cluster leave in streams. Messages never start with it.
const NOTE: &[u8] = br#"{"oxmcp":"#;
/// The prefix of notes that clients do not even resume from.
const SILENT: &[u8] = br#"{"oxmcp":{"sent":"#;

/// Whether an event is a note.
pub(crate) fn is_note(data: &[u8]) -> bool {
    data.starts_with(NOTE)
}

/// Appends an event in the form that clients see. A note becomes an event with only an ID to resume from, if the revision has such
/// events.
pub(crate) fn write(out: &mut EventWriter<'_>, index: Option<u64>, data: &[u8], has_empty: bool) {
    if !data.is_empty() && !is_note(data) {
        return out.event(index, data);
    }
    if has_empty && index.is_some() && !data.starts_with(SILENT) {
        out.event(index, b"");
    }
}

/// Encodes those events after `seen` that are `sent`.
pub(crate) fn encode(
    stream: &str,
    seen: u64,
    events: &[Bytes],
    has_empty: bool,
    mut is_sent: impl FnMut(u64, &[u8]) -> bool,
) -> Vec<u8> {
    let length = events.iter().map(Bytes::len).sum();
    let mut out = EventWriter::new(stream);
    out.reserve(events.len(), length);
    for (index, data) in (seen + 1..).zip(events) {
        if is_sent(index, data) {
            write(&mut out, Some(index), data, has_empty);
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_see_only_messages() {
        let events = [
            Bytes::from_static(br#"{"oxmcp":"opened"}"#),
            Bytes::from_static(b"[1]"),
            Bytes::from_static(br#"{"oxmcp":{"sent":2}}"#),
            Bytes::new(),
        ];
        let encoded = |has_empty| {
            let out = encode("s0", 0, &events, has_empty, |_, _| true);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(encoded(false), "id: s0_2\ndata: [1]\n\n");
        let all = "id: s0_1\ndata: \n\nid: s0_2\ndata: [1]\n\nid: s0_4\ndata: \n\n";
        assert_eq!(encoded(true).replace("data:\n", "data: \n"), all);
    }
}

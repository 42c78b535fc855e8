//! Events as they are stored and sent: messages, and records between them, which clients do not see.

use std::time::Duration;

use bytes::Bytes;
use oxmcp_protocol::RequestId;
use serde::{Deserialize, Serialize};

use crate::http::server::event_encoding::EventWriter;

/// How long the lease of a writer lasts: so long it takes to notice that a node is gone.
pub(super) const LEASE: Duration = Duration::from_secs(5);
/// How often it is renewed while there is nothing to write.
pub(super) const RENEWAL: Duration = Duration::from_millis(1500);

/// What a record begins with, and no message does.
const RECORD: &[u8] = br#"{"oxmcp":"#;

/// A record in a stream, for the nodes that come to it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Record {
    /// The request that the stream answers: its first event.
    Request(RequestId),
    /// Those of a batch.
    Batch(Vec<RequestId>),
    /// A client has come to it by GET.
    Opened,
    /// All events up to this one were taken by a client.
    Sent(u64),
}

#[derive(Serialize, Deserialize)]
struct Stored<R> {
    oxmcp: R,
}

impl Record {
    /// It as a line.
    pub(super) fn line(&self) -> Vec<u8> {
        let stored = Stored { oxmcp: self };
        let mut line = serde_json::to_vec(&stored).expect("a record is always JSON");
        line.push(b'\n');
        line
    }

    /// The record that an event is. `None` where it is a message.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        if !data.starts_with(RECORD) {
            return None;
        }
        let stored: Stored<Self> = serde_json::from_slice(data).ok()?;
        Some(stored.oxmcp)
    }
}

/// Appends an event as a client sees it: nothing of a record but an id to come back with, where its revision has such events.
pub(super) fn write(out: &mut EventWriter<'_>, index: Option<u64>, data: &[u8], has_empty: bool) {
    if !data.is_empty() && !data.starts_with(RECORD) {
        return out.event(index, data);
    }
    // That all was sent changes nothing for the client.
    let is_silent = matches!(Record::read(data), Some(Record::Sent(_)));
    if has_empty && index.is_some() && !is_silent {
        out.event(index, b"");
    }
}

/// Encodes events that are sent again. `seen` counts them.
pub(super) fn encode(stream: &str, seen: &mut u64, events: &[Bytes], has_empty: bool) -> Vec<u8> {
    let length = events.iter().map(Bytes::len).sum();
    let mut out = EventWriter::new(stream, events.len(), length);
    for data in events {
        *seen += 1;
        write(&mut out, Some(*seen), data, has_empty);
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_messages_are_none() {
        let ids = vec![RequestId::Number(-1), RequestId::from("_ü\"")];
        let first = Record::Request(RequestId::from("1"));
        for record in [first, Record::Batch(ids), Record::Opened, Record::Sent(7)] {
            let line = record.line();
            assert_eq!(line.iter().filter(|it| **it == b'\n').count(), 1);
            assert_eq!(Record::read(line.trim_ascii_end()), Some(record));
        }
        for message in ["", "{}", r#"[{"oxmcp":"opened"}]"#, r#"{"oxmcp":"other"}"#] {
            assert_eq!(Record::read(message.as_bytes()), None);
        }
    }

    #[test]
    fn clients_see_messages_and_no_records() {
        let events = [
            Record::Opened.line().into(),
            Bytes::from_static(b"[1]"),
            Record::Sent(2).line().into(),
            Bytes::new(),
        ];
        let encoded = |has_empty| {
            let mut seen = 0;
            let out = encode("s0", &mut seen, &events, has_empty);
            assert_eq!(seen, 4);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(encoded(false), "id: s0_2\ndata: [1]\n\n");
        let all = "id: s0_1\ndata: \n\nid: s0_2\ndata: [1]\n\nid: s0_4\ndata: \n\n";
        assert_eq!(encoded(true).replace("data:\n", "data: \n"), all);
    }
}

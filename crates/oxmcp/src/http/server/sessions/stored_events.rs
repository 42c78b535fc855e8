//! Events as they are stored and sent: messages, and records between them, which clients do not see.

use std::{borrow::Cow, collections::HashMap, hash::BuildHasher, time::Duration};

use bytes::Bytes;
use memchr::{memchr_iter, memmem};
use oxmcp_protocol::{Meta, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::server::event_encoding::EventWriter;

/// The duration of a writer's lease, which is also the time to detect that a node is gone.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// The interval at which the lease is renewed while there is nothing to write.
pub(crate) const RENEWAL: Duration = Duration::from_millis(1500);

/// The prefix of records. Messages never start with it.
const RECORD: &[u8] = br#"{"oxmcp":"#;

/// A record in a stream, for other nodes that take over the stream.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Record {
    /// The request that the stream answers. It is the first event, and repeated, because a store evicts old events.
    Request(RequestId),
    /// The requests of the batch that the stream answers.
    Batch(Vec<RequestId>),
    /// A client has opened the stream with GET.
    Opened,
    /// A client has read all events up to this one.
    Sent(u64),
}

#[derive(Serialize, Deserialize)]
struct Stored<R> {
    oxmcp: R,
}

impl Record {
    /// The record as one line of JSON, with its line break.
    pub(crate) fn line(&self) -> Vec<u8> {
        let stored = Stored { oxmcp: self };
        let mut line = serde_json::to_vec(&stored).expect("a record is always JSON");
        line.push(b'\n');
        line
    }

    /// Parses an event as a record. `None` if it is a message.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        if !data.starts_with(RECORD) {
            return None;
        }
        let stored: Stored<Self> = serde_json::from_slice(data).ok()?;
        Some(stored.oxmcp)
    }
}

/// The numbers of events and bytes after which the record of the answered requests is repeated. A store that keeps 4096 events of a
/// stream, or 4 MiB, always has one.
const REPEATED_AFTER: (usize, usize) = (2000, 1 << 20);

/// The record of the requests that a stream answers.
pub(crate) struct Opening {
    line: Vec<u8>,
    /// The numbers of events and bytes since the record was last stored. `None` before that.
    followed: Option<(usize, usize)>,
}

impl Opening {
    pub(crate) fn new(requests: &Record) -> Self {
        Self {
            line: requests.line(),
            followed: None,
        }
    }

    /// The record as a line, if it must be stored before these lines.
    pub(crate) fn before(&mut self, lines: &[u8]) -> Option<Vec<u8>> {
        let added = (memchr_iter(b'\n', lines).count(), lines.len());
        let (events, bytes) = self.followed.unwrap_or(REPEATED_AFTER);
        let is_due = events >= REPEATED_AFTER.0 || bytes >= REPEATED_AFTER.1;
        let (events, bytes) = if is_due { (0, 0) } else { (events, bytes) };
        self.followed = Some((events + added.0, bytes + added.1));
        is_due.then(|| self.line.clone())
    }
}

/// Appends an event in the form that clients see. A record becomes an event with only an ID to resume from, if the revision has
/// such events. A change that an earlier event has announced is omitted.
pub(crate) fn write(
    out: &mut EventWriter<'_>,
    index: Option<u64>,
    data: &[u8],
    has_empty: bool,
    told: Option<&mut ToldChanges>,
) {
    if let (Some(index), Some(told)) = (index, told)
        && told.note(index, data)
    {
        return;
    }
    if !data.is_empty() && !data.starts_with(RECORD) {
        return out.event(index, data);
    }
    // The record that all events were sent is irrelevant to the client.
    let is_silent = matches!(Record::read(data), Some(Record::Sent(_)));
    if has_empty && index.is_some() && !is_silent {
        out.event(index, b"");
    }
}

/// Encodes events that are replayed, and advances `seen` by one for each.
pub(crate) fn encode(
    stream: &str,
    seen: &mut u64,
    events: &[Bytes],
    has_empty: bool,
    mut told: Option<&mut ToldChanges>,
) -> Vec<u8> {
    let length = events.iter().map(Bytes::len).sum();
    let mut out = EventWriter::new(stream);
    out.reserve(events.len(), length);
    for data in events {
        *seen += 1;
        let told = told.as_deref_mut();
        write(&mut out, Some(*seen), data, has_empty, told);
    }
    out.finish()
}

/// The number of change notifications that a stream remembers: as many as the events that a store keeps by default.
const MAX_TOLD: usize = 4096;

/// The changes that a GET stream has announced. Each node that has the session adds a notification of a change, and only the first
/// is sent.
#[derive(Default)]
pub(crate) struct ToldChanges {
    /// The index of the first event that announces a change, by the change's hash.
    first: HashMap<u64, u64>,
}

/// The parts of a change notification that identify the changes and their subject.
#[derive(Deserialize)]
struct ChangeNotification<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: ChangeParams<'a>,
}

#[derive(Deserialize)]
struct ChangeParams<'a> {
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

impl ToldChanges {
    /// Records an event of the stream. Returns whether earlier events announce the same changes.
    pub(crate) fn note(&mut self, index: u64, data: &[u8]) -> bool {
        // Few events are change notifications.
        if memmem::find(data, Meta::CHANGES.as_bytes()).is_none() {
            return false;
        }
        let Ok(notification) = serde_json::from_slice::<ChangeNotification<'_>>(data) else {
            return false;
        };
        let ChangeNotification { method, params } = notification;
        let changes = params.meta.get(Meta::CHANGES).and_then(Value::as_str);
        let Some(changes) = changes else {
            return false;
        };
        let mut is_told = true;
        for change in changes.split(' ') {
            let hash = self.first.hasher().hash_one((&method, &params.uri, change));
            let first = self.first.entry(hash).or_insert(index);
            *first = index.min(*first);
            is_told &= *first < index;
        }
        if self.first.len() > MAX_TOLD {
            let newest = self.first.values().copied().max().unwrap_or_default();
            let oldest = newest.saturating_sub(MAX_TOLD as u64 / 2);
            self.first.retain(|_, first| *first > oldest);
        }
        is_told
    }

    /// Forgets all changes, when other nodes no longer add notifications of them.
    pub(crate) fn clear(&mut self) {
        self.first = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_are_distinguished_from_messages() {
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
    fn stream_requests_are_recorded_first_and_periodically() {
        let record = Record::Request(RequestId::from("1"));
        let mut opening = Opening::new(&record);
        let mut before = |lines: &[u8]| opening.before(lines);
        assert_eq!(before(b""), Some(record.line()));
        for lines in [
            b"{}\n".repeat(REPEATED_AFTER.0),
            vec![b'x'; REPEATED_AFTER.1],
        ] {
            assert_eq!(before(b"{}\n"), None);
            assert_eq!(before(&lines), None);
            assert_eq!(before(b"{}\n"), Some(record.line()));
        }
    }

    #[test]
    fn first_event_reporting_a_change_is_sent() {
        let updated = |uri: &str, changes: &str| {
            let params = json!({"uri": uri, "_meta": {"com.example/a": 1, Meta::CHANGES: changes}});
            let method = "notifications/resources/updated";
            json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
        };
        let mut told = ToldChanges::default();
        let mut note = |index, data: &str| told.note(index, data.as_bytes());
        assert!(!note(3, &updated("a:", "1.1 2.1")));
        for (index, changes) in [(4, "1.1"), (5, "2.1"), (6, "2.1 1.1")] {
            assert!(note(index, &updated("a:", changes)));
        }
        // Another change, another resource, and a message that is not a change notification.
        assert!(!note(7, &updated("a:", "2.1 1.2")));
        assert!(!note(8, &updated("b:", "1.1")));
        for _ in 0..2 {
            let text = json!({"method": "a", "params": {"_meta": {}, "data": Meta::CHANGES}});
            assert!(!note(9, &text.to_string()));
        }
        // An earlier event that another node has added, and a client that has not seen the first one yet.
        assert!(!note(2, &updated("b:", "1.1")) && note(8, &updated("b:", "1.1")));
        assert!(!note(3, &updated("a:", "1.1 2.1")) && note(4, &updated("a:", "1.1")));
        for index in 10..10 + 3 * MAX_TOLD as u64 {
            assert!(!note(index, &updated("c:", &index.to_string())));
            assert!(note(index + 1, &updated("c:", &index.to_string())));
        }
        assert!(told.first.len() <= MAX_TOLD);
    }

    #[test]
    fn clients_see_only_messages() {
        let events = [
            Record::Opened.line().into(),
            Bytes::from_static(b"[1]"),
            Record::Sent(2).line().into(),
            Bytes::new(),
        ];
        let encoded = |has_empty| {
            let mut seen = 0;
            let out = encode("s0", &mut seen, &events, has_empty, None);
            assert_eq!(seen, 4);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(encoded(false), "id: s0_2\ndata: [1]\n\n");
        let all = "id: s0_1\ndata: \n\nid: s0_2\ndata: [1]\n\nid: s0_4\ndata: \n\n";
        assert_eq!(encoded(true).replace("data:\n", "data: \n"), all);
    }
}

//! Records that nodes leave in streams for each other, and the changes that a stream has announced.

use std::{borrow::Cow, collections::HashMap, hash::BuildHasher};

use memchr::{memchr_iter, memmem};
use oxmcp_protocol::{Meta, RequestId};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use crate::{
    error::Result,
    http::server::sessions::{REPLAYED, StreamKey, is_note},
    store::Replay,
};

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
        if !is_note(data) {
            return None;
        }
        let stored: Stored<Self> = serde_json::from_slice(data).ok()?;
        Some(stored.oxmcp)
    }

    /// The record of a request, or of the requests in a batch.
    pub(crate) fn of_posted(id: Option<&RequestId>, batch: Option<&[u8]>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Message {
            id: Option<RequestId>,
            method: Option<IgnoredAny>,
        }

        let Some(batch) = batch else {
            return id.cloned().map(Self::Request);
        };
        let messages: Vec<&RawValue> = serde_json::from_slice(batch).ok()?;
        let ids = messages.into_iter().filter_map(|message| {
            let Message { id, method } = serde_json::from_str(message.get()).ok()?;
            id.filter(|_| method.is_some())
        });
        Some(Self::Batch(ids.collect()))
    }
}

/// Searches for a record in the events up to `from`, newest first. Returns the record, with the index of the last event that
/// may precede it, or without a record the index before all stored events.
pub(crate) async fn find_back<T>(
    key: &StreamKey,
    mut from: u64,
    wanted: impl Fn(Record) -> Option<T>,
) -> Result<(Option<T>, u64)> {
    let (mut step, mut grows) = (1, true);
    while from > 0 {
        let start = from.saturating_sub(step);
        let count = usize::try_from(from - start).unwrap_or(REPLAYED);
        match key.after(start, count).await? {
            Replay::Events { events, .. } => {
                let mut newest_first = events.iter().rev();
                let found = newest_first.find_map(|event| wanted(Record::read(event)?));
                if found.is_some() {
                    return Ok((found, from));
                }
                from = start;
                if grows {
                    step = (step * 2).min(REPLAYED as u64);
                }
            }
            // Older events are gone.
            Replay::Lost if step == 1 => break,
            Replay::Lost => {
                step /= 2;
                grows = false;
            }
        }
    }
    Ok((None, from))
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
    /// The record with this line.
    pub(crate) fn new(line: Vec<u8>) -> Self {
        Self {
            line,
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
    use crate::http::server::sessions::encode;

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
        let mut opening = Opening::new(record.line());
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
    fn only_sent_records_have_no_id() {
        let ids = vec![RequestId::Number(7)];
        let request = Record::Request(RequestId::from("sent"));
        for record in [request, Record::Batch(ids), Record::Opened, Record::Sent(7)] {
            let event = record.line().trim_ascii_end().to_vec().into();
            let encoded = encode("s0", 0, &[event], true, |_, _| true);
            assert_eq!(encoded.is_empty(), record == Record::Sent(7));
        }
    }

    #[test]
    fn stream_declares_only_the_requests_it_answers() {
        let id = RequestId::from(7);
        let batch = br#"[
            {"jsonrpc":"2.0","id":1,"method":"ping"},
            {"jsonrpc":"2.0","id":2,"result":{}},
            {"jsonrpc":"2.0","method":"notifications/initialized"},
            {"jsonrpc":"2.0","id":"a","method":"tools/list"}
        ]"#;
        let ids = vec![RequestId::from(1), RequestId::from("a")];
        let found = Record::of_posted(Some(&id), Some(&batch[..]));
        assert_eq!(found, Some(Record::Batch(ids)));
        assert_eq!(
            Record::of_posted(Some(&id), None),
            Some(Record::Request(id))
        );
    }
}

//! The backlog: messages that arrived while too much was unsent or the connection was held.

use std::collections::{BTreeMap, HashMap};

use oxmcp_json::Text;
use oxmcp_protocol::{
    RequestId,
    internal::{Envelope, Params},
};
use serde::Deserialize;

use crate::{
    session::inbound::batch::parse_batch,
    transport::{principal::Principal, traits::Frame},
};

/// The approximate memory of an entry in addition to its bytes and its requests, in bytes.
const OVERHEAD: usize = 160;
/// The approximate memory of an index entry for a request ID, in addition to its bytes.
const INDEXED: usize = 96;

/// Messages that will be answered, in the order of arrival.
///
/// The backlog prevents a deadlock of two peers that flood each other and both stop reading: neither would read the other's
/// responses. So responses, cancellations and notifications overtake waiting requests. Only a notification that arrived while
/// the connection was held waits, and with it the notifications that follow, so that they keep their order.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// The entries by their numbers, which count up.
    entries: BTreeMap<u64, Entry>,
    /// The numbers of the entries that hold the requests.
    requests: HashMap<RequestId, u64>,
    last: u64,
    /// The number of the last entry that is a notification.
    last_notification: u64,
    bytes: usize,
    limit: usize,
    /// The maximum number of messages in a batch.
    max_batch: usize,
    /// Whether an `initialize` has already passed.
    opened: bool,
}

#[derive(Debug)]
struct Entry {
    message: Message,
    /// The sender, if the transport knows the sender of each message.
    sender: Option<Principal>,
    /// The IDs of the requests in the message.
    ids: Vec<RequestId>,
}

#[derive(Debug)]
enum Message {
    TooLong,
    Single(Vec<u8>),
    Batch {
        bytes: Vec<u8>,
        /// The requests in the batch that were cancelled and must not start.
        cancelled: Vec<RequestId>,
    },
}

impl Entry {
    fn size(&self) -> usize {
        let bytes = match &self.message {
            Message::TooLong => 0,
            Message::Single(bytes) | Message::Batch { bytes, .. } => bytes.len(),
        };
        OVERHEAD + INDEXED * self.ids.len() + bytes
    }
}

impl Backlog {
    pub(crate) fn new(limit: usize, max_batch: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            requests: HashMap::new(),
            last: 0,
            last_notification: 0,
            bytes: 0,
            limit,
            max_batch,
            opened: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether reading must pause.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// Keeps a message that will be answered. Returns `false` for a message that can be handled at once. While the connection
    /// is `held`, the current work decides how other messages are understood, and only messages about this side's own calls are
    /// handled.
    pub(crate) fn keep(&mut self, frame: &Frame<'_>, held: bool) -> bool {
        let (bytes, sender) = match (frame.message(), frame) {
            (Some(message), _) => message,
            (None, Frame::TooLong { .. }) => {
                self.push(Message::TooLong, None, Vec::new());
                return true;
            }
            (None, _) => return false,
        };
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            let ids = requests(bytes, self.max_batch);
            let (bytes, cancelled) = (bytes.to_vec(), Vec::new());
            self.push(Message::Batch { bytes, cancelled }, sender, ids);
            return true;
        }
        let mut params = Text::UNREAD;
        let id = match Envelope::parse(bytes, &mut params) {
            Ok(Envelope::Response(_)) => return false,
            Ok(Envelope::Notification(it)) if it.method == "notifications/cancelled" => {
                return self.cancel(it.params.map(|params| params.get()));
            }
            Ok(Envelope::Notification(it)) => {
                if it.method == "notifications/progress" || !(held || self.has_notification()) {
                    return false;
                }
                self.last_notification = self.last + 1;
                None
            }
            // Its response is small, and the next messages rely on it. Clients send it once; a flood of it must wait like other
            // requests.
            Ok(Envelope::Request(it)) if it.method == "initialize" && !self.opened && !held => {
                self.opened = true;
                return false;
            }
            Ok(Envelope::Request(request)) => Some(request.id),
            Err(_) => None,
        };
        let message = Message::Single(bytes.to_vec());
        self.push(message, sender, Vec::from_iter(id));
        true
    }

    /// Whether a notification waits here.
    fn has_notification(&self) -> bool {
        let oldest = self.entries.first_key_value();
        oldest.is_some_and(|(number, _)| *number <= self.last_notification)
    }

    /// Runs `take` on the oldest message, with the IDs of its cancelled requests.
    pub(crate) fn pop(&mut self, take: impl FnOnce(Frame<'_>, &[RequestId])) {
        let Some((number, entry)) = self.entries.pop_first() else {
            return;
        };
        self.bytes -= entry.size();
        for id in &entry.ids {
            self.leave(id, number);
        }
        let frame = |message| match &entry.sender {
            Some(sender) => Frame::MessageFrom { message, sender },
            None => Frame::Message(message),
        };
        match &entry.message {
            Message::TooLong => take(Frame::TooLong { beginning: b"" }, &[]),
            Message::Single(bytes) => take(frame(bytes), &[]),
            Message::Batch { bytes, cancelled } => take(frame(bytes), cancelled),
        }
        if self.entries.is_empty() {
            // The memory of a flood is freed.
            self.requests = HashMap::new();
        }
    }

    fn push(&mut self, message: Message, sender: Option<&Principal>, ids: Vec<RequestId>) {
        self.last += 1;
        let entry = Entry {
            message,
            sender: sender.cloned(),
            ids,
        };
        self.bytes += entry.size();
        for id in &entry.ids {
            // If two requests have the same ID, which is an error, the ID stands for the older.
            self.requests.entry(id.clone()).or_insert(self.last);
        }
        self.entries.insert(self.last, entry);
    }

    /// Removes a request of an entry from the index.
    fn leave(&mut self, id: &RequestId, number: u64) {
        if self.requests.get(id) == Some(&number) {
            self.requests.remove(id);
        }
    }

    /// Removes a request that is cancelled before it starts. Returns `false` if it is not in the backlog.
    fn cancel(&mut self, params: Option<&str>) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled {
            request_id: RequestId,
        }
        let cancelled = params.and_then(|params| serde_json::from_str::<Cancelled>(params).ok());
        let Some(Cancelled { request_id }) = cancelled else {
            return false;
        };
        // Some peers send a number as text.
        let known = [Some(request_id.clone()), request_id.respelled()];
        let mut known = known.into_iter().flatten();
        let Some((request_id, number)) =
            known.find_map(|id| self.requests.remove(&id).map(|number| (id, number)))
        else {
            return false;
        };
        if let Some(entry) = self.entries.get_mut(&number)
            && let Message::Batch { cancelled, .. } = &mut entry.message
        {
            // The other requests of the batch start when it is popped.
            cancelled.push(request_id);
        } else if let Some(entry) = self.entries.remove(&number) {
            self.bytes -= entry.size();
        }
        true
    }
}

/// The IDs of the requests in a batch, if it has at most `limit` messages: otherwise it is rejected as a whole.
fn requests(batch: &[u8], limit: usize) -> Vec<RequestId> {
    let mut messages = parse_batch(batch, limit).unwrap_or_default();
    if messages.len() > limit {
        messages.clear();
    }
    let ids = messages.into_iter().filter_map(|message| {
        let mut params = Text::UNREAD;
        match Envelope::parse_str(message.get(), &mut params) {
            Ok(Envelope::Request(request)) => Some(request.id),
            _ => None,
        }
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog() -> Backlog {
        Backlog::new(1 << 20, 4)
    }

    fn keep(backlog: &mut Backlog, message: &str) -> bool {
        backlog.keep(&Frame::Message(message.as_bytes()), false)
    }

    fn request(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)
    }

    fn cancel(backlog: &mut Backlog, id: &str) -> bool {
        let params = format!(r#"{{"requestId":{id}}}"#);
        let method = "notifications/cancelled";
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        keep(backlog, &message)
    }

    /// All remaining entries, each with its cancelled requests.
    fn rest(mut backlog: Backlog) -> Vec<(String, Vec<RequestId>)> {
        let mut rest = Vec::new();
        while !backlog.is_empty() {
            backlog.pop(|frame, cancelled| {
                let Frame::Message(bytes) = frame else {
                    panic!("{frame:?}")
                };
                rest.push((
                    String::from_utf8(bytes.to_vec()).unwrap(),
                    cancelled.to_vec(),
                ));
            });
        }
        assert_eq!((backlog.bytes, backlog.requests.len()), (0, 0));
        rest
    }

    #[test]
    fn cancelled_request_is_not_popped_and_frees_memory() {
        let mut backlog = backlog();
        for id in ["1", "\"a\"", "2"] {
            assert!(keep(&mut backlog, &request(id)));
        }
        assert!(cancel(&mut backlog, "\"a\""));
        assert!(!cancel(&mut backlog, "\"a\""), "it is not there any more");
        assert!(!cancel(&mut backlog, "3"), "it never was");
        backlog.pop(|_, _| ());
        assert!(!cancel(&mut backlog, "1"), "it has been begun");
        assert_eq!(rest(backlog), [(request("2"), Vec::new())]);
    }

    #[test]
    fn batch_is_popped_with_its_cancelled_requests() {
        let mut backlog = backlog();
        let notification = r#"{"jsonrpc":"2.0","method":"n"}"#;
        let batch = format!(" [{},{notification},5,{}]", request("1"), request("2"));
        assert!(keep(&mut backlog, &batch));
        assert!(cancel(&mut backlog, "2"));
        assert!(!cancel(&mut backlog, "2"));
        assert_eq!(rest(backlog), [(batch, vec![RequestId::from(2)])]);
    }

    #[test]
    fn message_is_popped_with_its_sender() {
        let mut backlog = backlog();
        let ann = Principal::new("ann");
        for message in [request("1"), format!("[{}]", request("2"))] {
            let frame = Frame::MessageFrom {
                message: message.as_bytes(),
                sender: &ann,
            };
            assert!(backlog.keep(&frame, false));
            backlog.pop(|frame, _| {
                assert_eq!(frame.message(), Some((message.as_bytes(), Some(&ann))));
            });
        }
    }

    #[test]
    fn refused_batch_has_no_requests() {
        let five = vec![request("1"); 5].join(",");
        for batch in [format!("[{five}]"), format!("[{}", request("1"))] {
            let mut backlog = backlog();
            assert!(keep(&mut backlog, &batch));
            assert!(!cancel(&mut backlog, "1"), "{batch}");
        }
    }

    #[test]
    fn notification_does_not_overtake_a_held_one() {
        let mut backlog = backlog();
        let notification = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let held = notification("held");
        assert!(backlog.keep(&Frame::Message(held.as_bytes()), true));
        assert!(keep(&mut backlog, &request("1")));
        assert!(keep(&mut backlog, &notification("behind")));
        assert!(!keep(&mut backlog, &notification("notifications/progress")));
        backlog.pop(|_, _| ());
        backlog.pop(|_, _| ());
        assert!(keep(&mut backlog, &notification("also behind")));
        backlog.pop(|_, _| ());
        backlog.pop(|_, _| ());
        assert!(keep(&mut backlog, &request("2")));
        assert!(!keep(&mut backlog, &notification("first")));
    }

    #[test]
    fn oversized_message_is_answered_in_its_turn() {
        let mut backlog = backlog();
        assert!(keep(&mut backlog, &request("1")));
        let beginning = b"{";
        assert!(backlog.keep(&Frame::TooLong { beginning }, false));
        backlog.pop(|frame, _| assert!(frame.message().is_some()));
        backlog.pop(|frame, _| assert!(matches!(frame, Frame::TooLong { .. })));
        assert!(backlog.is_empty());
    }

    #[test]
    fn oldest_request_with_the_id_is_cancelled() {
        let mut backlog = backlog();
        let spaced = |spaces| " ".repeat(spaces) + &request("1");
        for spaces in 0..2 {
            keep(&mut backlog, &spaced(spaces));
        }
        assert!(cancel(&mut backlog, "1"));
        keep(&mut backlog, &spaced(2));
        // The older entries leave the index entry of the newest in place.
        backlog.pop(|frame, _| assert_eq!(frame.message().unwrap().0, spaced(1).as_bytes()));
        assert!(cancel(&mut backlog, "1"));
        assert_eq!(rest(backlog), []);
    }

    #[test]
    fn initialize_waits_for_the_held_connection() {
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        for (held, is_kept) in [(true, true), (false, false), (false, true)] {
            let mut backlog = backlog();
            if !held && is_kept {
                // One was let through.
                backlog.keep(&Frame::Message(initialize), false);
            }
            assert_eq!(backlog.keep(&Frame::Message(initialize), held), is_kept);
        }
    }

    #[test]
    fn backlog_is_full_beyond_its_limit() {
        let one = OVERHEAD + INDEXED + request("1").len();
        let mut backlog = Backlog::new(2 * one, 4);
        for id in ["1", "2"] {
            assert!(!backlog.is_full());
            keep(&mut backlog, &request(id));
        }
        assert!(!backlog.is_full());
        backlog.keep(&Frame::TooLong { beginning: b"" }, false);
        assert!(backlog.is_full(), "also what has no bytes takes memory");
    }
}

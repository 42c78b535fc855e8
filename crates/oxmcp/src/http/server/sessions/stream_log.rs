//! The log of a stream: its events in the event store, from which clients resume it.

use std::future::ready;

use futures_core::future::BoxFuture;

/// The events of one stream. `StreamWriter` is the log of a stream that only this node sends. Methods with a default concern other
/// nodes.
pub(crate) trait StreamLog: Send + Sync {
    /// Opens the stream: for a client that has `seen` its events up to this one, or a new stream, whose first message may be about
    /// to follow.
    fn open(&mut self, seen: Option<u64>, is_followed: bool) -> BoxFuture<'_, Opened>;

    /// Stores messages, which are lines, and encodes them. The stream ends with them if it `ends`. The client was `sent` the events
    /// up to this one.
    fn write<'a>(&'a mut self, lines: &'a [u8], ends: bool, sent: u64) -> BoxFuture<'a, Written>;

    /// Stores an event with only an index to resume from.
    fn write_empty(&mut self) -> BoxFuture<'_, Option<u64>>;

    /// The next events after this one. `None` if not all of them are stored. `is_new` for the first events of a client.
    fn after(&mut self, seen: u64, is_new: bool) -> BoxFuture<'_, Option<Replayed>>;

    /// Ends the stream in the store, unless it has ended there.
    fn end(&mut self) -> BoxFuture<'_, ()>;

    /// Waits until other nodes have changed the stream. `None` if they cannot. Cancel safe.
    fn changed(&mut self, sent: u64) -> Option<BoxFuture<'_, NodeEvent>> {
        let _ = sent;
        None
    }

    /// Whether other nodes have yet to be told that a client has read the events up to this one.
    fn is_unmarked(&self, sent: u64) -> bool {
        let _ = sent;
        false
    }

    /// Does what other nodes need at this moment.
    fn note(&mut self, moment: Moment, sent: u64) -> BoxFuture<'_, Written> {
        let _ = (moment, sent);
        Box::pin(ready(Written::default()))
    }
}

/// The beginning of a stream.
#[derive(Default)]
pub(crate) struct Opened {
    /// Messages that wait for the stream elsewhere than in the outbox.
    pub(crate) waiting: Vec<u8>,
    pub(crate) written: Written,
    /// Whether the client gets an ID to resume from.
    pub(crate) has_id: bool,
}

/// The events to send.
pub(crate) enum Written {
    /// Encoded events, and the index of the last, if one has an index.
    Events(Vec<u8>, Option<u64>),
    /// First the stored events after this one, then these encoded events.
    Replay(u64, Vec<u8>),
    /// None: another node has taken the stream.
    Taken,
}

impl Default for Written {
    fn default() -> Self {
        Self::Events(Vec::new(), None)
    }
}

/// Stored events for a client that has not seen them.
pub(crate) struct Replayed {
    pub(crate) events: Vec<u8>,
    /// The index of the last event. It is that of the last one before if there are none.
    pub(crate) last: u64,
}

/// An event that concerns other nodes.
pub(crate) enum NodeEvent {
    /// Other nodes may have stored events, or taken the stream.
    Stored,
    /// Another node has taken the stream.
    Taken,
    /// The client has read everything that was sent, and other nodes must be told.
    Read,
}

/// A moment in the life of a stream that may matter to other nodes.
pub(crate) enum Moment {
    /// The client has read everything that was sent.
    Read,
    /// Nothing was sent for the keep-alive interval.
    Silent,
    /// After [`NodeEvent::Stored`], when there were no more events.
    Unchanged,
}

//! The store of events that were sent on the streams of legacy sessions: the trait, event batches, and event IDs on the wire.

use std::{fmt, future::Future, ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::error::Result;

/// Stores the events that were sent on the streams of legacy sessions, so that a client that lost its connection can resume at
/// any node.
///
/// A session has a stream for each request that is answered by one, and one for messages that belong to no request. The events
/// of a stream are numbered from 1, without gaps. Names of streams are scoped by session: the same name in two sessions denotes
/// two streams, and events of one session are never returned for another. Session names are secrets of their clients: store
/// streams under [a hash](super::hashed()) of them. The stream names that the endpoint uses are at most 64 letters, digits and
/// hyphens.
///
/// A store may evict events, a session's oldest first, and must then report it in [`after`](Self::after). It may drop
/// everything once the session is forgotten. Several handles to one store may be in use at once: when a call on one has
/// returned, its effect is visible to all.
///
/// A stream has an epoch, 0 at first, which increases with each claimed [lease](Lease). The node that writes a stream holds a
/// lease, and renews it while there is nothing to write. When the lease expires, another node can claim the next one. From then
/// on the store refuses writes under the previous lease, however late they arrive.
/// See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
///
/// # Implementing a store
/// Implement the trait with plain `async fn`s, and check it with [the contract](crate::testing::event_store_contract). Each
/// call except [`watch`](Self::watch) times out after two seconds.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use oxmcp::{Result, store::{ClaimMode, EventStore, MemoryEventStore, Replay, StreamWrite}, testing};
///
/// /// Counts the replays.
/// #[derive(Default)]
/// struct Counting { store: MemoryEventStore, replays: std::sync::atomic::AtomicUsize }
///
/// impl EventStore for Counting {
///     async fn append(&self, session: &str, stream: &str, write: StreamWrite) -> Result<Option<Vec<u64>>> {
///         self.store.append(session, stream, write).await
///     }
///
///     async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
///         self.replays.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.store.after(session, stream, index, max).await
///     }
///
///     async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
///         self.store.watch(session, stream, index).await
///     }
///
///     async fn claim(&self, session: &str, stream: &str, claim: ClaimMode, lasts: Duration) -> Result<Option<u64>> {
///         self.store.claim(session, stream, claim, lasts).await
///     }
///
///     async fn renew(&self, session: &str, stream: &str, epoch: u64, lasts: Duration) -> Result<bool> {
///         self.store.renew(session, stream, epoch, lasts).await
///     }
///
///     async fn forget(&self, session: &str) -> Result<()> {
///         self.store.forget(session).await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// testing::event_store_contract(|| async {
///     let store = Arc::new(Counting::default());
///     (Arc::clone(&store), store)
/// })
/// .await
/// # }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Appends events to a stream, in order, and returns their indexes. The stream begins with its first event, which has index
    /// 1, and each further event has the next index. If some events cannot be kept, only the indexes before the first of those
    /// are returned. Concurrent calls get distinct indexes, and the kept events of one call are contiguous.
    ///
    /// The data of each event is one message as JSON. It may be empty: such an event only gives the client an index to start
    /// from, and is kept like all others. A write without events does not begin a stream.
    ///
    /// Returns `None`, and keeps nothing, if the epoch of the write's lease is smaller than that of the stream. A lease with
    /// the same or a greater epoch becomes the lease of the stream, even if it has expired, and also if the stream begins with
    /// this write. A write without a lease is always allowed.
    ///
    /// If [`ends`](StreamWrite::ends) is set and all events were kept, the stream ends with them. Its events are kept, for a
    /// client that lost the last of them. Ending a stream that does not exist or has already ended has no effect.
    ///
    /// # Errors
    /// If not even the first event can be kept, or the stream has ended. The caller then retries the events one by one, and
    /// sends those that are not kept without an ID, so that the client cannot request them again. If it is unknown whether the
    /// events were kept, as after [`Error::network`](crate::Error::network), [`Error::closed`](crate::Error::closed), an [I/O
    /// error](std::io::Error) or two seconds, they are sent without IDs, and not added again.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, some of the first events may have been added.
    fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> impl Future<Output = Result<Option<Vec<u64>>>> + Send;

    /// Returns the events of a stream after this index, in order, at most `max` of them. Index 0 means from the start.
    ///
    /// Returns [`Replay::Lost`] if any of them is no longer kept, or if there is no such stream, session or index.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn after(
        &self,
        session: &str,
        stream: &str,
        index: u64,
        max: usize,
    ) -> impl Future<Output = Result<Replay>> + Send;

    /// Waits until a stream has an event after this index, has ended, does not exist, or is [claimed](Self::claim). It may
    /// return early: the caller then calls [`after`](Self::after), and waits again. It may wait for as long as nothing happens.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    fn watch(
        &self,
        session: &str,
        stream: &str,
        index: u64,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Leases a stream to the caller for this time, by the store's own clock. Returns the epoch of the lease, which is greater
    /// than that of every earlier lease and becomes the stream's. Returns `None` if the stream has ended, or if another lease
    /// is valid, unless it is [taken](ClaimMode::Take). A stream that does not exist is created, without events.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the stream may be leased without a holder until the lease expires.
    fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> impl Future<Output = Result<Option<u64>>> + Send;

    /// Renews the lease of this epoch for this time from now, even if it has expired. Returns whether it is the stream's newest
    /// lease and the stream has not ended.
    ///
    /// # Errors
    /// If the store cannot be reached.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, the lease may or may not have been renewed.
    fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Removes all streams of a session that has ended. Has no effect if there are none.
    ///
    /// # Errors
    /// If the store cannot be reached. The streams must then expire by themselves.
    ///
    /// # Cancel safety
    /// If the future is dropped before it returns, some streams may still exist.
    fn forget(&self, session: &str) -> impl Future<Output = Result<()>> + Send;
}

impl<S: EventStore> EventStore for Arc<S> {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        (**self).append(session, stream, write).await
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        (**self).after(session, stream, index, max).await
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        (**self).watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        (**self).claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        (**self).renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        (**self).forget(session).await
    }
}

/// A write to a stream.
///
/// ```
/// use std::time::Duration;
/// use oxmcp::store::{EventBatch, Lease, StreamWrite};
///
/// let events: EventBatch = ["{}", "[]"].into_iter().collect();
/// let write = StreamWrite::new(events).under(Lease::new(1, Duration::from_secs(5))).ending();
/// assert!(write.ends && write.events.len() == 2);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StreamWrite {
    /// The events that are added.
    pub events: EventBatch,
    /// The lease of the writer. `None` for a write without a lease.
    pub lease: Option<Lease>,
    /// Whether the stream ends with these events.
    pub ends: bool,
}

impl StreamWrite {
    /// Creates a write that adds these events, without a lease.
    #[must_use]
    pub fn new(events: impl Into<EventBatch>) -> Self {
        Self {
            events: events.into(),
            ..Self::default()
        }
    }

    /// Sets the lease of the writer.
    #[must_use]
    pub fn under(mut self, lease: Lease) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Ends the stream with these events.
    #[must_use]
    pub fn ending(mut self) -> Self {
        self.ends = true;
        self
    }
}

/// The lease of a stream, whose holder writes the stream, or reads it for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The epoch of the lease: later leases of the stream have greater epochs. A new stream whose name no other node can know
    /// is written under epoch 1 right away, and need not be claimed.
    pub epoch: u64,
    /// The duration of the lease, from when the store receives it.
    pub lasts: Duration,
}

impl Lease {
    /// Creates the lease with an epoch and a duration.
    #[must_use]
    pub fn new(epoch: u64, lasts: Duration) -> Self {
        Self { epoch, lasts }
    }
}

/// The way to [claim](EventStore::claim) a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a store must handle every variant")]
pub enum ClaimMode {
    /// Only if no lease of the stream is valid.
    IfFree,
    /// Even if another lease is valid: [`EventStore::watch`] notifies its holder, whose writes are refused from now on.
    Take,
}

/// The result of [`EventStore::after`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// The events that follow, without gaps; the first has the index after the requested one.
    Events {
        /// The data of the events.
        events: Vec<Bytes>,
        /// Whether the stream ended with the last of them. Never true if `max` excluded some.
        ended: bool,
    },
    /// Some of the events that follow are no longer kept, or never existed.
    Lost,
}

/// One or more events that [`EventStore::append`] adds to a stream together, in one buffer.
///
/// ```
/// use oxmcp::store::EventBatch;
///
/// let batch: EventBatch = ["{}", "[]"].into_iter().collect();
/// let data: Vec<_> = batch.iter().collect();
/// assert_eq!(data, ["{}", "[]"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    /// The data of all events, with one byte between them.
    text: Bytes,
    /// The end of the data of each event in `text`.
    ends: Vec<usize>,
}

impl EventBatch {
    /// Creates a batch from lines, each of which is the data of an event, up to its newline.
    #[cfg(feature = "http-server")]
    pub(crate) fn of_lines(lines: &[u8]) -> Self {
        Self {
            ends: memchr::memchr_iter(b'\n', lines).collect(),
            text: Bytes::copy_from_slice(lines),
        }
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the data of each event, in order. They share the memory of the batch.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        (0..self.len()).map(|position| self.get(position))
    }

    /// The data of one event; empty if there is no such event.
    pub(crate) fn get(&self, position: usize) -> Bytes {
        self.text.slice(self.range(position))
    }

    /// The range of an event in `text`.
    fn range(&self, position: usize) -> Range<usize> {
        let before = position.checked_sub(1).and_then(|it| self.ends.get(it));
        let start = before.map_or(0, |end| end + 1);
        let end = self.ends.get(position).copied().unwrap_or(start);
        start..end
    }

    /// The size of the data of all events, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl From<Bytes> for EventBatch {
    /// A batch of one event.
    fn from(data: Bytes) -> Self {
        Self {
            ends: vec![data.len()],
            text: data,
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for EventBatch {
    fn from_iter<I: IntoIterator<Item = T>>(events: I) -> Self {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for data in events {
            text.extend_from_slice(data.as_ref());
            ends.push(text.len());
            text.push(b'\n');
        }
        Self {
            text: text.into(),
            ends,
        }
    }
}

/// The maximum length of the name of a stream.
const MAX_STREAM: usize = 64;

/// The ID of an event: the name of its stream in the session, and its index there. On the wire it is `<stream>_<index>`, in the
/// `id` of an event and in `Last-Event-ID`.
///
/// It does not contain the session: an ID from another session names a stream that does not exist.
///
/// ```
/// use oxmcp::store::EventId;
///
/// let id = EventId::parse("get_17").unwrap();
/// assert_eq!((id.stream(), id.index()), ("get", 17));
/// assert_eq!(id.to_string(), "get_17");
/// assert!(EventId::parse("get_017").is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId<'a> {
    stream: &'a str,
    index: u64,
}

impl<'a> EventId<'a> {
    /// Creates the ID of an event. `None` if the stream or the index is invalid: names of streams have at most 64 letters,
    /// digits and hyphens, and the first index is 1.
    #[must_use]
    pub fn new(stream: &'a str, index: u64) -> Option<Self> {
        (is_name(stream) && index > 0).then_some(Self { stream, index })
    }

    /// Parses an ID. `None` for any text that [`Display`](fmt::Display) never writes.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (stream, digits) = text.split_once('_')?;
        let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_plain || digits.starts_with('0') {
            return None;
        }
        Self::new(stream, digits.parse().ok()?)
    }

    /// The ID of another event of the same stream.
    #[cfg(feature = "http-server")]
    pub(crate) fn with_index(self, index: u64) -> Option<Self> {
        (index > 0).then_some(Self { index, ..self })
    }

    /// Appends the ID in wire form.
    #[cfg(feature = "http-server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.stream.as_bytes());
        out.push(b'_');
        out.extend_from_slice(itoa::Buffer::new().format(self.index).as_bytes());
    }

    /// Returns the name of the stream.
    #[must_use]
    pub fn stream(&self) -> &'a str {
        self.stream
    }

    /// Returns the index of the event in the stream, from 1.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }
}

impl fmt::Display for EventId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.stream, self.index)
    }
}

fn is_name(stream: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=MAX_STREAM).contains(&stream.len()) && stream.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(batch: &EventBatch) -> Vec<Bytes> {
        batch.iter().collect()
    }

    #[test]
    fn single_event_is_not_copied() {
        let one = Bytes::from(vec![b'x'; 100]);
        let batch = EventBatch::from(one.clone());
        assert_eq!(data(&batch)[0].as_ptr(), one.as_ptr());
        assert_eq!((batch.len(), batch.bytes()), (1, 100));
        assert_eq!(data(&Bytes::new().into()), [""]);
        assert!(EventBatch::default().is_empty() && data(&EventBatch::default()).is_empty());
    }

    proptest! {
        #[test]
        fn collected_events_are_all_present(texts in proptest::collection::vec("(?s).{0,4}", 0..5)) {
            let batch: EventBatch = texts.iter().collect();
            prop_assert_eq!(data(&batch), texts);
        }

        #[cfg(feature = "http-server")]
        #[test]
        fn each_line_becomes_an_event(texts in proptest::collection::vec("[^\n]{0,4}", 0..5)) {
            let lines: String = texts.iter().map(|text| format!("{text}\n")).collect();
            prop_assert_eq!(data(&EventBatch::of_lines(lines.as_bytes())), texts);
        }
    }

    // Attack: input that two readers read differently.
    #[test]
    fn only_written_event_ids_are_readable() {
        let long = format!("{}_1", "a".repeat(MAX_STREAM + 1));
        let wrong = [
            "",
            "_",
            "get",
            "get_",
            "_1",
            "get_0",
            "get_01",
            "get_+1",
            "get_-1",
            "get_1_1",
            "get_1 ",
            " get_1",
            "get_١",
            "gët_1",
            "get_18446744073709551616",
            "g\0t_1",
            "get.x_1",
            &long,
        ];
        for text in wrong {
            assert_eq!(EventId::parse(text), None, "{text:?}");
        }
        let last = EventId::parse("7f-A_18446744073709551615").unwrap();
        assert_eq!((last.stream(), last.index()), ("7f-A", u64::MAX));
    }

    proptest! {
        #[test]
        fn written_ids_read_back(stream in "[A-Za-z0-9-]{1,64}", index in 1..u64::MAX) {
            let id = EventId::new(&stream, index).unwrap();
            let text = id.to_string();
            prop_assert_eq!(EventId::parse(&text), Some(id));
        }

        #[cfg(feature = "http-server")]
        #[test]
        fn both_ways_to_write_an_id_agree(stream in "[A-Za-z0-9-]{1,64}", index in 1..u64::MAX) {
            let id = EventId::new(&stream, index).unwrap();
            let mut written = Vec::new();
            id.write(&mut written);
            prop_assert_eq!(written, id.to_string().into_bytes());
        }

        #[test]
        fn parsed_ids_are_written_unchanged(text in "[a-c_0-3]{0,8}") {
            if let Some(id) = EventId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}

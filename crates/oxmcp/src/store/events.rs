//! What a store of events is.

use std::future::Future;

use bytes::Bytes;

use super::{BoxFuture, EventBatch, in_time::in_time};
use crate::Result;

/// Keeps what was sent on the streams of legacy sessions, so that a client that lost its connection gets the rest.
///
/// A session has streams, one for each request that is answered by one and one for what belongs to no request. The
/// events of a stream are counted from 1, without gaps. Streams are named by session: the same name in two sessions is two
/// streams, and nothing of one session is ever given to another.
///
/// A store may purge: a session's oldest events first, and it must then say so in [`after`](Self::after). It need not
/// keep anything once the session is forgotten.
/// See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).
///
/// # Writing one
/// Implement it with plain `async fn`s, and hold it against [the contract](crate::testing::event_store_contract).
///
/// ```
/// use bytes::Bytes;
/// use oxmcp::{Result, store::{EventStore, MemoryEventStore, Replay}, testing};
///
/// /// Counts the replays.
/// #[derive(Default)]
/// struct Counting { store: MemoryEventStore, replays: std::sync::atomic::AtomicUsize }
///
/// impl EventStore for Counting {
///     async fn append(&self, session: &str, stream: &str, data: Bytes) -> Result<u64> {
///         self.store.append(session, stream, data).await
///     }
///
///     async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
///         self.replays.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.store.after(session, stream, index, max).await
///     }
///
///     async fn end(&self, session: &str, stream: &str) -> Result<()> {
///         self.store.end(session, stream).await
///     }
///
///     async fn forget(&self, session: &str) -> Result<()> {
///         self.store.forget(session).await
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// testing::event_store_contract(|| async { Counting::default() }).await
/// # }
/// ```
pub trait EventStore: Send + Sync + 'static {
    /// Adds an event to a stream, which begins with its first one. Returns the event's index in the stream: 1 for the
    /// first one, and one more for each. Several may be added at once; each gets an index of its own.
    ///
    /// `data` is one message as JSON, and shares its memory with nothing but what is added with it. It may be empty: such an
    /// event does nothing but give the client an index to begin with, and is kept like all others.
    ///
    /// # Errors
    /// Where the event cannot be kept, or the stream has ended. The client then gets it without an id, and cannot ask for
    /// it again.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the event may or may not be there.
    fn append(
        &self,
        session: &str,
        stream: &str,
        data: Bytes,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Adds events to a stream, in their order and each as by [`append`](Self::append). Returns their indexes: those of all,
    /// or of the first ones where the one that follows cannot be kept.
    ///
    /// What a handler sends at once is kept so, some 16 KiB at a time. A store without this method adds them one by one; one
    /// that asks a database, or takes a lock, does better to do so once.
    ///
    /// # Errors
    /// Where not even the first one can be kept.
    ///
    /// # Cancel safety
    /// Dropped before it returns, some of the events may be there: the first ones.
    fn append_all(
        &self,
        session: &str,
        stream: &str,
        events: EventBatch,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send {
        async move {
            let mut indexes = Vec::with_capacity(events.len());
            for data in events.iter() {
                match self.append(session, stream, data).await {
                    Ok(index) => indexes.push(index),
                    Err(error) if indexes.is_empty() => return Err(error),
                    Err(_) => break,
                }
            }
            Ok(indexes)
        }
    }

    /// The events of a stream after the one with this index, in order, `max` of them at most. Index 0 stands for all.
    ///
    /// [`Replay::Lost`] where any of them is not there any more, and where there is no such stream, session or index.
    ///
    /// # Errors
    /// Where the store cannot be asked.
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

    /// Ends a stream: no event will follow. What is in it is kept, for a client that lost the last of it. Nothing happens
    /// where there is no such stream, or it has ended before.
    ///
    /// # Errors
    /// Where the store cannot be told.
    ///
    /// # Cancel safety
    /// Dropped before it returns, the stream may or may not have ended.
    fn end(&self, session: &str, stream: &str) -> impl Future<Output = Result<()>> + Send;

    /// Drops all streams of a session, which is over. Nothing happens where there is none.
    ///
    /// # Errors
    /// Where the store cannot be told. What it holds must then go in time by itself.
    ///
    /// # Cancel safety
    /// Dropped before it returns, some streams may still be there.
    fn forget(&self, session: &str) -> impl Future<Output = Result<()>> + Send;
}

/// What [`EventStore::after`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replay {
    /// The events that follow, without gaps; the first has the index after the one that was asked for.
    Events {
        /// Their data.
        events: Vec<Bytes>,
        /// Whether the stream has ended with the last of them: nothing will follow. Never true where `max` held some back.
        ended: bool,
    },
    /// Not all that follows is there any more, or ever was.
    Lost,
}

/// An [`EventStore`] of whatever type.
pub(crate) trait AnyEventStore: Send + Sync {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        data: Bytes,
    ) -> BoxFuture<'a, Result<u64>>;

    fn append_all<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        events: EventBatch,
    ) -> BoxFuture<'a, Result<Vec<u64>>>;

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>>;

    fn end<'a>(&'a self, session: &'a str, stream: &'a str) -> BoxFuture<'a, Result<()>>;

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>>;
}

impl<S: EventStore> AnyEventStore for S {
    fn append<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        data: Bytes,
    ) -> BoxFuture<'a, Result<u64>> {
        in_time(EventStore::append(self, session, stream, data))
    }

    fn append_all<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        events: EventBatch,
    ) -> BoxFuture<'a, Result<Vec<u64>>> {
        in_time(EventStore::append_all(self, session, stream, events))
    }

    fn after<'a>(
        &'a self,
        session: &'a str,
        stream: &'a str,
        index: u64,
        max: usize,
    ) -> BoxFuture<'a, Result<Replay>> {
        in_time(EventStore::after(self, session, stream, index, max))
    }

    fn end<'a>(&'a self, session: &'a str, stream: &'a str) -> BoxFuture<'a, Result<()>> {
        in_time(EventStore::end(self, session, stream))
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<()>> {
        in_time(EventStore::forget(self, session))
    }
}

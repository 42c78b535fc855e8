//! The writer of a stream, which stores the events that are sent.

use std::{future::Future, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;

use super::{
    stored_events::{encode, write},
    stream_log::{Opened, Replayed, StreamLog, Written},
    streams::REPLAYED,
};
use crate::{
    error::{Error, Result},
    http::server::event_encoding::{EventWriter, messages, parts},
    store::{AnyEventStore, ClaimMode, EventBatch, Replay, StreamWrite},
};

/// The location of a stream's events.
#[derive(Clone)]
pub(crate) struct StreamKey {
    pub(crate) store: Arc<dyn AnyEventStore>,
    pub(crate) session: Arc<str>,
    pub(crate) stream: Arc<str>,
}

impl StreamKey {
    pub(crate) async fn append(&self, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        let (session, stream) = (&self.session, &self.stream);
        self.store.append(session, stream, write).await
    }

    pub(crate) async fn after(&self, index: u64, max: usize) -> Result<Replay> {
        let (session, stream) = (&self.session, &self.stream);
        self.store.after(session, stream, index, max).await
    }

    pub(crate) async fn claim(&self, claim: ClaimMode, lasts: Duration) -> Result<Option<u64>> {
        let (session, stream) = (&self.session, &self.stream);
        self.store.claim(session, stream, claim, lasts).await
    }
}

/// Appends events to a stream in the store. A [`StreamKey`] appends them directly.
pub(crate) trait Append: Send + Sync {
    fn key(&self) -> &StreamKey;

    /// Appends events. Returns their indexes, or `None` if the stream must no longer be written.
    fn append(
        &mut self,
        write: StreamWrite,
    ) -> impl Future<Output = Result<Option<Vec<u64>>>> + Send;

    /// Records the index of a message, if it was stored. Returns whether it is sent.
    fn record(&mut self, index: Option<u64>, message: &[u8]) -> bool;
}

impl Append for StreamKey {
    fn key(&self) -> &StreamKey {
        self
    }

    async fn append(&mut self, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        (*self).append(write).await
    }

    fn record(&mut self, _: Option<u64>, _: &[u8]) -> bool {
        true
    }
}

/// The writer of a session's stream to a store.
pub(crate) struct StreamWriter<A = StreamKey> {
    pub(crate) appender: A,
    /// Whether events without data are sent.
    pub(crate) has_empty: bool,
    /// The index of the newest event that was written.
    last: u64,
    /// Whether the writer has stopped writing.
    has_ended: bool,
}

impl<A: Append> StreamWriter<A> {
    pub(crate) fn new(appender: A, has_empty: bool) -> Self {
        Self {
            appender,
            has_empty,
            last: 0,
            has_ended: false,
        }
    }

    /// Stores messages, which are lines, and encodes them as events with their IDs. The stream ends with these messages if it
    /// `ends`. Also returns the index of the last stored one.
    pub(crate) async fn write(&mut self, lines: &[u8], ends: bool) -> (Vec<u8>, Option<u64>) {
        let name = Arc::clone(&self.appender.key().stream);
        let mut out = EventWriter::new(&name);
        let mut last = None;
        // After a failure, events that the store may have kept are not appended again. The rest is sent without waiting for the
        // store.
        let mut answers = true;
        let mut rest = lines.len();
        for part in parts(lines) {
            rest -= part.len();
            let ends = ends && rest == 0;
            let batch = EventBatch::of_lines(part);
            out.reserve(batch.len(), part.len());
            let mut indexes = Vec::new();
            if answers && !self.has_ended {
                match self.append(batch, ends).await {
                    Ok(appended) => indexes = appended,
                    Err(error) if error.is_refusal() => {}
                    Err(error) => {
                        answers = false;
                        log_not_stored(&error);
                    }
                }
            }
            let mut indexes = indexes.into_iter();
            for message in messages(part) {
                let mut index = indexes.next();
                if index.is_none() && answers && !self.has_ended {
                    // Messages that were refused as a batch are retried one by one, because the store may accept some of them.
                    let one = EventBatch::from_iter([message]);
                    match self.append(one, false).await {
                        Ok(stored) => index = stored.first().copied(),
                        Err(error) => {
                            log_not_stored(&error);
                            answers = error.is_refusal();
                        }
                    }
                }
                last = index.or(last);
                if self.appender.record(index, message) {
                    write(&mut out, index, message, self.has_empty);
                }
            }
        }
        (out.finish(), last)
    }

    /// Stores an event with only an index to resume from.
    pub(crate) async fn write_empty(&mut self) -> Option<u64> {
        let empty = EventBatch::from_iter([b""]);
        let appended = self.append(empty, false).await;
        let indexes = appended.inspect_err(log_not_stored).ok()?;
        indexes.first().copied()
    }

    /// The next events after this one that are `sent`. `None` if not all of them are stored.
    pub(crate) async fn after(
        &self,
        seen: u64,
        is_sent: impl FnMut(u64, &[u8]) -> bool,
    ) -> Option<Replayed> {
        let key = self.appender.key();
        match key.after(seen, REPLAYED).await {
            Ok(Replay::Events { events, .. }) => Some(Replayed {
                events: encode(&key.stream, seen, &events, self.has_empty, is_sent),
                last: seen + events.len() as u64,
            }),
            Ok(Replay::Lost) => None,
            Err(error) => {
                log(Err(error));
                None
            }
        }
    }

    /// Ends the stream in the store, unless it has ended there.
    pub(crate) async fn end(&mut self) {
        if !self.has_ended {
            self.has_ended = true;
            let end = StreamWrite::default().ending();
            log(self.appender.append(end).await.map(drop));
        }
    }

    /// Appends events. Returns the indexes of those that were stored.
    async fn append(&mut self, events: EventBatch, ends: bool) -> Result<Vec<u64>> {
        let count = events.len();
        let write = StreamWrite {
            ends,
            ..StreamWrite::new(events)
        };
        let Some(indexes) = self.appender.append(write).await? else {
            self.has_ended = true;
            return Ok(Vec::new());
        };
        if let (Some(first), Some(last)) = (indexes.first(), indexes.last()) {
            if *first <= self.last {
                tracing::warn!("event store lost events; the rest of the stream cannot be resumed");
                self.has_ended = true;
                return Ok(Vec::new());
            }
            self.has_ended |= ends && indexes.len() == count;
            self.last = *last;
        }
        Ok(indexes)
    }
}

impl StreamLog for StreamWriter {
    fn open(&mut self, seen: Option<u64>, _: bool) -> BoxFuture<'_, Opened> {
        Box::pin(async move {
            if seen.is_some() || !self.has_empty {
                return Opened::default();
            }
            // Without an ID the client could not resume the stream: it would learn that the stream is already open, until its
            // broken connection is noticed.
            let index = self.write_empty().await;
            let mut out = EventWriter::new(&self.appender.stream);
            if index.is_some() {
                out.event(index, b"");
            }
            Opened {
                waiting: Vec::new(),
                written: Written::Events(out.finish(), index),
                has_id: index.is_some(),
            }
        })
    }

    fn write<'a>(&'a mut self, lines: &'a [u8], ends: bool, _: u64) -> BoxFuture<'a, Written> {
        Box::pin(async move {
            let (events, last) = self.write(lines, ends).await;
            Written::Events(events, last)
        })
    }

    fn write_empty(&mut self) -> BoxFuture<'_, Option<u64>> {
        Box::pin(self.write_empty())
    }

    fn after(&mut self, seen: u64, _: bool) -> BoxFuture<'_, Option<Replayed>> {
        Box::pin(async move { (*self).after(seen, |_, _| true).await })
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}

/// Logs that a store did not return the index of events.
fn log_not_stored(error: &Error) {
    tracing::warn!(%error, "could not store events; sending them without IDs");
}

/// Logs the failure of a store. Clients do not see it.
pub(crate) fn log(result: Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "store failed");
    }
}

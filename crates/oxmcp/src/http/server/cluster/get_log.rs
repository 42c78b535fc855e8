//! The log of the GET stream of a session that several nodes share. The node where the client last opened it sends it, and the store
//! records how much of it was sent.

use std::{mem, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::AbortOnDropHandle;

use super::{
    forward::Forwarder,
    leased::{Leased, changed},
    records::{Record, ToldChanges, find_back},
};
use crate::{
    error::Result,
    http::server::{
        event_encoding::encode,
        sessions::{
            Append, Moment, NodeEvent, Opened, REPLAYED, Replayed, StreamKey, StreamLog,
            StreamWriter, Written, is_note, log,
        },
    },
    session::task::spawn,
    store::{ClaimMode, Lease, Replay, StreamWrite},
};

/// The duration of this node's lease on the stream, unless another node takes it. Nodes do not wait for the lease to expire.
const HELD: Duration = Duration::from_secs(60 * 60);

/// The log of the GET stream on the node that sends it.
pub(crate) struct GetLog {
    writer: StreamWriter<Told>,
    forwarder: Arc<Forwarder>,
    /// Messages outside requests that wait on this node. `None` until this stream takes them.
    waiting: Option<OwnedMutexGuard<Vec<u8>>>,
    /// Whether the stream was taken from the node that had it.
    is_taken: bool,
    watching: Watching,
    /// The index up to which the store has recorded all events as sent.
    marked: u64,
    /// Whether the last wait reported a change, without an event sent since then.
    was_told: bool,
}

/// Appends events under a lease, and leaves out changes that an earlier event has announced.
struct Told {
    leased: Leased,
    /// The changes that the client was notified of.
    changes: ToldChanges,
    batch: Batch,
}

/// The messages of one write.
#[derive(Default)]
struct Batch {
    /// The indexes of the first and of the last stored message.
    kept: Option<(u64, u64)>,
    /// Whether another node has written events between those.
    has_gap: bool,
    /// The messages that were not stored, as lines.
    unkept: Vec<u8>,
}

impl Append for Told {
    fn key(&self) -> &StreamKey {
        self.leased.key()
    }

    async fn append(&mut self, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        self.leased.append(write).await
    }

    fn record(&mut self, index: Option<u64>, message: &[u8]) -> bool {
        let batch = &mut self.batch;
        let Some(index) = index else {
            if !message.is_empty() && !is_note(message) {
                batch.unkept.extend_from_slice(message);
                batch.unkept.push(b'\n');
            }
            return true;
        };
        let (first, before) = batch.kept.unwrap_or((index, index - 1));
        batch.has_gap |= before + 1 != index;
        batch.kept = Some((first, index));
        !self.changes.note(index, message)
    }
}

impl GetLog {
    pub(crate) fn new(key: StreamKey, has_empty: bool, forwarder: &Arc<Forwarder>) -> Self {
        let told = Told {
            leased: Leased::unheld(key),
            changes: ToldChanges::default(),
            batch: Batch::default(),
        };
        Self {
            writer: StreamWriter::new(told, has_empty),
            forwarder: Arc::clone(forwarder),
            waiting: None,
            is_taken: false,
            watching: Watching::default(),
            marked: 0,
            was_told: false,
        }
    }

    /// Takes the messages outside requests that wait on this node, and all that follow.
    async fn take_waiting(&mut self) -> Vec<u8> {
        let mut waiting = self.forwarder.lock().await;
        let taken = mem::take(&mut *waiting);
        self.waiting = Some(waiting);
        taken
    }

    /// Takes the stream from the node that has it. Returns the index of the last event that its client has seen, or else of the
    /// last that any client has read. `None` if the store does not return it; then this node sends only its own messages.
    async fn take(&mut self, seen: Option<u64>) -> Option<u64> {
        let writer = &mut self.writer;
        let found = async {
            let Some(epoch) = writer.appender.key().claim(ClaimMode::Take, HELD).await? else {
                return Ok(None);
            };
            writer.appender.leased.hold(Lease::new(epoch, HELD));
            if seen.is_some() {
                return Ok(seen);
            }
            writer.appender.batch = Batch::default();
            writer.write(&Record::Opened.line(), false).await;
            match writer.appender.batch.kept {
                Some((index, _)) => last_sent(writer.appender.key(), index).await.map(Some),
                None => Ok(None),
            }
        };
        let found = found.await.map_err(|error| log(Err(error))).ok().flatten();
        self.is_taken = found.is_some();
        found
    }

    async fn write_lines(&mut self, lines: &[u8], ends: bool, sent: u64) -> Written {
        self.writer.appender.batch = Batch::default();
        let (events, last) = self.writer.write(lines, ends).await;
        let Told { leased, batch, .. } = &mut self.writer.appender;
        if leased.is_fenced() {
            return Written::Taken;
        }
        match batch.kept {
            Some((first, _)) if self.is_taken && (batch.has_gap || first != sent + 1) => {
                // Other nodes have added events before these.
                let mut unkept = Vec::new();
                encode(&mut unkept, &mem::take(&mut batch.unkept));
                return Written::Replay(sent, unkept);
            }
            Some(_) if self.is_taken => self.note_sent(),
            _ => {}
        }
        Written::Events(events, last)
    }

    /// Tells other nodes that a client has read all events up to this one.
    async fn mark(&mut self, sent: u64) -> Written {
        let written = self
            .write_lines(&Record::Sent(sent).line(), false, sent)
            .await;
        // The mark itself does not need a mark, unless other nodes have added events before it.
        self.marked = match written {
            Written::Events(_, Some(last)) if last == sent + 1 => last,
            _ => sent,
        };
        written
    }

    /// Records that another event was sent.
    fn note_sent(&mut self) {
        self.watching = Watching::default();
        self.was_told = false;
    }
}

impl StreamLog for GetLog {
    fn open(&mut self, seen: Option<u64>, _: bool) -> BoxFuture<'_, Opened> {
        Box::pin(async move {
            let waiting = self.take_waiting().await;
            let position = self.take(seen).await;
            Opened {
                waiting,
                written: replay_after(position),
                has_id: position.is_some() && self.writer.has_empty,
            }
        })
    }

    fn write<'a>(&'a mut self, lines: &'a [u8], ends: bool, sent: u64) -> BoxFuture<'a, Written> {
        Box::pin(self.write_lines(lines, ends, sent))
    }

    fn write_empty(&mut self) -> BoxFuture<'_, Option<u64>> {
        Box::pin(self.writer.write_empty())
    }

    fn after(&mut self, seen: u64, is_new: bool) -> BoxFuture<'_, Option<Replayed>> {
        Box::pin(async move {
            let (key, changes) = (
                self.writer.appender.key().clone(),
                &mut self.writer.appender.changes,
            );
            if is_new {
                look_back(changes, &key, seen).await;
            }
            let mut changes = mem::take(changes);
            let is_sent = |index, event: &[u8]| !changes.note(index, event);
            let replayed = self.writer.after(seen, is_sent).await;
            self.writer.appender.changes = changes;
            if replayed.as_ref().is_some_and(|it| it.last > seen) {
                self.note_sent();
            }
            replayed
        })
    }

    fn end(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.writer.end())
    }

    fn changed(&mut self, sent: u64) -> Option<BoxFuture<'_, NodeEvent>> {
        if !self.is_taken {
            return None;
        }
        Some(Box::pin(async move {
            let key = self.writer.appender.key();
            self.watching.changed(key, sent, self.was_told).await;
            self.was_told = true;
            NodeEvent::Stored
        }))
    }

    fn is_unmarked(&self, sent: u64) -> bool {
        self.is_taken && self.marked < sent
    }

    fn note(&mut self, moment: Moment, sent: u64) -> BoxFuture<'_, Written> {
        Box::pin(async move {
            match moment {
                Moment::Read => self.mark(sent).await,
                Moment::Silent => {
                    // By now all nodes have announced the changes they know.
                    self.writer.appender.changes.clear();
                    match self.is_taken {
                        true => Written::default(),
                        false => replay_after(self.take(None).await),
                    }
                }
                Moment::Unchanged => match self.writer.appender.leased.is_newest().await {
                    true => Written::default(),
                    false => Written::Taken,
                },
            }
        })
    }
}

/// The events after the position from which a stream was taken.
fn replay_after(position: Option<u64>) -> Written {
    match position {
        Some(position) => Written::Replay(position, Vec::new()),
        None => Written::default(),
    }
}

/// A wait for events of other nodes, or for another node to take the stream. It runs in its own task, because the stream does not
/// poll it while it does something else: calls of a store may queue, and a call that is not polled would block all calls behind it.
#[derive(Default)]
struct Watching(Option<AbortOnDropHandle<()>>);

impl Watching {
    /// Waits as [`changed`] does, and continues the same wait if this future was dropped. Cancel safe.
    async fn changed(&mut self, place: &StreamKey, sent: u64, was_told: bool) {
        let watching = self.0.get_or_insert_with(|| {
            let place = place.clone();
            AbortOnDropHandle::new(spawn(async move { changed(&place, sent, was_told).await }))
        });
        // If the store panicked, the next wait tries again.
        drop(watching.await);
        self.0 = None;
    }
}

impl Drop for GetLog {
    fn drop(&mut self) {
        // Messages from here on are for the node that sends the stream next.
        self.waiting = None;
        self.forwarder.begin();
    }
}

/// Records the changes that the last events up to this one announce.
async fn look_back(told: &mut ToldChanges, place: &StreamKey, seen: u64) {
    let mut count = if seen > 0 { REPLAYED } else { 0 };
    while count > 0 {
        let before = seen.saturating_sub(count as u64);
        match place.after(before, count).await {
            Ok(Replay::Events { events, .. }) => {
                for (index, event) in (before + 1..=seen).zip(&events) {
                    told.note(index, event);
                }
                return;
            }
            // Fewer events than that are stored.
            Ok(Replay::Lost) => count /= 2,
            Err(error) => return log(Err(error)),
        }
    }
}

/// The last event before this one that a record marks as sent, or else the event before all stored ones.
async fn last_sent(place: &StreamKey, opened: u64) -> Result<u64> {
    let sent = find_back(place, opened.saturating_sub(1), |record| match record {
        Record::Sent(index) => Some(index),
        _ => None,
    });
    let (sent, last) = sent.await?;
    Ok(sent.unwrap_or(last).min(last))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use oxmcp_protocol::Meta;
    use serde_json::json;
    use tokio::{sync::Semaphore, task::yield_now, time::timeout};

    use super::*;
    use crate::store::{EventBatch, EventStore, MemoryEventStore, any_event_store};

    fn place(store: MemoryEventStore) -> StreamKey {
        StreamKey {
            store: any_event_store(store),
            session: "a".into(),
            stream: "s0".into(),
        }
    }

    async fn found(store: MemoryEventStore, before: usize, sent: Option<u64>, after: usize) -> u64 {
        let place = place(store);
        let messages = |count| vec!["{}\n"; count].concat().into_bytes();
        let mark = sent.map_or_else(Vec::new, |sent| Record::Sent(sent).line());
        for lines in [messages(before), mark, messages(after)] {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                let write = StreamWrite::new(EventBatch::of_lines(line));
                place.append(write).await.unwrap();
            }
        }
        let marks = usize::from(sent.is_some());
        let opened = (before + marks + after + 1) as u64;
        last_sent(&place, opened).await.unwrap()
    }

    #[tokio::test]
    async fn newest_mark_shows_sent_messages() {
        let store = MemoryEventStore::new;
        for after in [0, 1, 2, 63, 64, 65, 300] {
            assert_eq!(found(store(), 10, Some(10), after).await, 10);
            assert_eq!(found(store(), after, None, 0).await, 0);
        }
        // The mark itself was evicted, and the remaining events were sent to no client.
        for left in [1, 2, 3, 7, 64, 100] {
            let bounded = store().max_stream_events(left);
            assert_eq!(found(bounded, 10, Some(10), 150).await, 161 - left as u64);
        }
    }

    #[tokio::test]
    async fn new_client_counts_as_notified_of_changes() {
        let change = |number: u64| {
            let meta = json!({Meta::CHANGES: format!("1.{number}")});
            let method = "notifications/tools/list_changed";
            json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}}).to_string()
        };
        for (kept, known) in [(1, 16..16), (10, 12..16), (4096, 1..16)] {
            let place = place(MemoryEventStore::new().max_stream_events(kept));
            let events = (1..=20).map(change);
            let write = StreamWrite::new(EventBatch::from_iter(events));
            place.append(write).await.unwrap();
            let mut told = ToldChanges::default();
            look_back(&mut told, &place, 15).await;
            for number in 1..=20 {
                let is_told = told.note(21, change(number).as_bytes());
                assert_eq!(is_told, known.contains(&number), "{number} {kept}");
            }
        }
    }

    /// A store that processes one call at a time.
    struct Queued {
        store: MemoryEventStore,
        turns: Arc<Semaphore>,
    }

    impl EventStore for Queued {
        async fn append(
            &self,
            session: &str,
            stream: &str,
            write: StreamWrite,
        ) -> Result<Option<Vec<u64>>> {
            let _turn = self.turns.acquire().await;
            self.store.append(session, stream, write).await
        }

        async fn after(
            &self,
            session: &str,
            stream: &str,
            index: u64,
            max: usize,
        ) -> Result<Replay> {
            self.store.after(session, stream, index, max).await
        }

        async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
            drop(self.turns.acquire().await);
            self.store.watch(session, stream, index).await
        }

        async fn claim(
            &self,
            session: &str,
            stream: &str,
            claim: ClaimMode,
            lasts: Duration,
        ) -> Result<Option<u64>> {
            self.store.claim(session, stream, claim, lasts).await
        }

        async fn renew(
            &self,
            session: &str,
            stream: &str,
            epoch: u64,
            lasts: Duration,
        ) -> Result<bool> {
            self.store.renew(session, stream, epoch, lasts).await
        }

        async fn forget(&self, session: &str) -> Result<()> {
            self.store.forget(session).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unpolled_wait_blocks_nobody() {
        let turns = Arc::new(Semaphore::new(1));
        let place = StreamKey {
            store: any_event_store(Queued {
                store: MemoryEventStore::new(),
                turns: Arc::clone(&turns),
            }),
            session: "a".into(),
            stream: "s0".into(),
        };
        let write = || StreamWrite::new(EventBatch::from_iter(["{}"]));
        assert_eq!(place.append(write()).await.unwrap(), Some(vec![1]));
        let busy = turns.acquire().await.unwrap();
        let mut watching = Watching::default();
        assert_eq!(watching.changed(&place, 1, false).now_or_never(), None);
        yield_now().await;
        drop(busy);
        let appended = timeout(Duration::from_secs(1), place.append(write())).await;
        assert_eq!(appended.unwrap().unwrap(), Some(vec![2]));
        watching.changed(&place, 1, false).await;
    }
}

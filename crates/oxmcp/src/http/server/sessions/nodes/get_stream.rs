//! The GET stream of a session that several nodes share. The node where the client last opened it sends it, and the store records
//! how much of it was sent.

use std::{future::pending, sync::Arc, time::Duration};

use tokio::sync::OwnedMutexGuard;
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::{
        persistence::log,
        stored_events::{Record, ToldChanges},
        stream_writer::{StreamKey, StreamWriter},
        streams::REPLAYED,
    },
    forward::Forwarder,
};
use crate::{
    error::Result,
    session::task::spawn,
    store::{Claim, Lease, Replay},
};

/// The duration of this node's lease on the stream, unless another node takes it. Nodes do not wait for the lease to expire.
const HELD: Duration = Duration::from_secs(60 * 60);

/// The state of the GET stream on the node that sends it.
pub(crate) struct GetStream {
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
    /// The changes that the client was notified of.
    pub(crate) told: ToldChanges,
    /// Whether the client may have been notified of other changes.
    is_new: bool,
}

impl GetStream {
    pub(crate) fn new(forwarder: &Arc<Forwarder>) -> Self {
        Self {
            forwarder: Arc::clone(forwarder),
            waiting: None,
            is_taken: false,
            watching: Watching::default(),
            marked: 0,
            was_told: false,
            told: ToldChanges::default(),
            is_new: true,
        }
    }

    /// Takes the messages outside requests that wait on this node, and all that follow.
    pub(crate) async fn take_waiting(&mut self) -> Vec<u8> {
        let mut waiting = self.forwarder.lock().await;
        let taken = std::mem::take(&mut *waiting);
        self.waiting = Some(waiting);
        taken
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Handles a silence of the stream. Returns whether the stream must still be taken.
    pub(crate) fn is_delegated(&mut self) -> bool {
        // By now all nodes have announced the changes they know.
        self.told.clear();
        !self.is_taken
    }

    /// Takes the stream from the node that has it. Returns the index of the last event that its client has seen, or else of the
    /// last that any client has read. `None` if the store does not return it.
    pub(crate) async fn take(
        &mut self,
        writer: &mut StreamWriter,
        seen: Option<u64>,
    ) -> Option<u64> {
        let found = async {
            let Some(epoch) = writer.place().claim(Claim::Take, HELD).await? else {
                return Ok(None);
            };
            writer.hold(Lease::new(epoch, HELD));
            if seen.is_some() {
                return Ok(seen);
            }
            let opened = writer.write(&Record::Opened.line(), false, None).await;
            match opened.kept {
                Some((index, _)) => last_sent(writer.place(), index).await.map(Some),
                None => Ok(None),
            }
        };
        let found = found.await.map_err(|error| log(Err(error))).ok().flatten();
        self.is_taken = found.is_some();
        found
    }

    /// Records that a new client has arrived, which has seen part of the stream.
    pub(crate) fn note_client(&mut self) {
        self.is_new = true;
    }

    /// Finds the changes that a newly arrived client was notified of, in the events up to this one.
    pub(crate) async fn look_back(&mut self, place: &StreamKey, seen: u64) {
        if !std::mem::take(&mut self.is_new) {
            return;
        }
        look_back(&mut self.told, place, seen).await;
    }

    /// Waits until other nodes may have added events after this one, or taken the stream. Cancel safe.
    pub(crate) async fn changed(&mut self, place: Option<&StreamKey>, sent: u64) {
        let Some(place) = place.filter(|_| self.is_taken) else {
            return pending().await;
        };
        self.watching.changed(place, sent, self.was_told).await;
        self.was_told = true;
    }

    /// Records that another event was sent.
    pub(crate) fn note_sent(&mut self) {
        self.watching = Watching::default();
        self.was_told = false;
    }

    /// Whether the store has yet to record that all events up to this one were sent.
    pub(crate) fn is_unmarked(&self, sent: u64) -> bool {
        self.is_taken && self.marked < sent
    }

    pub(crate) fn note_marked(&mut self, sent: u64) {
        self.marked = sent;
    }
}

/// A wait for events of other nodes, or for another node to take the stream. It runs in its own task, because the stream does not
/// poll it while it does something else: calls of a store may queue, and a call that is not polled would block all calls behind it.
#[derive(Default)]
struct Watching(Option<AbortOnDropHandle<()>>);

impl Watching {
    /// Waits as [`StreamKey::changed`] does, and continues the same wait if this future was dropped. Cancel safe.
    async fn changed(&mut self, place: &StreamKey, sent: u64, was_told: bool) {
        let watching = self.0.get_or_insert_with(|| {
            let place = place.clone();
            AbortOnDropHandle::new(spawn(async move { place.changed(sent, was_told).await }))
        });
        // If the store panicked, the next wait tries again.
        drop(watching.await);
        self.0 = None;
    }
}

impl Drop for GetStream {
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
    let sent = place.find_back(opened.saturating_sub(1), |record| match record {
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
    use crate::store::{EventBatch, EventStore, MemoryEventStore, StreamWrite, any_event_store};

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
            claim: Claim,
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

//! The writer of a stream, which stores the events that are sent, under a lease if other nodes may take over.

use std::{
    future::pending,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{
    persistence::log,
    stored_events::{LEASE, RENEWAL, Record, ToldChanges, write},
    streams::REPLAYED,
};
use crate::{
    error::{Error, Result},
    http::server::event_encoding::{EventWriter, messages, parts},
    session::task::{Latch, spawn},
    store::{AnyEventStore, Claim, EventBatch, Lease, Replay, StreamWrite},
};

/// The time after which a store that does not report changes is polled.
const WATCHED: Duration = Duration::from_secs(30);
/// The pause before the next poll of a store that falsely reports changes.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause before the next request to a store after a failure.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// The location of a stream's events.
#[derive(Clone)]
pub(crate) struct StreamKey {
    pub(crate) store: Arc<dyn AnyEventStore>,
    pub(crate) session: Arc<str>,
    pub(crate) stream: Arc<str>,
}

/// The writer of a session's stream to a store.
pub(crate) struct StreamWriter {
    place: StreamKey,
    /// Whether events without data are sent.
    has_empty: bool,
    /// The lease under which the writer writes, if other nodes share the session.
    lease: Option<Lease>,
    renewing: Option<Renewing>,
    is_fenced: bool,
    /// Whether events are still stored after another node has taken over, for that node.
    forwards: bool,
    /// The index of the newest event that was written.
    last: u64,
    /// Whether the writer has stopped writing.
    has_ended: bool,
}

/// Messages that were stored, or could not be.
pub(crate) struct Written {
    /// All messages, as they are sent.
    pub(crate) events: Vec<u8>,
    /// The messages that were not stored, as they are sent.
    pub(crate) unkept: Vec<u8>,
    /// The indexes of the first and of the last stored message.
    pub(crate) kept: Option<(u64, u64)>,
    /// Whether no other node has written events between those.
    pub(crate) is_contiguous: bool,
    /// Whether another node has taken over. Then this node must not send the messages.
    pub(crate) is_fenced: bool,
}

impl StreamKey {
    pub(crate) async fn append(&self, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        let Self {
            store,
            session,
            stream,
        } = self;
        store.append(session, stream, write).await
    }

    pub(crate) async fn after(&self, index: u64, max: usize) -> Result<Replay> {
        self.store
            .after(&self.session, &self.stream, index, max)
            .await
    }

    /// Searches for a record in the events up to `from`, newest first. Returns the record, with the index of the last event that
    /// may precede it, or without a record the index before all stored events.
    pub(crate) async fn find_back<T>(
        &self,
        mut from: u64,
        wanted: impl Fn(Record) -> Option<T>,
    ) -> Result<(Option<T>, u64)> {
        let (mut step, mut grows) = (1, true);
        while from > 0 {
            let start = from.saturating_sub(step);
            let count = usize::try_from(from - start).unwrap_or(REPLAYED);
            match self.after(start, count).await? {
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

    pub(crate) async fn claim(&self, claim: Claim, lasts: Duration) -> Result<Option<u64>> {
        let (session, stream) = (&self.session, &self.stream);
        self.store.claim(session, stream, claim, lasts).await
    }

    /// Waits until there may be an event after this one. The wait is limited, because some stores never report events. Cancel safe.
    pub(crate) async fn changed(&self, index: u64, is_again: bool) {
        // A store whose `watch` returns immediately must not be polled without a pause.
        if is_again {
            sleep(PAUSE).await;
        }
        let watched = self.store.watch(&self.session, &self.stream, index);
        if let Ok(Err(error)) = timeout(WATCHED, watched).await {
            log(Err(error));
            sleep(RETRY).await;
        }
    }

    async fn renew(&self, lease: Lease) -> Result<bool> {
        let Lease { epoch, lasts } = lease;
        let (session, stream) = (&self.session, &self.stream);
        self.store.renew(session, stream, epoch, lasts).await
    }
}

impl StreamWriter {
    /// Creates a writer of a stream. If it is `leased`, the stream must be new, so that other nodes cannot know it yet. It is
    /// written under a lease, which is renewed from the first event on.
    pub(crate) fn new(place: StreamKey, has_empty: bool, leased: bool) -> Self {
        Self {
            place,
            has_empty,
            lease: leased.then(|| Lease::new(1, LEASE)),
            is_fenced: false,
            renewing: None,
            forwards: false,
            last: 0,
            has_ended: false,
        }
    }

    pub(crate) fn place(&self) -> &StreamKey {
        &self.place
    }

    /// Makes the writer write under a lease until another node takes one. Events that it writes after that are stored for the other
    /// node.
    pub(crate) fn hold(&mut self, lease: Lease) {
        self.lease = Some(lease);
        self.forwards = true;
    }

    /// Waits until another node has taken over. Cancel safe.
    pub(crate) async fn fenced(&self) {
        match &self.renewing {
            Some(renewing) => renewing.lost.wait().await,
            None => pending().await,
        }
    }

    /// Stores messages, which are lines, and encodes them as events with their IDs, except changes that were `told` before. The
    /// stream ends with these messages if it `ends`.
    pub(crate) async fn write(
        &mut self,
        lines: &[u8],
        ends: bool,
        mut told: Option<&mut ToldChanges>,
    ) -> Written {
        let name = Arc::clone(&self.place.stream);
        let mut out = EventWriter::new(&name);
        let mut unkept = EventWriter::new(&name);
        let mut written = Written::nothing();
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
                written.note(index);
                let told = told.as_deref_mut();
                write(&mut out, index, message, self.has_empty, told);
                if index.is_none() {
                    write(&mut unkept, None, message, self.has_empty, None);
                }
            }
        }
        written.events = out.finish();
        written.unkept = unkept.finish();
        written.is_fenced = self.is_fenced;
        written
    }

    /// Stores an event with only an index to resume from.
    pub(crate) async fn write_empty(&mut self) -> Option<u64> {
        let empty = EventBatch::from_iter([b""]);
        let appended = self.append(empty, false).await;
        let indexes = appended.inspect_err(log_not_stored).ok()?;
        indexes.first().copied()
    }

    /// Ends the stream in the store, unless it has ended there.
    pub(crate) async fn end(&mut self) {
        self.renewing = None;
        if !self.has_ended {
            self.has_ended = true;
            let end = StreamWrite::default().ending();
            log(self.place.append(self.leased(end)).await.map(drop));
        }
    }

    /// Whether this node is still the writer, as far as the store can tell.
    pub(crate) async fn is_newest(&self) -> bool {
        match self.lease {
            Some(lease) => self.place.renew(lease).await.unwrap_or(true),
            None => true,
        }
    }

    fn leased(&self, write: StreamWrite) -> StreamWrite {
        match self.lease {
            Some(lease) => write.under(lease),
            None => write,
        }
    }

    /// Appends events. Returns the indexes of those that were stored: none if another node has taken over and events are not stored
    /// for it.
    async fn append(&mut self, events: EventBatch, ends: bool) -> Result<Vec<u64>> {
        let count = events.len();
        let forwarded = self.forwards.then(|| events.clone());
        let write = |events| StreamWrite {
            ends,
            ..StreamWrite::new(events)
        };
        let mut appended = self.place.append(self.leased(write(events))).await?;
        if appended.is_none() {
            self.is_fenced = true;
            let Some(events) = forwarded else {
                self.has_ended = true;
                return Ok(Vec::new());
            };
            self.lease = None;
            appended = self.place.append(write(events)).await?;
        }
        let indexes = appended.unwrap_or_default();
        if let (Some(first), Some(last)) = (indexes.first(), indexes.last()) {
            if *first <= self.last {
                tracing::warn!("event store lost events; the rest of the stream cannot be resumed");
                self.has_ended = true;
                return Ok(Vec::new());
            }
            self.has_ended |= ends && indexes.len() == count;
            self.note_written(*last);
        }
        Ok(indexes)
    }

    /// Records the index of the newest event. Writing it has renewed the lease.
    fn note_written(&mut self, last: u64) {
        self.last = last;
        if let Some(lease) = self.lease.filter(|_| !self.forwards && !self.has_ended) {
            let renewing = &mut self.renewing;
            let renewing = renewing.get_or_insert_with(|| Renewing::begin(&self.place, lease));
            renewing.last.store(last, Ordering::Relaxed);
        }
    }
}

impl Written {
    fn nothing() -> Self {
        Self {
            events: Vec::new(),
            unkept: Vec::new(),
            kept: None,
            is_contiguous: true,
            is_fenced: false,
        }
    }

    fn note(&mut self, index: Option<u64>) {
        if let Some(index) = index {
            let (first, before) = self.kept.unwrap_or((index, index - 1));
            self.is_contiguous &= before + 1 == index;
            self.kept = Some((first, index));
        }
    }
}

/// The renewal of a lease, independent of the state of the stream's writer. Dropping it ends the renewal.
struct Renewing {
    /// The index of the newest event that was written.
    last: Arc<AtomicU64>,
    /// Set when another node has taken over.
    lost: Arc<Latch>,
    _task: AbortOnDropHandle<()>,
}

impl Renewing {
    fn begin(place: &StreamKey, lease: Lease) -> Self {
        let (last, lost) = (Arc::<AtomicU64>::default(), Arc::<Latch>::default());
        let renewing = renew(place.clone(), lease, Arc::clone(&last), Arc::clone(&lost));
        Self {
            last,
            lost,
            _task: AbortOnDropHandle::new(spawn(renewing)),
        }
    }
}

/// Renews a lease while nothing is written, and sets `lost` when another node has taken the next lease.
async fn renew(place: StreamKey, lease: Lease, last: Arc<AtomicU64>, lost: Arc<Latch>) {
    let mut renewed = 0;
    loop {
        sleep(RENEWAL).await;
        let newest = last.load(Ordering::Relaxed);
        // Writing renews the lease.
        if newest == mem::replace(&mut renewed, newest)
            && matches!(place.renew(lease).await, Ok(false))
        {
            // If the stream was lost with the whole store, another node has not taken it.
            if matches!(place.after(newest, 0).await, Ok(Replay::Events { .. })) {
                lost.set();
            }
            return;
        }
    }
}

/// Logs that a store did not return the index of events.
fn log_not_stored(error: &Error) {
    tracing::warn!(%error, "could not store events; sending them without IDs");
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::store::{EventStore, MemoryEventStore, any_event_store};

    fn place(store: Arc<dyn AnyEventStore>) -> StreamKey {
        StreamKey {
            store,
            session: "s".into(),
            stream: "r1".into(),
        }
    }

    fn one_event() -> StreamWrite {
        StreamWrite::new(EventBatch::from_iter([b"1"]))
    }

    #[tokio::test(start_paused = true)]
    async fn store_returning_at_once_is_not_polled_continuously() {
        let place = place(any_event_store(MemoryEventStore::new()));
        place.append(one_event()).await.unwrap();
        let begin = Instant::now();
        place.changed(0, false).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        place.changed(0, true).await;
        assert_eq!(begin.elapsed(), PAUSE);
    }

    async fn claimed(place: &StreamKey) -> Lease {
        let epoch = place.claim(Claim::Take, LEASE).await.unwrap().unwrap();
        Lease::new(epoch, LEASE)
    }

    #[tokio::test(start_paused = true)]
    async fn lease_survives_store_failure_but_not_takeover() {
        for is_purged in [false, true] {
            let store = any_event_store(MemoryEventStore::new());
            let place = place(Arc::clone(&store));
            let lease = claimed(&place).await;
            place.append(one_event().under(lease)).await.unwrap();
            let renewing = Renewing::begin(&place, lease);
            sleep(RENEWAL * 3).await;
            assert!(!renewing.lost.is_set());
            if is_purged {
                store.forget("s").await.unwrap();
            } else {
                claimed(&place).await;
            }
            sleep(RENEWAL * 3).await;
            assert_eq!(renewing.lost.is_set(), !is_purged);
        }
    }

    #[tokio::test]
    async fn ending_stream_renews_no_lease() {
        for ends in [false, true] {
            let place = place(any_event_store(MemoryEventStore::new()));
            let mut writer = StreamWriter::new(place, false, true);
            let written = writer.write(b"1\n", ends, None).await;
            assert_eq!(written.kept, Some((1, 1)));
            assert_eq!(writer.renewing.is_none(), ends);
        }
    }

    /// A store that cannot be reached.
    struct Unreachable;

    fn unreachable<T>() -> Result<T> {
        Err(Error::network("it cannot be reached"))
    }

    impl EventStore for Unreachable {
        async fn append(&self, _: &str, _: &str, _: StreamWrite) -> Result<Option<Vec<u64>>> {
            unreachable()
        }
        async fn after(&self, _: &str, _: &str, _: u64, _: usize) -> Result<Replay> {
            unreachable()
        }
        async fn watch(&self, _: &str, _: &str, _: u64) -> Result<()> {
            unreachable()
        }
        async fn claim(&self, _: &str, _: &str, _: Claim, _: Duration) -> Result<Option<u64>> {
            unreachable()
        }
        async fn renew(&self, _: &str, _: &str, _: u64, _: Duration) -> Result<bool> {
            unreachable()
        }
        async fn forget(&self, _: &str) -> Result<()> {
            unreachable()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn writer_continues_while_store_state_is_unknown() {
        let mut writer = StreamWriter::new(place(any_event_store(Unreachable)), false, true);
        writer.hold(Lease::new(1, LEASE));
        assert!(writer.is_newest().await);
        let known = place(any_event_store(MemoryEventStore::new()));
        let mut writer = StreamWriter::new(known.clone(), false, true);
        writer.hold(claimed(&known).await);
        assert!(writer.is_newest().await);
        claimed(&known).await;
        assert!(!writer.is_newest().await);
    }
}

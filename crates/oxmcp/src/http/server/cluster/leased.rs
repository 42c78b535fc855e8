//! Writing a stream under a lease, which keeps other nodes from writing it until they take it over, or the lease expires.

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

use crate::{
    error::Result,
    http::server::sessions::{Append, StreamKey, log},
    session::task::{Latch, spawn},
    store::{Lease, Replay, StreamWrite},
};

/// The duration of a writer's lease, which is also the time to detect that a node is gone.
pub(crate) const LEASE: Duration = Duration::from_secs(5);
/// The interval at which the lease is renewed while there is nothing to write.
pub(crate) const RENEWAL: Duration = Duration::from_millis(1500);
/// The time after which a store that does not report changes is polled.
const WATCHED: Duration = Duration::from_secs(30);
/// The pause before the next poll of a store that falsely reports changes.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause before the next request to a store after a failure.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Appends events under a lease.
pub(crate) struct Leased {
    key: StreamKey,
    lease: Option<Lease>,
    /// Renews the lease, from the first event on.
    renewing: Option<Renewing>,
    /// Whether another node has taken the stream. Then this node must not send events of it.
    is_fenced: bool,
    /// Whether events are still stored after that, for the other node.
    forwards: bool,
}

impl Leased {
    /// A new stream, which other nodes cannot know yet. Its lease is renewed from the first event on.
    pub(crate) fn new(key: StreamKey) -> Self {
        Self {
            key,
            lease: Some(Lease::new(1, LEASE)),
            renewing: None,
            is_fenced: false,
            forwards: false,
        }
    }

    /// A stream that other nodes may have. It has no lease until [`hold`](Self::hold).
    pub(crate) fn unheld(key: StreamKey) -> Self {
        Self {
            lease: None,
            ..Self::new(key)
        }
    }

    /// Writes under this lease until another node takes one. Events that are written after that are stored for the other node.
    pub(crate) fn hold(&mut self, lease: Lease) {
        self.lease = Some(lease);
        self.forwards = true;
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.is_fenced
    }

    /// Waits until another node has taken over. Cancel safe.
    pub(crate) async fn fenced(&self) {
        match &self.renewing {
            Some(renewing) => renewing.lost.wait().await,
            None => pending().await,
        }
    }

    /// Whether this node is still the writer, as far as the store can tell.
    pub(crate) async fn is_newest(&self) -> bool {
        match self.lease {
            Some(lease) => renew_once(&self.key, lease).await.unwrap_or(true),
            None => true,
        }
    }

    /// Stops renewing the lease.
    pub(crate) fn stop_renewing(&mut self) {
        self.renewing = None;
    }

    fn leased(&self, write: StreamWrite) -> StreamWrite {
        match self.lease {
            Some(lease) => write.under(lease),
            None => write,
        }
    }

    /// Records the index of the newest event. Writing it has renewed the lease.
    fn note_written(&mut self, last: u64) {
        if let Some(lease) = self.lease.filter(|_| !self.forwards) {
            let renewing = &mut self.renewing;
            let renewing = renewing.get_or_insert_with(|| Renewing::begin(&self.key, lease));
            // After the loss of a store, indexes begin again.
            renewing.last.fetch_max(last, Ordering::Relaxed);
        }
    }
}

impl Append for Leased {
    fn key(&self) -> &StreamKey {
        &self.key
    }

    async fn append(&mut self, write: StreamWrite) -> Result<Option<Vec<u64>>> {
        let (count, ends) = (write.events.len(), write.ends);
        let forwarded = self.forwards.then(|| write.clone());
        let mut appended = self.key.append(self.leased(write)).await?;
        if appended.is_none() {
            self.is_fenced = true;
            let Some(forwarded) = forwarded else {
                return Ok(None);
            };
            self.lease = None;
            appended = self.key.append(forwarded).await?;
        }
        let indexes = appended.unwrap_or_default();
        let has_ended = ends && indexes.len() == count;
        if let Some(last) = indexes.last().filter(|_| !has_ended) {
            self.note_written(*last);
        }
        Ok(Some(indexes))
    }

    fn record(&mut self, _: Option<u64>, _: &[u8]) -> bool {
        true
    }
}

async fn renew_once(key: &StreamKey, lease: Lease) -> Result<bool> {
    let Lease { epoch, lasts } = lease;
    key.store
        .renew(&key.session, &key.stream, epoch, lasts)
        .await
}

/// Waits until there may be an event after this one. The wait is limited, because some stores never report events. Cancel safe.
pub(crate) async fn changed(key: &StreamKey, index: u64, is_again: bool) {
    // A store whose `watch` returns immediately must not be polled without a pause.
    if is_again {
        sleep(PAUSE).await;
    }
    let watched = key.store.watch(&key.session, &key.stream, index);
    if let Ok(Err(error)) = timeout(WATCHED, watched).await {
        log(Err(error));
        sleep(RETRY).await;
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
    fn begin(key: &StreamKey, lease: Lease) -> Self {
        let (last, lost) = (Arc::<AtomicU64>::default(), Arc::<Latch>::default());
        let renewing = renew(key.clone(), lease, Arc::clone(&last), Arc::clone(&lost));
        Self {
            last,
            lost,
            _task: AbortOnDropHandle::new(spawn(renewing)),
        }
    }
}

/// Renews a lease while nothing is written, and sets `lost` when another node has taken the next lease.
async fn renew(key: StreamKey, lease: Lease, last: Arc<AtomicU64>, lost: Arc<Latch>) {
    let mut renewed = 0;
    loop {
        sleep(RENEWAL).await;
        let newest = last.load(Ordering::Relaxed);
        // Writing renews the lease.
        if newest == mem::replace(&mut renewed, newest)
            && matches!(renew_once(&key, lease).await, Ok(false))
        {
            // If the stream was lost with the whole store, another node has not taken it.
            if matches!(key.after(newest, 0).await, Ok(Replay::Events { .. })) {
                lost.set();
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::{
        error::Error,
        http::server::sessions::StreamWriter,
        store::{
            AnyEventStore, ClaimMode, EventBatch, EventStore, MemoryEventStore, any_event_store,
        },
    };

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
        changed(&place, 0, false).await;
        assert_eq!(begin.elapsed(), Duration::ZERO);
        changed(&place, 0, true).await;
        assert_eq!(begin.elapsed(), PAUSE);
    }

    async fn claimed(place: &StreamKey) -> Lease {
        let epoch = place.claim(ClaimMode::Take, LEASE).await.unwrap().unwrap();
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
            let mut writer = StreamWriter::new(Leased::new(place), false);
            let (_, last) = writer.write(b"1\n", ends).await;
            assert_eq!(last, Some(1));
            assert_eq!(writer.appender.renewing.is_none(), ends);
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
        async fn claim(&self, _: &str, _: &str, _: ClaimMode, _: Duration) -> Result<Option<u64>> {
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
        let mut leased = Leased::new(place(any_event_store(Unreachable)));
        leased.hold(Lease::new(1, LEASE));
        assert!(leased.is_newest().await);
        let known = place(any_event_store(MemoryEventStore::new()));
        let mut leased = Leased::new(known.clone());
        leased.hold(claimed(&known).await);
        assert!(leased.is_newest().await);
        claimed(&known).await;
        assert!(!leased.is_newest().await);
    }
}

//! Bounds of the event store in memory.

use std::time::Duration;

use bytes::Bytes;
use oxmcp::store::{EventBatch, EventStore, MemoryEventStore, Replay, StreamWrite};
use tokio::time::advance;

/// The number of bytes that an event of 1000 bytes counts, with its bookkeeping.
const EVENT: usize = 1000 + 64;

fn text() -> Bytes {
    vec![b' '; 1000].into()
}

async fn append(store: &MemoryEventStore, session: &str, stream: &str, count: usize) -> u64 {
    let mut index = 0;
    for _ in 0..count {
        index = append_all(store, session, stream, text()).await[0];
    }
    index
}

async fn append_all(
    store: &MemoryEventStore,
    session: &str,
    stream: &str,
    events: impl Into<EventBatch>,
) -> Vec<u64> {
    let write = StreamWrite::new(events);
    store.append(session, stream, write).await.unwrap().unwrap()
}

async fn end(store: &MemoryEventStore, session: &str, stream: &str) {
    let end = StreamWrite::default().ending();
    store.append(session, stream, end).await.unwrap();
}

/// The number of events that follow, or `None` if any of them is lost.
async fn after(store: &MemoryEventStore, session: &str, stream: &str, index: u64) -> Option<usize> {
    match store
        .after(session, stream, index, usize::MAX)
        .await
        .unwrap()
    {
        Replay::Events { events, .. } => Some(events.len()),
        Replay::Lost => None,
        other => panic!("{other:?}"),
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn stream_keeps_its_newest_events() {
    let by_bytes = MemoryEventStore::new().max_stream_bytes(3 * EVENT);
    let by_count = MemoryEventStore::new().max_stream_events(3);
    for store in [by_bytes, by_count] {
        assert_eq!(append(&store, "s", "a", 10).await, 10);
        append(&store, "s", "b", 1).await;
        assert_eq!(after(&store, "s", "a", 7).await, Some(3));
        assert_eq!(after(&store, "s", "a", 6).await, None);
        assert_eq!(after(&store, "s", "b", 0).await, Some(1));
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn appended_batches_are_bounded() {
    let batch = |count| (0..count).map(|_| text()).collect::<EventBatch>();
    let store = MemoryEventStore::new().max_stream_events(3);
    let indexes = append_all(&store, "s", "a", batch(5)).await;
    assert_eq!(indexes, [1, 2, 3, 4, 5]);
    assert_eq!(after(&store, "s", "a", 1).await, None);
    assert_eq!(after(&store, "s", "a", 2).await, Some(3));
    assert_eq!(append(&store, "s", "a", 1).await, 6);
    assert_eq!(after(&store, "s", "a", 3).await, Some(3));
    // The memory of a batch is free once all its events are gone.
    let store = MemoryEventStore::new().max_session_bytes(6 * EVENT);
    append_all(&store, "s", "a", batch(3)).await;
    append(&store, "s", "b", 2).await;
    assert_eq!(after(&store, "s", "a", 0).await, Some(3));
    append(&store, "s", "b", 1).await;
    assert_eq!(after(&store, "s", "a", 2).await, None);
    assert_eq!(after(&store, "s", "a", 3).await, Some(0));
    assert_eq!(after(&store, "s", "b", 0).await, Some(3));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn oversized_event_is_lost_and_counted() {
    let store = MemoryEventStore::new().max_stream_bytes(2 * EVENT);
    append(&store, "s", "a", 1).await;
    let long = Bytes::from(vec![b' '; 3000]);
    assert_eq!(append_all(&store, "s", "a", long).await, [2]);
    assert_eq!(after(&store, "s", "a", 1).await, None);
    assert_eq!(after(&store, "s", "a", 2).await, Some(0));
    assert_eq!(append(&store, "s", "a", 1).await, 3);
    assert_eq!(after(&store, "s", "a", 2).await, Some(1));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn empty_events_count_toward_the_limit() {
    let store = MemoryEventStore::new().max_stream_bytes(1000);
    for _ in 0..1000 {
        append_all(&store, "s", "a", Bytes::new()).await;
    }
    assert_eq!(after(&store, "s", "a", 0).await, None);
    assert_eq!(after(&store, "s", "a", 985).await, Some(15));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn session_keeps_its_newest_events_across_streams() {
    let store = MemoryEventStore::new().max_session_bytes(4 * EVENT);
    for stream in ["a", "b", "a", "b", "a", "c"] {
        append(&store, "s", stream, 1).await;
    }
    append(&store, "other", "a", 4).await;
    assert_eq!(after(&store, "s", "a", 0).await, None);
    assert_eq!(after(&store, "s", "a", 1).await, Some(2));
    assert_eq!(after(&store, "s", "b", 0).await, None);
    assert_eq!(after(&store, "s", "b", 1).await, Some(1));
    assert_eq!(after(&store, "s", "c", 0).await, Some(1));
    assert_eq!(after(&store, "other", "a", 0).await, Some(4));
}

#[tokio::test]
async fn noisy_session_evicts_only_its_own_events() {
    let store = MemoryEventStore::new().max_bytes(20 * EVENT);
    for quiet in 0..4 {
        append(&store, &format!("quiet {quiet}"), "a", 2).await;
    }
    append(&store, "noisy", "a", 1000).await;
    append(&store, "noisy", "b", 1000).await;
    for quiet in 0..4 {
        let session = format!("quiet {quiet}");
        assert_eq!(after(&store, &session, "a", 0).await, Some(2));
    }
    assert_eq!(after(&store, "noisy", "b", 988).await, Some(12));
    assert_eq!(after(&store, "noisy", "b", 987).await, None);
    assert_eq!(after(&store, "noisy", "a", 1000).await, Some(0));
    // A session that comes later finds room, too.
    append(&store, "late", "a", 5).await;
    assert_eq!(after(&store, "late", "a", 0).await, Some(5));
    assert_eq!(after(&store, "noisy", "b", 993).await, Some(7));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn forgotten_events_free_space() {
    let store = MemoryEventStore::new().max_bytes(10 * EVENT);
    for session in 0..100 {
        let session = session.to_string();
        append(&store, &session, "a", 9).await;
        assert_eq!(after(&store, &session, "a", 0).await, Some(9));
        store.forget(&session).await.unwrap();
    }
    assert!(format!("{store:?}").contains("sessions: 0, bytes: 0"));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn ended_streams_are_evicted_for_new_ones() {
    let store = MemoryEventStore::new().max_streams(3);
    for stream in ["a", "b", "c"] {
        append(&store, "s", stream, 1).await;
    }
    let refused = store.append("s", "d", StreamWrite::new(text())).await;
    let refused = refused.unwrap_err();
    assert!(refused.is_limit() && refused.message().contains("max_streams"));
    append(&store, "s", "a", 1).await;
    for stream in ["a", "b"] {
        end(&store, "s", stream).await;
    }
    append(&store, "s", "d", 1).await;
    assert_eq!(after(&store, "s", "b", 0).await, None);
    assert_eq!(after(&store, "s", "a", 0).await, Some(2));
    append(&store, "s", "c", 1).await;
    assert_eq!(after(&store, "s", "c", 0).await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn old_events_expire() {
    let store = MemoryEventStore::new().max_age(Duration::from_secs(60));
    append(&store, "s", "a", 2).await;
    advance(Duration::from_secs(40)).await;
    append(&store, "s", "a", 1).await;
    advance(Duration::from_secs(20)).await;
    assert_eq!(after(&store, "s", "a", 0).await, Some(3));
    advance(Duration::from_secs(1)).await;
    assert_eq!(after(&store, "s", "a", 0).await, None);
    assert_eq!(after(&store, "s", "a", 2).await, Some(1));
    advance(Duration::from_secs(60)).await;
    assert_eq!(after(&store, "s", "a", 3).await, Some(0));
    // The stream continues, and so does its count.
    assert_eq!(append(&store, "s", "a", 1).await, 4);
}

#[tokio::test(start_paused = true)]
async fn events_of_abandoned_streams_expire() {
    let store = MemoryEventStore::new().max_age(Duration::from_secs(60));
    for session in 0..50 {
        let session = session.to_string();
        append(&store, &session, "a", 2).await;
        end(&store, &session, "a").await;
    }
    append(&store, "open", "a", 1).await;
    advance(Duration::from_secs(100)).await;
    assert_eq!(after(&store, "another", "a", 0).await, None);
    assert!(format!("{store:?}").contains("sessions: 1, bytes: 0"));
    assert_eq!(after(&store, "open", "a", 1).await, Some(0));
}

#[tokio::test(start_paused = true)]
async fn endless_streams_are_forgotten_after_a_day() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    let store = MemoryEventStore::new().max_age(Duration::from_secs(60));
    for session in 0..50 {
        append(&store, &session.to_string(), "a", 3).await;
    }
    advance(DAY).await;
    // A client that waits for so long can still be answered.
    assert_eq!(append(&store, "0", "a", 1).await, 4);
    assert_eq!(after(&store, "1", "a", 3).await, Some(0));
    advance(DAY / 2).await;
    assert_eq!(after(&store, "1", "a", 3).await, None);
    assert_eq!(after(&store, "0", "a", 4).await, Some(0));
    assert!(format!("{store:?}").contains("sessions: 1, bytes: 0"));
    // A stream that continues nevertheless uses no index that it has used before.
    assert_eq!(append(&store, "1", "a", 2).await, 5);
    assert_eq!(after(&store, "1", "a", 2).await, None);
    assert_eq!(after(&store, "1", "a", 3).await, Some(2));
    assert_eq!(after(&store, "1", "a", 6).await, None);
}

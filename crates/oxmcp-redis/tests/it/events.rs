//! Events of streams: the contract, limits, and lost events.

use std::time::Duration;

use bytes::Bytes;
use oxmcp::{
    Revision,
    store::{ClaimMode, EventBatch, EventStore, Replay, SessionRecord, SessionStore, StreamWrite},
    testing,
};
use oxmcp_redis::Redis;
use tokio::time::{sleep, timeout};

use super::server::{Server, refused, shared};

async fn add(store: &Redis, stream: &str, data: &'static str) -> Vec<u64> {
    let write = StreamWrite::new(Bytes::from_static(data.as_bytes()));
    store
        .append("session", stream, write)
        .await
        .unwrap()
        .unwrap()
}

fn found(events: &[&'static str], ended: bool) -> Replay {
    Replay::Events {
        events: events
            .iter()
            .map(|it| Bytes::from_static(it.as_bytes()))
            .collect(),
        ended,
    }
}

#[tokio::test]
async fn event_store_contract_holds() {
    let Some((server, prefix)) = shared("the contract of events") else {
        return;
    };
    let make = || async { (server.connect(&prefix).await, server.connect(&prefix).await) };
    testing::event_store_contract(make).await.unwrap();
}

#[tokio::test]
async fn oldest_events_are_evicted_first() {
    let Some((server, prefix)) = shared("events that go") else {
        return;
    };
    let store = server.connect(&prefix).await.max_stream_events(2);
    for data in ["1", "2", "3"] {
        add(&store, "a", data).await;
    }
    assert_eq!(
        store.after("session", "a", 0, 9).await.unwrap(),
        Replay::Lost
    );
    assert_eq!(
        store.after("session", "a", 1, 9).await.unwrap(),
        found(&["2", "3"], false)
    );
    // The seal of each event takes 46 bytes.
    let store = store.max_stream_bytes(100);
    add(&store, "b", "1234").await;
    add(&store, "b", "1234567").await;
    assert_eq!(
        store.after("session", "b", 0, 9).await.unwrap(),
        Replay::Lost
    );
    assert_eq!(
        store.after("session", "b", 1, 9).await.unwrap(),
        found(&["1234567"], false)
    );
    let large = StreamWrite::new(Bytes::from(vec![b'x'; 100]));
    assert!(refused(store.append("session", "b", large).await).contains("event is too large"));
    // Indexes continue.
    assert_eq!(add(&store, "b", "1").await, [3]);
}

#[tokio::test]
async fn expired_events_are_lost_and_numbering_continues() {
    let Some((server, prefix)) = shared("events that expire") else {
        return;
    };
    let store = server.connect(&prefix).await;
    add(&store, "a", "1").await;
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    for key in &keys {
        let left: i64 = server.says(&["PTTL", key]).unwrap();
        let longest = if key.ends_with(":events:a") {
            300_000
        } else {
            86_400_000
        };
        assert!((1..=longest).contains(&left), "{key}: {left}");
    }
    assert_eq!(keys.len(), 2);
    let events = keys.iter().find(|it| it.ends_with(":events:a")).unwrap();
    let () = server.says(&["DEL", events]).unwrap();
    assert_eq!(
        store.after("session", "a", 0, 9).await.unwrap(),
        Replay::Lost
    );
    assert_eq!(
        store.after("session", "a", 1, 9).await.unwrap(),
        found(&[], false)
    );
    assert_eq!(add(&store, "a", "2").await, [2]);
    assert_eq!(
        store.after("session", "a", 0, 9).await.unwrap(),
        Replay::Lost
    );
    assert_eq!(
        store.after("session", "a", 1, 9).await.unwrap(),
        found(&["2"], false)
    );
}

#[tokio::test]
async fn session_streams_are_bounded_and_oldest_evicted() {
    let Some((server, prefix)) = shared("too many streams") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let ended = || StreamWrite::new(Bytes::from_static(b"1")).ending();
    store.append("session", "ended", ended()).await.unwrap();
    for number in 0..1023 {
        let name = format!("s{number}");
        let claimed = store.claim("session", &name, ClaimMode::IfFree, Duration::ZERO);
        claimed.await.unwrap();
    }
    assert_eq!(
        store.append("session", "more", ended()).await.unwrap(),
        Some(vec![1])
    );
    assert_eq!(
        store.after("session", "ended", 0, 9).await.unwrap(),
        Replay::Lost
    );
    assert!(
        server
            .says::<Vec<String>>(&["KEYS", "*:events:ended"])
            .unwrap()
            .is_empty()
    );
    let claim = |name| store.claim("session", name, ClaimMode::IfFree, Duration::ZERO);
    assert_eq!(claim("last").await.unwrap(), Some(1));
    // Now no stream has ended.
    let refusal = store.append("session", "more", ended()).await.unwrap_err();
    assert!(refusal.is_limit());
    assert!(refused(claim("more").await).contains("too many open streams: the session has 1024"));
}

#[tokio::test]
async fn waiting_reader_is_woken_by_another_process() {
    let Some((server, prefix)) = shared("waits for events") else {
        return;
    };
    let (one, other) = (server.connect(&prefix).await, server.connect(&prefix).await);
    add(&one, "a", "1").await;
    let rounds = async {
        for index in 1..=12 {
            let follow = async {
                loop {
                    other.watch("session", "a", index).await.unwrap();
                    let replay = other.after("session", "a", index, 9).await.unwrap();
                    if matches!(replay, Replay::Events { events, .. } if !events.is_empty()) {
                        return;
                    }
                }
            };
            tokio::join!(follow, add(&one, "a", "x"));
        }
    };
    // Waiting for the recheck in every round would take twice as long.
    timeout(Duration::from_secs(60), rounds)
        .await
        .expect("the waiter is not woken");
}

#[tokio::test]
async fn redis_sees_no_plaintext_event() {
    let Some((server, prefix)) = shared("secrets of events") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let events: EventBatch = ["secret", "secret too"].into_iter().collect();
    store
        .append("secret-session", "a", StreamWrite::new(events))
        .await
        .unwrap();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    assert!(keys.iter().all(|key| !key.contains("secret")), "{keys:?}");
    let events = keys.iter().find(|it| it.ends_with(":events:a")).unwrap();
    let kept: redis::Value = server.says(&["XRANGE", events, "-", "+"]).unwrap();
    let redis::Value::Array(kept) = kept else {
        panic!("{kept:?}");
    };
    assert_eq!(kept.len(), 2);
    assert!(!format!("{kept:?}").contains("secret"));
}

/// The remaining lifetime, in seconds, of the state of the streams of the session "session".
fn lasts(server: &Server, prefix: &str) -> i64 {
    let pattern = format!("{{{prefix}:*:streams");
    let keys: Vec<String> = server.says(&["KEYS", &pattern]).unwrap();
    let [key] = &keys[..] else {
        panic!("{keys:?}");
    };
    let left: i64 = server.says(&["PTTL", key]).unwrap();
    (left + 999) / 1000
}

#[tokio::test]
async fn stream_state_lives_as_long_as_its_session() {
    let Some((server, prefix)) = shared("the age of streams") else {
        return;
    };
    let store = server.connect(&prefix).await;
    add(&store, "a", "1").await;
    let day = 24 * 60 * 60;
    assert!((day - 5..=day).contains(&lasts(server, &prefix)));
    let params = serde_json::from_str("{}").unwrap();
    let record = SessionRecord::new(params, Revision::V2025_11_25);
    let minute = Duration::from_secs(60);
    store.create("session", record, minute, 1).await.unwrap();
    // Events are kept for five minutes.
    add(&store, "a", "2").await;
    assert!((295..=300).contains(&lasts(server, &prefix)));
    store.touch("session", 60 * minute).await.unwrap();
    assert!((3595..=3600).contains(&lasts(server, &prefix)));
    store
        .claim("session", "b", ClaimMode::Take, minute)
        .await
        .unwrap();
    assert!((3595..=3600).contains(&lasts(server, &prefix)));
}

#[tokio::test]
async fn streams_without_events_are_forgotten() {
    let Some((server, prefix)) = shared("streams that go") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let store = store.max_event_age(Duration::from_millis(20));
    add(&store, "open", "1").await;
    for number in 0..63 {
        let write = StreamWrite::new(Bytes::from_static(b"1")).ending();
        store
            .append("session", &format!("r{number}"), write)
            .await
            .unwrap();
    }
    sleep(Duration::from_millis(50)).await;
    add(&store, "new", "1").await;
    let pattern = format!("{{{prefix}:*:streams");
    let keys: Vec<String> = server.says(&["KEYS", &pattern]).unwrap();
    let left: usize = server.says(&["HLEN", &keys[0]]).unwrap();
    assert_eq!(left, 2);
}

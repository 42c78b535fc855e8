//! Events in SQLite: the contract, limits, and restarts.

use std::time::Duration;

use bytes::Bytes;
use oxmcp::{
    store::{ClaimMode, EventStore, Replay, StreamWrite},
    testing,
};
use oxmcp_sqlite::Sqlite;

use crate::{place::Place, tasks::refused};

const LONG: Duration = Duration::from_secs(60);

async fn add(store: &Sqlite, stream: &str, data: &str) -> Vec<u64> {
    let write = StreamWrite::new(Bytes::from(data.to_owned()));
    let added = store.append("session", stream, write).await.unwrap();
    added.unwrap()
}

async fn after(store: &Sqlite, stream: &str, index: u64) -> Replay {
    store.after("session", stream, index, 9).await.unwrap()
}

fn found(events: &[&'static str], ended: bool) -> Replay {
    let events = events.iter().map(|it| (*it).into()).collect();
    Replay::Events { events, ended }
}

#[tokio::test]
async fn event_store_contract_holds() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let contract = testing::event_store_contract(|| async { (store.clone(), store.clone()) });
    contract.await.unwrap();
}

#[tokio::test]
async fn events_survive_a_restart_but_leases_do_not() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let epoch = store
        .claim("session", "a", ClaimMode::IfFree, LONG)
        .await
        .unwrap();
    assert_eq!(epoch, Some(1));
    add(&store, "a", "1").await;
    add(&store, "a", "2").await;
    let last = StreamWrite::new(Bytes::from("end")).ending();
    store.append("session", "b", last).await.unwrap();
    assert_eq!(
        store
            .claim("session", "a", ClaimMode::IfFree, LONG)
            .await
            .unwrap(),
        None
    );
    drop(store);
    let store = Sqlite::open(place.file()).await.unwrap();
    assert_eq!(after(&store, "a", 0).await, found(&["1", "2"], false));
    assert_eq!(after(&store, "b", 0).await, found(&["end"], true));
    let epoch = store
        .claim("session", "a", ClaimMode::IfFree, LONG)
        .await
        .unwrap();
    assert_eq!(epoch, Some(2));
    assert_eq!(add(&store, "a", "3").await, [3]);
}

#[tokio::test]
async fn oldest_events_are_evicted_first() {
    let place = Place::new();
    let store = Sqlite::open(place.file())
        .await
        .unwrap()
        .max_stream_events(2);
    for data in ["1", "2", "3"] {
        add(&store, "a", data).await;
    }
    assert_eq!(after(&store, "a", 0).await, Replay::Lost);
    assert_eq!(after(&store, "a", 1).await, found(&["2", "3"], false));
    let store = store.max_stream_bytes(10);
    add(&store, "b", "12345").await;
    add(&store, "b", "123456").await;
    assert_eq!(after(&store, "b", 0).await, Replay::Lost);
    assert_eq!(after(&store, "b", 1).await, found(&["123456"], false));
    let large = StreamWrite::new(Bytes::from("x".repeat(11)));
    assert!(refused(store.append("session", "b", large).await).contains("event is too large"));
    // Indexes continue. The limit for all streams evicts events of the largest one.
    let store = store.max_event_bytes(9);
    assert_eq!(add(&store, "b", "1").await, [3]);
    assert_eq!(add(&store, "c", "1").await, [1]);
    assert_eq!(after(&store, "a", 1).await, found(&["2", "3"], false));
    assert_eq!(after(&store, "b", 1).await, Replay::Lost);
    assert_eq!(after(&store, "b", 2).await, found(&["1"], false));
}

#[tokio::test]
async fn old_events_are_lost_and_numbering_continues() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    add(&store, "a", "1").await;
    let last = StreamWrite::new(Bytes::from("1")).ending();
    store.append("session", "ended", last).await.unwrap();
    let hasty = store.clone().max_event_age(Duration::ZERO);
    assert_eq!(after(&hasty, "a", 0).await, Replay::Lost);
    assert_eq!(after(&hasty, "a", 1).await, found(&[], false));
    // A stream that has ended and has no events is forgotten.
    assert_eq!(after(&hasty, "ended", 1).await, Replay::Lost);
    assert_eq!(add(&store, "a", "2").await, [2]);
    assert_eq!(after(&store, "a", 1).await, found(&["2"], false));
}

#[tokio::test]
async fn session_streams_are_bounded_and_oldest_evicted() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let last = StreamWrite::new(Bytes::from("1")).ending();
    store.append("session", "ended", last).await.unwrap();
    for number in 0..1024 {
        let name = format!("s{number}");
        let claimed = store.claim("session", &name, ClaimMode::IfFree, LONG).await;
        assert_eq!(claimed.unwrap(), Some(1));
    }
    let ended = store.after("session", "ended", 0, 9).await.unwrap();
    assert_eq!(ended, Replay::Lost);
    // Now no stream has ended.
    let claimed = store
        .claim("session", "more", ClaimMode::IfFree, LONG)
        .await;
    assert!(refused(claimed).contains("too many open streams: the session has 1024"));
    let claimed = store
        .claim("another", "more", ClaimMode::IfFree, LONG)
        .await;
    assert_eq!(claimed.unwrap(), Some(1));
    store.forget("session").await.unwrap();
    assert_eq!(add(&store, "more", "1").await, [1]);
}

//! Sessions in SQLite: the contract, limits, and restarts.

use std::{fs, time::Duration};

use oxmcp::{
    Revision,
    http::Cluster,
    keys::SharedKeys,
    protocol::LoggingLevel,
    store::{CreateOutcome, SessionChange, SessionRecord, SessionStore},
    testing,
};
use oxmcp_sqlite::Sqlite;

use crate::{place::Place, tasks::refused};

const LONG: Duration = Duration::from_secs(60);

fn record(name: &str) -> SessionRecord {
    let params = format!(r#"{{"clientInfo": {{"name": "{name}", "version": "1"}}}}"#);
    SessionRecord::new(
        serde_json::from_str(&params).unwrap(),
        Revision::V2025_11_25,
    )
}

#[tokio::test]
async fn session_store_contract_holds() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let contract = testing::session_store_contract(|| async { (store.clone(), store.clone()) });
    contract.await.unwrap();
}

#[tokio::test]
async fn session_bus_contract_holds() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    let contract = testing::bus_contract(|| async { (store.clone(), store.clone()) });
    contract.await.unwrap();
}

#[tokio::test]
async fn session_and_keys_survive_a_restart() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap();
    store
        .create("secret-id", record("a"), LONG, 1)
        .await
        .unwrap();
    store.create("over", record("b"), LONG, 1).await.unwrap();
    for change in [
        SessionChange::Initialized,
        SessionChange::LogLevel(LoggingLevel::Warning),
        SessionChange::Watch("file:///a".to_owned()),
    ] {
        store.set("secret-id", change).await.unwrap();
    }
    store.remove("over").await.unwrap();
    let place_of_it: [&[u8]; 1] = [b"a"];
    let seal = |keys: SharedKeys| keys.store().seal(&place_of_it, b"state").unwrap();
    let sealed = seal(store.shared_keys());
    let own = oxmcp::keys::StateKey::new([7; 32]);
    let other = seal(store.clone().keys([own]).shared_keys());
    drop(store);
    let store = Sqlite::open(place.file()).await.unwrap();
    let found = store.load("secret-id").await.unwrap().unwrap();
    assert_eq!(found.version, 4);
    assert!(found.record.initialized);
    assert_eq!(found.record.log_level, Some(LoggingLevel::Warning));
    assert_eq!(found.record.subscribed, ["file:///a"]);
    let again = store.create("over", record("b"), LONG, 1).await.unwrap();
    assert_eq!(again, CreateOutcome::Exists);
    let keys = store.shared_keys().store();
    assert_eq!(keys.open(&place_of_it, &sealed).unwrap(), b"state");
    assert!(keys.open(&place_of_it, &other).is_err());
    drop(store);
    let bytes = fs::read(place.file()).unwrap();
    assert!(!bytes.windows(9).any(|it| it == b"secret-id"));
}

#[tokio::test]
async fn sessions_are_bounded() {
    let place = Place::new();
    let store = Sqlite::open(place.file()).await.unwrap().max_sessions(2);
    store
        .create("long", record("a"), 2 * LONG, 1)
        .await
        .unwrap();
    store
        .create("short", record("b"), LONG / 2, 1)
        .await
        .unwrap();
    store.create("new", record("c"), LONG, 1).await.unwrap();
    assert!(store.load("short").await.unwrap().is_none());
    for id in ["long", "new"] {
        assert!(store.load(id).await.unwrap().is_some(), "{id}");
    }
    store.remove("unknown").await.unwrap();
    assert!(store.load("long").await.unwrap().is_some());
    let large = record(&"x".repeat(64 << 10));
    assert!(
        refused(store.create("large", large, LONG, 1).await)
            .contains("session record is too large")
    );
    let uri = || SessionChange::Watch("x".repeat(64 << 10));
    assert!(store.set("long", uri()).await.unwrap_err().is_limit());
    assert_eq!(store.load("long").await.unwrap().unwrap().version, 1);
}

#[tokio::test]
async fn file_of_earlier_release_is_migrated() {
    let place = Place::new();
    drop(Sqlite::open(place.file()).await.unwrap());
    let earlier = rusqlite::Connection::open(place.file()).unwrap();
    earlier.busy_timeout(Duration::from_secs(60)).unwrap();
    for table in ["keys", "sessions", "events", "streams", "event_totals"] {
        earlier
            .execute_batch(&format!("DROP TABLE {table}"))
            .unwrap();
    }
    drop(earlier);
    let store = Sqlite::open(place.file()).await.unwrap();
    let created = store.create("a", record("a"), LONG, 1).await.unwrap();
    assert_eq!(created, CreateOutcome::Created);
}

//! Bounds of the session store in memory, and the format of a record.

use std::time::Duration;

use oxmcp::{
    Result, Revision,
    protocol::LoggingLevel,
    store::{CreateOutcome, MemorySessionStore, SessionChange, SessionRecord, SessionStore},
};
use serde_json::{json, value::to_raw_value};
use tokio::time::advance;

fn record(text: &str) -> SessionRecord {
    let params = to_raw_value(&json!({"clientInfo": {"name": text}})).unwrap();
    SessionRecord::new(params, Revision::V2025_11_25)
}

async fn has(store: &MemorySessionStore, id: &str) -> bool {
    store.load(id).await.unwrap().is_some()
}

const MINUTE: Duration = Duration::from_secs(60);

async fn create(store: &MemorySessionStore, id: &str, minutes: u32) -> Result<CreateOutcome> {
    store.create(id, record(id), MINUTE * minutes, 1).await
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn sessions_expiring_first_are_evicted_first() {
    let store = MemorySessionStore::new().max_sessions(3);
    for (id, minutes) in [("a", 1), ("b", 3), ("c", 2)] {
        let created = create(&store, id, minutes).await;
        assert_eq!(created.unwrap(), CreateOutcome::Created);
    }
    store.touch("a", MINUTE * 4).await.unwrap();
    create(&store, "d", 5).await.unwrap();
    for (id, is_there) in [("a", true), ("b", true), ("c", false), ("d", true)] {
        assert_eq!(has(&store, id).await, is_there, "{id}");
    }
    // The tombstones of removed sessions are bounded, too.
    for id in ["v", "w", "x", "y", "z"] {
        store.remove(id).await.unwrap();
    }
    assert!(format!("{store:?}").contains("sessions: 3"));
}

// Attack: resource exhaustion.
#[tokio::test]
async fn oversized_record_is_refused() {
    let store = MemorySessionStore::new().max_record_bytes(1000);
    create(&store, "a", 1).await.unwrap();
    let large = record(&"x".repeat(1000));
    let refused = store.create("b", large, MINUTE, 1).await;
    assert!(refused.unwrap_err().is_limit());
    for _ in 0..10 {
        let uri = "u".repeat(50);
        store.set("a", SessionChange::Watch(uri)).await.unwrap();
    }
    let refused = store.set("a", SessionChange::Watch("u".repeat(900))).await;
    assert!(refused.unwrap_err().is_limit());
    let kept = store.load("a").await.unwrap().unwrap();
    assert_eq!((kept.version, kept.record.subscribed.len()), (11, 1));
    assert!(!has(&store, "b").await);
}

#[tokio::test(start_paused = true)]
async fn removed_session_is_remembered_for_a_minute() {
    let store = MemorySessionStore::new();
    store.remove("a").await.unwrap();
    advance(MINUTE - Duration::from_millis(1)).await;
    let create = || create(&store, "a", 1);
    assert_eq!(create().await.unwrap(), CreateOutcome::Exists);
    advance(Duration::from_millis(1)).await;
    assert_eq!(create().await.unwrap(), CreateOutcome::Created);
    advance(MINUTE).await;
    assert!(!has(&store, "a").await);
    assert!(format!("{store:?}").contains("sessions: 0"));
}

#[test]
fn record_format_is_stable() {
    let mut it = record("x");
    it.principal = Some("alice".to_owned());
    it.initialized = true;
    it.log_level = Some(LoggingLevel::Warning);
    it.subscribed = vec!["file:///a".to_owned()];
    it.created = 1_795_334_400_123;
    insta::assert_snapshot!(serde_json::to_string_pretty(&it).unwrap(), @r#"
    {
      "version": 1,
      "principal": "alice",
      "initialize": {"clientInfo":{"name":"x"}},
      "revision": "2025-11-25",
      "initialized": true,
      "logLevel": "warning",
      "subscribed": [
        "file:///a"
      ],
      "created": 1795334400123
    }
    "#);
}

#[test]
fn record_of_unknown_release_is_not_read() {
    let text = |version: &str| {
        format!(
            r#"{{{version} "initialize": {{}}, "revision": "2025-11-25", "created": 0, "new": 1}}"#
        )
    };
    let read = |text: String| serde_json::from_str::<SessionRecord>(&text);
    let least = read(text(r#""version": 1,"#)).unwrap();
    assert!(!least.initialized && least.subscribed.is_empty());
    let newer = read(text(r#""version": 2,"#)).unwrap_err();
    assert!(newer.to_string().contains("version 2"), "{newer}");
    assert!(read(text("")).is_err());
}

// Attack: leaks of secrets.
#[test]
fn record_debug_hides_its_principal() {
    let mut it = record("secret client");
    it.principal = Some("alice".to_owned());
    it.subscribed = vec!["file:///secret".to_owned()];
    let shown = format!("{it:?}");
    assert!(
        !shown.contains("secret") && !shown.contains("alice"),
        "{shown}"
    );
}

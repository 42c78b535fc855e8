//! Bounds of the session store in memory, and the format of a record.

use std::time::Duration;

use oxmcp::{
    Revision,
    protocol::LoggingLevel,
    store::{MemorySessionStore, SessionRecord, SessionStore},
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

#[tokio::test]
async fn attack_7_sessions_make_room_that_were_not_used_for_the_longest_time() {
    let store = MemorySessionStore::new().max_sessions(3);
    for id in ["a", "b", "c"] {
        store.save(id, record(id)).await.unwrap();
    }
    assert!(has(&store, "a").await);
    store.save("b", record("b")).await.unwrap();
    store.save("d", record("d")).await.unwrap();
    for (id, is_there) in [("a", true), ("b", true), ("c", false), ("d", true)] {
        assert_eq!(has(&store, id).await, is_there, "{id}");
    }
}

#[tokio::test]
async fn attack_7_a_record_that_is_too_large_is_refused() {
    let store = MemorySessionStore::new().max_record_bytes(1000);
    store.save("a", record("a")).await.unwrap();
    let refused = store.save("b", record(&"x".repeat(1000))).await;
    assert!(refused.unwrap_err().is_limit());
    let mut watching = record("c");
    watching.subscribed = vec![String::new(); 100];
    assert!(store.save("c", watching).await.unwrap_err().is_limit());
    assert!(has(&store, "a").await && !has(&store, "b").await);
}

#[tokio::test(start_paused = true)]
async fn unused_sessions_are_evicted() {
    let store = MemorySessionStore::new().max_idle(Duration::from_secs(60));
    store.save("a", record("a")).await.unwrap();
    store.save("b", record("b")).await.unwrap();
    advance(Duration::from_secs(60)).await;
    assert!(has(&store, "a").await);
    advance(Duration::from_secs(60)).await;
    assert!(has(&store, "a").await && !has(&store, "b").await);
    advance(Duration::from_secs(61)).await;
    assert!(!has(&store, "a").await);
    assert!(format!("{store:?}").contains("sessions: 0"));
}

#[test]
fn a_record_is_written_as_it_will_be_read_for_years() {
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
fn a_record_of_a_release_that_is_not_known_is_not_read() {
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

#[test]
fn attack_21_a_record_does_not_show_whose_it_is() {
    let mut it = record("secret client");
    it.principal = Some("alice".to_owned());
    it.subscribed = vec!["file:///secret".to_owned()];
    let shown = format!("{it:?}");
    assert!(
        !shown.contains("secret") && !shown.contains("alice"),
        "{shown}"
    );
}

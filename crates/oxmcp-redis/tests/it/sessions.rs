//! Sessions: the contract, what Redis sees of them, and bounds.

use std::time::Duration;

use oxmcp::{
    Revision,
    protocol::LoggingLevel,
    store::{SessionRecord, SessionStore, Setting},
    testing,
};

use super::server::{refused, shared};

const LONG: Duration = Duration::from_secs(60);

fn record(name: &str) -> SessionRecord {
    let params = format!(r#"{{"clientInfo": {{"name": "{name}", "version": "1"}}}}"#);
    let params = serde_json::from_str(&params).unwrap();
    SessionRecord::new(params, Revision::V2025_11_25)
}

#[tokio::test]
async fn the_contract_holds() {
    let Some((server, prefix)) = shared("the contract of sessions") else {
        return;
    };
    let make = || async { (server.connect(&prefix).await, server.connect(&prefix).await) };
    testing::session_store_contract(make).await.unwrap();
}

#[tokio::test]
async fn redis_sees_no_secret_of_a_session() {
    let Some((server, prefix)) = shared("secrets of sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let mut secret = record("secret-client");
    secret.principal = Some("secret-principal".to_owned());
    secret.subscribed = vec!["secret://first".to_owned()];
    store.create("secret-id", secret, LONG).await.unwrap();
    for setting in [
        Setting::Watch("secret://second".to_owned()),
        Setting::LogLevel(LoggingLevel::Warning),
        Setting::Initialized,
    ] {
        store.set("secret-id", setting).await.unwrap();
    }
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let [key] = &keys[..] else {
        panic!("{keys:?}");
    };
    let kept: Vec<Vec<u8>> = server.says(&["HGETALL", key]).unwrap();
    let all = [key.as_bytes(), &kept.concat()].concat();
    for word in [&b"secret"[..], b"warning"] {
        assert!(!all.windows(word.len()).any(|it| it == word));
    }
    let left: i64 = server.says(&["PTTL", key]).unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_removed_session_is_forgotten_after_a_minute() {
    let Some((server, prefix)) = shared("sessions that were removed") else {
        return;
    };
    let store = server.connect(&prefix).await;
    store.create("a", record("a"), LONG).await.unwrap();
    store.remove("a").await.unwrap();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let left: i64 = server.says(&["PTTL", &keys[0]]).unwrap();
    assert!((50_000..=60_000).contains(&left), "{left}");
}

#[tokio::test]
async fn what_a_client_says_of_itself_is_bounded() {
    let Some((server, prefix)) = shared("bounds of sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let large = record(&"x".repeat(300 << 10));
    assert!(
        store
            .create("large", large, LONG)
            .await
            .unwrap_err()
            .is_limit()
    );
    store.create("a", record("a"), LONG).await.unwrap();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let fill = "for at = 1, 10000 do redis.call('HSET', KEYS[1], 'other' .. at, '1') end";
    let () = server.says(&["EVAL", fill, "1", &keys[0]]).unwrap();
    let watch = || Setting::Watch("file:///a".to_owned());
    assert!(refused(store.set("a", watch()).await).contains("too many"));
    // What is there already can still change.
    assert_eq!(
        store
            .set("a", Setting::Unwatch("file:///b".to_owned()))
            .await
            .unwrap(),
        Some(2)
    );
}

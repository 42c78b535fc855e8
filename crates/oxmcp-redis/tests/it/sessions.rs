//! Sessions: the contract, their data in Redis, and limits.

use std::time::Duration;

use oxmcp::{
    Revision,
    protocol::LoggingLevel,
    store::{CreateOutcome, SessionChange, SessionRecord, SessionStore},
    testing,
};
use oxmcp_redis::Redis;
use tokio::time::{Instant, sleep};

use super::server::{key, refused, shared};

const LONG: Duration = Duration::from_secs(60);

fn record(name: &str) -> SessionRecord {
    let params = format!(r#"{{"clientInfo": {{"name": "{name}", "version": "1"}}}}"#);
    let params = serde_json::from_str(&params).unwrap();
    SessionRecord::new(params, Revision::V2025_11_25)
}

#[tokio::test]
async fn session_store_contract_holds() {
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
    store.create("secret-id", secret, LONG, 1).await.unwrap();
    for change in [
        SessionChange::Watch("secret://second".to_owned()),
        SessionChange::LogLevel(LoggingLevel::Warning),
        SessionChange::Initialized,
    ] {
        store.set("secret-id", change).await.unwrap();
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
async fn damaged_record_is_treated_as_missing() {
    let Some((server, prefix)) = shared("damaged sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    store.create("a", record("a"), LONG, 1).await.unwrap();
    // A process with another key may be able to open what this one cannot.
    let stranger = server.connect(&prefix).await.keys([key(2)]);
    assert!(refused(stranger.load("a").await).contains("share keys"));
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let damage = "local sealed = redis.call('HGET', KEYS[1], 'record'); \
                  redis.call('HSET', KEYS[1], 'record', string.sub(sealed, 1, -2))";
    let () = server.says(&["EVAL", damage, "1", &keys[0]]).unwrap();
    assert!(store.load("a").await.unwrap().is_none());
    assert!(stranger.load("a").await.is_err());
    let () = server.says(&["HSET", &keys[0], "record", "?"]).unwrap();
    assert!(store.load("a").await.unwrap().is_none());
}

#[tokio::test]
async fn removed_session_is_forgotten_after_a_minute() {
    let Some((server, prefix)) = shared("sessions that were removed") else {
        return;
    };
    let store = server.connect(&prefix).await;
    store.create("a", record("a"), LONG, 1).await.unwrap();
    store.remove("a").await.unwrap();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let left: i64 = server.says(&["PTTL", &keys[0]]).unwrap();
    assert!((50_000..=60_000).contains(&left), "{left}");
}

#[tokio::test]
async fn client_metadata_size_is_bounded() {
    let Some((server, prefix)) = shared("bounds of sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let large = record(&"x".repeat(300 << 10));
    assert!(
        store
            .create("large", large, LONG, 1)
            .await
            .unwrap_err()
            .is_limit()
    );
    store.create("a", record("a"), LONG, 1).await.unwrap();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
    let fill = "for at = 1, 10000 do redis.call('HSET', KEYS[1], 'other' .. at, '1') end";
    let () = server.says(&["EVAL", fill, "1", &keys[0]]).unwrap();
    let watch = || SessionChange::Watch("file:///a".to_owned());
    assert!(refused(store.set("a", watch()).await).contains("too many"));
    // Existing settings can still change.
    assert_eq!(
        store
            .set("a", SessionChange::Unwatch("file:///b".to_owned()))
            .await
            .unwrap(),
        Some(2)
    );
}

/// A session of Ann, with a limit of one session.
async fn create_of_ann(store: &Redis, id: &str, lasts: Duration) -> CreateOutcome {
    let mut record = record("a");
    record.principal = Some("secret-ann".to_owned());
    store.create(id, record, lasts, 1).await.unwrap()
}

#[tokio::test]
async fn counts_hide_principals_and_expire_with_sessions() {
    let Some((server, prefix)) = shared("counts of sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    assert_eq!(
        create_of_ann(&store, "secret-a", LONG).await,
        CreateOutcome::Created
    );
    let counts = || -> Vec<String> { server.says(&["KEYS", &format!("{{{prefix}}}:*")]).unwrap() };
    assert_eq!(counts().len(), 2);
    for key in counts() {
        assert!(!key.contains("secret"), "{key}");
        let members: Vec<String> = server.says(&["ZRANGE", &key, "0", "-1"]).unwrap();
        assert!(members.iter().all(|it| it.len() == 32), "{members:?}");
        let left: i64 = server.says(&["PTTL", &key]).unwrap();
        assert!((50_000..=60_000).contains(&left), "{left}");
    }
    store.touch("secret-a", 2 * LONG).await.unwrap();
    for key in counts() {
        let left: i64 = server.says(&["PTTL", &key]).unwrap();
        assert!(left > 110_000, "{left}");
    }
    store.remove("secret-a").await.unwrap();
    assert!(counts().is_empty());
    // A removed session is not created again, and so not counted.
    assert_eq!(
        create_of_ann(&store, "secret-a", LONG).await,
        CreateOutcome::Exists
    );
    assert!(counts().is_empty());
}

#[tokio::test]
async fn count_without_session_expires() {
    let Some((server, prefix)) = shared("counts without sessions") else {
        return;
    };
    let store = server.connect(&prefix).await;
    // On a slow machine its time is over before that is looked at, and it is created again.
    loop {
        create_of_ann(&store, "a", Duration::from_millis(300)).await;
        let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}:*")]).unwrap();
        if let Some(record) = keys.first() {
            let () = server.says(&["DEL", record]).unwrap();
        }
        match create_of_ann(&store, "b", LONG).await {
            CreateOutcome::PrincipalFull => break,
            _ => store.remove("b").await.unwrap(),
        }
    }
    let begun = Instant::now();
    while create_of_ann(&store, "b", LONG).await != CreateOutcome::Created {
        assert!(begun.elapsed() < LONG, "it is counted for ever");
        sleep(Duration::from_millis(10)).await;
    }
    // Expired sessions are not kept, either.
    let all = format!("{{{prefix}}}:sessions");
    assert_eq!(server.says::<usize>(&["ZCARD", &all]).unwrap(), 1);
}

#[tokio::test]
async fn sessions_are_bounded_among_all_handles() {
    let Some((server, prefix)) = shared("how many sessions there are") else {
        return;
    };
    let connect = async || server.connect(&prefix).await.max_sessions(2);
    let (one, other) = (connect().await, connect().await);
    let create = async |store: &Redis, id| store.create(id, record("a"), LONG, 1).await.unwrap();
    assert_eq!(create(&one, "a").await, CreateOutcome::Created);
    assert_eq!(
        create_of_ann(&other, "b", LONG).await,
        CreateOutcome::Created
    );
    assert_eq!(create(&other, "c").await, CreateOutcome::Full);
    assert_eq!(
        create_of_ann(&one, "d", LONG).await,
        CreateOutcome::PrincipalFull
    );
    assert!(one.load("c").await.unwrap().is_none());
    other.remove("a").await.unwrap();
    assert_eq!(create(&other, "c").await, CreateOutcome::Created);
}

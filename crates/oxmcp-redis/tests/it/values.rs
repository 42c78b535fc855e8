//! Stored values: sealed, bound to their Redis key, and opened with former keys.

use oxmcp::tasks::TaskStore;
use oxmcp_redis::Redis;

use super::server::{Server, key, refused, shared, task};

/// All data of a prefix in Redis: keys and their values.
fn shown(server: &Server, prefix: &str) -> Vec<u8> {
    let mut all = Vec::new();
    let keys: Vec<String> = server.says(&["KEYS", &format!("{{{prefix}}}:*")]).unwrap();
    assert!(!keys.is_empty());
    for key in &keys {
        all.extend_from_slice(key.as_bytes());
        let words = match key.contains(":task:") {
            true => vec!["HGETALL", key],
            false => vec!["ZRANGE", key, "0", "-1"],
        };
        let values: Vec<Vec<u8>> = server.says(&words).unwrap();
        values.iter().for_each(|value| all.extend_from_slice(value));
    }
    all
}

fn has(all: &[u8], word: &str) -> bool {
    all.windows(word.len())
        .any(|window| window == word.as_bytes())
}

async fn keep_a_secret(store: &Redis) {
    let mut task = task("secret-id");
    task.owner = Some("secret-owner".to_owned());
    task.status_message = Some("secret-message".to_owned());
    store.create(task).await.unwrap();
}

#[tokio::test]
async fn redis_sees_no_plaintext_secret_by_default() {
    let Some((server, prefix)) = shared("secrets in Redis") else {
        return;
    };
    keep_a_secret(&server.connect(&prefix).await).await;
    assert!(!has(&shown(server, &prefix), "secret"));
    let plain = format!("{prefix}-plain");
    let store = Redis::connect(server.url()).await.unwrap();
    keep_a_secret(&store.prefix(&plain).plaintext()).await;
    assert!(has(&shown(server, &plain), "secret-message"));
}

#[tokio::test]
async fn moved_value_does_not_open() {
    let Some((server, prefix)) = shared("values that were moved") else {
        return;
    };
    let store = server.connect(&prefix).await;
    for (id, owner) in [("a", "ann"), ("b", "bob")] {
        let mut task = task(id);
        task.owner = Some(owner.to_owned());
        store.create(task).await.unwrap();
    }
    let pattern = format!("{{{prefix}}}:task:*");
    let keys: Vec<String> = server.says(&["KEYS", &pattern]).unwrap();
    let copy = "redis.call('HSET', KEYS[2], 'record', redis.call('HGET', KEYS[1], 'record'))";
    let () = server
        .says(&["EVAL", copy, "2", &keys[0], &keys[1]])
        .unwrap();
    let [a, b] = [store.load("a").await, store.load("b").await];
    let moved = if a.is_err() { a } else { b };
    assert!(refused(moved).contains("modified, moved"));
}

#[tokio::test]
async fn keys_rotate_while_tasks_exist() {
    let Some((server, prefix)) = shared("keys that are replaced") else {
        return;
    };
    let (one, other) = (server.connect(&prefix).await, server.connect(&prefix).await);
    one.create(task("old")).await.unwrap();
    // First all processes can open with the new key, then it seals.
    let other = other.keys([key(2), key(1)]);
    other.create(task("new")).await.unwrap();
    assert!(refused(one.load("new").await).contains("share keys"));
    // Clones share their keys.
    drop(one.clone().keys([key(2), key(1)]));
    assert_eq!(one.list(None, None, 9).await.unwrap(), ["new", "old"]);
    let other = other.keys([key(2)]);
    assert!(other.load("new").await.unwrap().is_some());
    assert!(refused(other.load("old").await).contains("keep old keys"));
}

#[tokio::test]
async fn nothing_is_stored_before_encryption_is_chosen() {
    let Some((server, prefix)) = shared("stores without keys") else {
        return;
    };
    let store = Redis::connect(server.url()).await.unwrap().prefix(&prefix);
    let error = refused(store.create(task("a")).await);
    assert!(
        error.contains(".keys(") && error.contains("openssl rand -base64 32"),
        "{error}"
    );
    let store = store.keys([]);
    assert!(refused(store.create(task("a")).await).contains("openssl rand -base64 32"));
    let sealed = server.connect(&prefix).await;
    sealed.create(task("a")).await.unwrap();
    let plain = store.plaintext();
    assert!(refused(plain.load("a").await).contains("has no keys"));
    plain.create(task("b")).await.unwrap();
    assert!(refused(sealed.load("b").await).contains("is not encrypted"));
}

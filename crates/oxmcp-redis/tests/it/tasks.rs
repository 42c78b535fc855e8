//! Tasks: the contract, limits, and the lifetime of keys.

use std::{collections::HashSet, time::Duration};

use oxmcp::{
    tasks::{TaskOutcome, TaskStore},
    testing,
};

use super::server::{refused, shared, task};

#[tokio::test]
async fn task_store_contract_holds() {
    let Some((server, prefix)) = shared("the contract of tasks") else {
        return;
    };
    let make = || async { (server.connect(&prefix).await, server.connect(&prefix).await) };
    testing::task_store_contract(make).await.unwrap();
}

#[tokio::test]
async fn tasks_are_bounded_and_expired_ones_evicted() {
    let Some((server, prefix)) = shared("bounds of tasks") else {
        return;
    };
    let store = server.connect(&prefix).await.max_tasks(3).max_tasks_each(2);
    let of = |id: &str, owner: &str| {
        let mut task = task(id);
        task.owner = Some(owner.to_owned());
        task
    };
    store.create(of("a", "ann")).await.unwrap();
    let mut brief = of("b", "ann");
    brief.ttl_ms = 0;
    store.create(brief).await.unwrap();
    store.create(of("c", "ann")).await.unwrap();
    assert!(refused(store.create(of("d", "ann")).await).contains("too many tasks"));
    store.create(of("e", "bob")).await.unwrap();
    assert!(store.create(of("f", "eve")).await.unwrap_err().is_limit());
    assert!(refused(store.create(of("e", "bob")).await).contains("task ID is already in use"));
}

#[tokio::test]
async fn every_key_expires() {
    let Some((server, prefix)) = shared("keys that go by themselves") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let mut brief = task("brief");
    brief.ttl_ms = 60_000;
    store.create(task("long")).await.unwrap();
    store.create(brief).await.unwrap();
    for id in ["long", "brief"] {
        store.claim(id, Duration::from_secs(9)).await.unwrap();
    }
    let mut endless = store.load("brief").await.unwrap().unwrap();
    let pattern = format!("{{{prefix}}}:*");
    let keys: HashSet<String> = server.says(&["KEYS", &pattern]).unwrap();
    assert_eq!(keys.len(), 5, "{keys:?}");
    for key in &keys {
        let left: i64 = server.says(&["PTTL", key]).unwrap();
        // The sets live as long as the longest-lived task.
        assert!((1..=3_600_000).contains(&left), "{key}: {left}");
        assert!(key.contains(":task:") || left > 60_000, "{key}: {left}");
    }
    // More than scripts can represent exactly.
    assert!(store.renew("brief", 1, Duration::MAX).await.unwrap());
    assert_eq!(store.claim("brief", Duration::MAX).await.unwrap(), None);
    endless.task.ttl_ms = u64::MAX;
    assert!(
        store
            .replace("brief", endless.revision, endless.task)
            .await
            .unwrap()
    );
    assert!(store.load("brief").await.unwrap().is_some());
}

#[tokio::test]
async fn finished_task_is_not_an_orphan() {
    let Some((server, prefix)) = shared("tasks that are over") else {
        return;
    };
    let store = server.connect(&prefix).await;
    store.create(task("a")).await.unwrap();
    store.claim("a", Duration::ZERO).await.unwrap();
    assert_eq!(store.orphans(9).await.unwrap(), ["a"]);
    let mut found = store.load("a").await.unwrap().unwrap();
    let result = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
    found.task.status = oxmcp::protocol::TaskStatus::Completed;
    found.task.outcome = Some(TaskOutcome::Result(result));
    assert!(
        store
            .replace("a", found.revision, found.task)
            .await
            .unwrap()
    );
    assert!(store.orphans(9).await.unwrap().is_empty());
    // Another lease does not make it an orphan, either.
    store.claim("a", Duration::ZERO).await.unwrap();
    assert!(store.orphans(9).await.unwrap().is_empty());
}

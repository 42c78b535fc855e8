//! Failures of Redis: it restarts, hangs, loses data, is full, or is no longer the primary.

use std::{net::Ipv4Addr, time::Duration};

use oxmcp::tasks::TaskStore;
use oxmcp_redis::Redis;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::server::{Server, key, own, refused, shared, task};

/// The timeout of waits without a specific limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates a task as soon as a Redis accepts it.
async fn create_at_last(store: &Redis, id: &str) {
    let begun = Instant::now();
    while let Err(error) = store.create(task(id)).await {
        assert!(begun.elapsed() < PATIENCE, "{error}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// The number of subscriptions.
fn subscribers(server: &Server, prefix: &str) -> usize {
    let channel = format!("{{{prefix}}}:changes");
    let counts: (String, usize) = server.says(&["PUBSUB", "NUMSUB", &channel]).unwrap();
    counts.1
}

async fn until_subscribed(server: &Server, prefix: &str) {
    let begun = Instant::now();
    while subscribers(server, prefix) == 0 {
        assert!(begun.elapsed() < PATIENCE, "no subscription");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn restart_loses_only_what_redis_did_not_persist() {
    let Some(mut server) = own("a restart of Redis", &[]) else {
        return;
    };
    let store = server.connect("shop").await;
    store.create(task("before")).await.unwrap();
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.changed("before", 1).await })
    };
    server.stop();
    let failed = timeout(PATIENCE, store.load("before")).await;
    refused(failed.expect("the operation hangs"));
    server.restart();
    create_at_last(&store, "after").await;
    assert!(store.load("before").await.unwrap().is_none());
    // The task is gone, or Redis was down: either way the wait ends.
    let ended = timeout(PATIENCE, waiting).await;
    let _ = ended.expect("the wait does not end").unwrap();
    // The subscription was restored.
    until_subscribed(&server, "shop").await;
}

#[tokio::test]
async fn hung_redis_fails_operations_and_recovers() {
    let Some(server) = own("a Redis that hangs", &[]) else {
        return;
    };
    let store = server.connect("shop").await;
    store.create(task("a")).await.unwrap();
    let process = server.process();
    server.signal("-STOP", &process);
    for _ in 0..2 {
        let failed = timeout(PATIENCE, store.load("a")).await;
        let error = refused(failed.expect("the operation hangs with it"));
        assert!(error.contains("no response from Redis"), "{error}");
    }
    let failed = timeout(PATIENCE, Redis::connect(server.url())).await;
    let error = refused(failed.expect("connecting hangs with it"));
    assert!(error.contains("no response from Redis"), "{error}");
    server.signal("-CONT", &process);
    create_at_last(&store, "b").await;
    assert!(store.load("a").await.unwrap().is_some());
}

#[tokio::test]
async fn killed_subscription_is_renewed() {
    let Some(server) = own("subscriptions that are killed", &[]) else {
        return;
    };
    let store = server.connect("shop").await;
    store.create(task("a")).await.unwrap();
    until_subscribed(&server, "shop").await;
    let killed: usize = server.says(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    assert!(killed > 0);
    until_subscribed(&server, "shop").await;
    let rounds = async {
        for revision in 1..=12 {
            let wait = async {
                // `changed` may return early, so this loop ends only by a change.
                while store.load("a").await.unwrap().unwrap().revision == revision {
                    store.changed("a", revision).await.unwrap();
                }
            };
            let change = async {
                assert!(store.replace("a", revision, task("a")).await.unwrap());
            };
            tokio::join!(wait, change);
        }
    };
    // Waiting for the recheck in every round would take twice as long.
    timeout(PATIENCE, rounds).await.expect("it is not woken");
}

#[tokio::test]
async fn forgotten_scripts_are_loaded_again() {
    let Some((server, prefix)) = shared("scripts that are forgotten") else {
        return;
    };
    let store = server.connect(&prefix).await;
    store.create(task("a")).await.unwrap();
    let () = server.says(&["SCRIPT", "FLUSH"]).unwrap();
    store.create(task("b")).await.unwrap();
}

#[tokio::test]
async fn full_redis_reports_it_and_keeps_its_data() {
    let Some(server) = own("a full Redis", &["--maxmemory-policy", "noeviction"]) else {
        return;
    };
    let store = server.connect("shop").await;
    store.create(task("a")).await.unwrap();
    let () = server.says(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let error = refused(store.create(task("b")).await);
    assert!(
        error.contains("out of memory") && error.contains("maxmemory"),
        "{error}"
    );
    let mut found = store.load("a").await.unwrap().unwrap();
    found.task.status_message = Some("more".to_owned());
    let error = refused(store.replace("a", found.revision, found.task).await);
    assert!(error.contains("out of memory"), "{error}");
    let same = store.load("a").await.unwrap().unwrap();
    assert_eq!((same.revision, same.task.status_message), (1, None));
    let () = server.says(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert!(store.load("b").await.unwrap().is_none());
    store.create(task("b")).await.unwrap();
}

/// An address that leads to one port, and later to another. Existing connections stay.
async fn forward_to(ports: watch::Receiver<u16>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let to = *ports.borrow();
            tokio::spawn(async move {
                let mut to = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await?;
                copy_bidirectional(&mut from, &mut to).await
            });
        }
    });
    format!("redis://127.0.0.1:{port}")
}

#[tokio::test]
async fn address_is_resolved_again_after_a_failover() {
    let (Some(old), Some(new)) = (own("a failover", &[]), own("a failover", &[])) else {
        return;
    };
    let [old_port, new_port] = [&old, &new].map(|it| it.port().to_string());
    let () = new.says(&["REPLICAOF", "127.0.0.1", &old_port]).unwrap();
    let (switch, ports) = watch::channel(old.port());
    let store = Redis::connect(forward_to(ports).await).await.unwrap();
    let store = store.keys([key(1)]);
    store.create(task("a")).await.unwrap();
    let begun = Instant::now();
    while new.says::<usize>(&["DBSIZE"]).unwrap() < 3 {
        assert!(begun.elapsed() < PATIENCE, "the replica gets nothing");
        sleep(Duration::from_millis(20)).await;
    }
    let () = new.says(&["REPLICAOF", "NO", "ONE"]).unwrap();
    let () = old.says(&["REPLICAOF", "127.0.0.1", &new_port]).unwrap();
    switch.send(new.port()).unwrap();
    // The connection still leads to the former primary, which reports that it is a replica.
    let error = refused(store.create(task("b")).await);
    assert!(error.contains("is a read-only replica"), "{error}");
    create_at_last(&store, "b").await;
    assert!(store.load("a").await.unwrap().is_some());
}

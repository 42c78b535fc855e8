//! Tests of other deployments: a Redis cluster, and a primary monitored by sentinels.

use std::{
    fs,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use oxmcp::{
    store::{Bus, Delivery, EventStore, Replay, StreamWrite},
    tasks::TaskStore,
    testing,
};
use oxmcp_redis::Redis;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};

use super::server::{Server, free_port, key, own, refused, task};

/// The maximum duration of a failover, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Creates a task as soon as a Redis accepts it.
async fn create_at_last(store: &Redis, id: &str) {
    let begun = Instant::now();
    while let Err(error) = store.create(task(id)).await {
        assert!(begun.elapsed() < PATIENCE, "{error}");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn contracts_hold(url: &str) {
    let connect = async |part: &str| {
        let store = Redis::connect(url).await.unwrap();
        store.prefix(format!("contract-{part}")).keys([key(1)])
    };
    let tasks = || async { (connect("tasks").await, connect("tasks").await) };
    testing::task_store_contract(tasks).await.unwrap();
    let sessions = || async { (connect("sessions").await, connect("sessions").await) };
    testing::session_store_contract(sessions).await.unwrap();
    let events = || async { (connect("events").await, connect("events").await) };
    testing::event_store_contract(events).await.unwrap();
    let bus = || async { (connect("bus").await, connect("bus").await) };
    testing::bus_contract(bus).await.unwrap();
}

/// Checks that the bus keeps working: a subscription that may have missed a message ends, and the next one gets messages.
async fn is_heard(store: &Redis, other: &Redis) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "no message arrives");
        let Ok(mut heard) = other.subscribe(&["changes"]).await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let told = store.publish("changes", "1".into()).await;
        let next = timeout(Duration::from_secs(1), heard.next()).await;
        if told.is_ok() && matches!(next, Ok(Some(Delivery::Message { .. }))) {
            return;
        }
    }
}

/// A Redis cluster of three primaries.
pub(crate) async fn cluster(test: &str) -> Option<Vec<Server>> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node_of_cluster(test)?);
    }
    for (number, node) in nodes.iter().enumerate() {
        let (first, last) = [("0", "5460"), ("5461", "10922"), ("10923", "16383")][number];
        let () = node
            .says(&["CLUSTER", "ADDSLOTSRANGE", first, last])
            .unwrap();
    }
    meet(&nodes).await;
    Some(nodes)
}

pub(crate) fn node_of_cluster(test: &str) -> Option<Server> {
    let port = free_port().to_string();
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &port,
        "--cluster-node-timeout",
        "1000",
    ];
    own(test, &options)
}

/// Joins nodes to a cluster, and waits until each of them reports it.
pub(crate) async fn meet(nodes: &[Server]) {
    let (first, others) = nodes.split_first().unwrap();
    for node in others {
        let port = node.port().to_string();
        let bus: Vec<String> = node.says(&["CONFIG", "GET", "cluster-port"]).unwrap();
        let () = first
            .says(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus[1]])
            .unwrap();
    }
    until("the nodes do not become a cluster", || {
        nodes.iter().all(|node| {
            let info: String = node.says(&["CLUSTER", "INFO"]).unwrap();
            let known = format!("cluster_known_nodes:{}", nodes.len());
            info.contains("cluster_state:ok") && info.contains(&known)
        })
    })
    .await;
}

/// The node that has the tasks of a prefix.
fn place_of(nodes: &[Server], prefix: &str) -> usize {
    let slot: usize = nodes[0]
        .says(&["CLUSTER", "KEYSLOT", &format!("{{{prefix}}}")])
        .unwrap();
    (slot / 5461).min(2)
}

#[tokio::test]
async fn store_contracts_hold_in_a_cluster() {
    let Some(nodes) = cluster("contracts in a cluster").await else {
        return;
    };
    contracts_hold(&nodes[1].url()).await;
}

#[tokio::test]
async fn another_node_continues_after_cluster_failover() {
    let test = "a failover of a cluster";
    let (Some(mut nodes), Some(replica)) = (cluster(test).await, node_of_cluster(test)) else {
        return;
    };
    let prefix = "shop";
    let primary = place_of(&nodes, prefix);
    nodes.push(replica);
    meet(&nodes).await;
    let id: String = nodes[primary].says(&["CLUSTER", "MYID"]).unwrap();
    let () = nodes[3].says(&["CLUSTER", "REPLICATE", &id]).unwrap();
    // The address includes the node that is killed.
    let others = nodes.iter().map(|it| it.url().replace("redis://", ""));
    let url = format!("redis://{}", others.collect::<Vec<_>>().join(","));
    let store = Redis::connect(&url)
        .await
        .unwrap()
        .prefix(prefix)
        .keys([key(1)]);
    store.create(task("before")).await.unwrap();
    until("the replica gets nothing", || {
        let info: String = nodes[3].says(&["INFO", "keyspace"]).unwrap();
        info.contains("keys=3")
    })
    .await;
    let mut heard = store.subscribe(&["changes"]).await.unwrap();
    store.publish("changes", "1".into()).await.unwrap();
    assert!(matches!(heard.next().await, Some(Delivery::Message { .. })));
    nodes[primary].stop();
    create_at_last(&store, "after").await;
    assert!(store.load("before").await.unwrap().is_some());
    is_heard(&store, &store).await;
    let other = Redis::connect(&url)
        .await
        .unwrap()
        .prefix(prefix)
        .keys([key(1)]);
    assert!(other.load("after").await.unwrap().is_some());
    is_heard(&store, &other).await;
}

#[tokio::test]
async fn keys_that_move_are_found_again() {
    let Some(nodes) = cluster("keys that move").await else {
        return;
    };
    let prefix = "shop";
    let store = Redis::connect(nodes[0].url()).await.unwrap();
    let store = store.prefix(prefix).keys([key(1)]);
    // The slot is still empty, so only the slot moves.
    assert!(store.load("a").await.unwrap().is_none());
    let slot: usize = nodes[0]
        .says(&["CLUSTER", "KEYSLOT", &format!("{{{prefix}}}")])
        .unwrap();
    let to = (place_of(&nodes, prefix) + 1) % 3;
    let id: String = nodes[to].says(&["CLUSTER", "MYID"]).unwrap();
    for node in &nodes {
        let slot = slot.to_string();
        let () = node
            .says(&["CLUSTER", "SETSLOT", &slot, "NODE", &id])
            .unwrap();
    }
    store.create(task("a")).await.unwrap();
    assert!(store.load("a").await.unwrap().is_some());
    let keys: usize = nodes[to].says(&["DBSIZE"]).unwrap();
    assert_eq!(keys, 3);
}

/// A proxy that cuts the connection instead of forwarding one response.
async fn pass_on(listener: TcpListener, port: u16, cuts: Arc<AtomicBool>) {
    while let Ok((client, _)) = listener.accept().await {
        let cuts = Arc::clone(&cuts);
        tokio::spawn(async move {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let asked = tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
            let mut answer = Vec::new();
            while from_server.read_buf(&mut answer).await? > 0 {
                if cuts.swap(false, Ordering::Relaxed) {
                    break;
                }
                to_client.write_all(&answer).await?;
                answer.clear();
            }
            asked.abort();
            std::io::Result::Ok(())
        });
    }
}

#[tokio::test]
async fn possibly_executed_commands_are_not_repeated() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let announced = listener.local_addr().unwrap().port().to_string();
    let bus = free_port().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-port", &bus];
    let announce = ["--cluster-announce-port", &announced];
    let Some(node) = own("answers that are lost", &[&options[..], &announce].concat()) else {
        return;
    };
    let () = node
        .says(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"])
        .unwrap();
    meet(std::slice::from_ref(&node)).await;
    let cuts = Arc::new(AtomicBool::new(false));
    let passing = tokio::spawn(pass_on(listener, node.port(), Arc::clone(&cuts)));
    let store = Redis::connect(format!("redis://127.0.0.1:{announced}")).await;
    let store = store.unwrap().keys([key(1)]);
    let write = |data: &'static str| StreamWrite::new(Bytes::from_static(data.as_bytes()));
    assert_eq!(
        store.append("session", "a", write("1")).await.unwrap(),
        Some(vec![1])
    );
    cuts.store(true, Ordering::Relaxed);
    refused(store.append("session", "a", write("2")).await);
    let begun = Instant::now();
    let replay = loop {
        match store.after("session", "a", 0, 9).await {
            Ok(replay) => break replay,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    };
    let Replay::Events { events, .. } = replay else {
        panic!("{replay:?}");
    };
    assert_eq!(events, ["1", "2"]);
    passing.abort();
}

#[tokio::test]
async fn several_addresses_of_no_cluster_are_refused() {
    let (Some(one), Some(other)) = (own("two servers", &[]), own("two servers", &[])) else {
        return;
    };
    let url = format!("{},127.0.0.1:{}", one.url(), other.port());
    let error = refused(Redis::connect(&url).await);
    assert!(error.contains("is not a cluster"), "{error}");
}

/// A primary, a replica, and a sentinel that monitors them as `main`.
struct Watched {
    primary: Server,
    replica: Server,
    sentinel: Server,
}

impl Watched {
    async fn start(test: &str) -> Option<Self> {
        let (primary, replica) = (own(test, &[])?, own(test, &[])?);
        let port = primary.port().to_string();
        let () = replica.says(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
        let file = std::env::temp_dir().join(format!("oxmcp-sentinel-{port}.conf"));
        let settings = format!(
            "bind 127.0.0.1\nsentinel monitor main 127.0.0.1 {port} 1\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 3000\n"
        );
        fs::write(&file, settings).unwrap();
        let sentinel = own(test, &[file.to_str().unwrap(), "--sentinel"])?;
        let watched = Self {
            primary,
            replica,
            sentinel,
        };
        until("the sentinel does not find the replica", || {
            let found: Vec<redis::Value> = watched
                .sentinel
                .says(&["SENTINEL", "REPLICAS", "main"])
                .unwrap();
            let info: String = watched.replica.says(&["INFO", "replication"]).unwrap();
            found.len() == 1 && info.contains("master_link_status:up")
        })
        .await;
        fs::remove_file(file).ok();
        Some(watched)
    }

    fn url(&self) -> String {
        format!("redis-sentinel://127.0.0.1:{}/main", self.sentinel.port())
    }
}

#[tokio::test]
async fn store_contracts_hold_with_sentinels() {
    let Some(watched) = Watched::start("contracts with sentinels").await else {
        return;
    };
    contracts_hold(&watched.url()).await;
}

#[tokio::test]
async fn sentinels_name_the_new_primary_after_failover() {
    let Some(mut watched) = Watched::start("a failover with sentinels").await else {
        return;
    };
    let error = refused(Redis::connect(watched.url().replace("main", "other")).await);
    assert!(
        error.contains("know no working primary \"other\""),
        "{error}"
    );
    fail_over(&mut watched, Server::stop).await;
}

/// A frozen primary: its connections stay open, but carry no data.
#[tokio::test]
async fn hung_primary_is_abandoned() {
    let Some(mut watched) = Watched::start("a primary that hangs").await else {
        return;
    };
    let process = watched.primary.process();
    fail_over(&mut watched, |primary| primary.signal("-STOP", &process)).await;
}

async fn fail_over(watched: &mut Watched, end: impl FnOnce(&mut Server)) {
    let store = Redis::connect(watched.url()).await.unwrap().prefix("shop");
    let store = store.keys([key(1)]);
    store.create(task("before")).await.unwrap();
    until("the replica gets nothing", || {
        watched.replica.says::<usize>(&["DBSIZE"]).unwrap() == 3
    })
    .await;
    let mut heard = store.subscribe(&["changes"]).await.unwrap();
    end(&mut watched.primary);
    create_at_last(&store, "after").await;
    // It may have missed messages.
    let end = timeout(PATIENCE, heard.next()).await;
    assert_eq!(end.expect("the subscription does not end"), None);
    assert!(store.load("before").await.unwrap().is_some());
    is_heard(&store, &store).await;
    assert_eq!(watched.replica.says::<usize>(&["DBSIZE"]).unwrap(), 4);
}

#[tokio::test]
async fn demoted_primary_is_abandoned() {
    let Some(watched) = Watched::start("a primary that is one no longer").await else {
        return;
    };
    let store = Redis::connect(watched.url()).await.unwrap().prefix("shop");
    let store = store.keys([key(1)]);
    store.create(task("before")).await.unwrap();
    let mut heard = store.subscribe(&["changes"]).await.unwrap();
    let () = watched
        .sentinel
        .says(&["SENTINEL", "FAILOVER", "main"])
        .unwrap();
    until("the replica does not become the primary", || {
        // Its promotion closes all connections.
        let info: redis::RedisResult<String> = watched.replica.says(&["INFO", "replication"]);
        info.is_ok_and(|it| it.contains("role:master"))
    })
    .await;
    // The former primary keeps running, and becomes a replica after some time.
    until("the primary does not become a replica", || {
        let info: redis::RedisResult<String> = watched.primary.says(&["INFO", "replication"]);
        info.is_ok_and(|it| it.contains("role:slave"))
    })
    .await;
    create_at_last(&store, "after").await;
    let end = timeout(PATIENCE, heard.next()).await;
    assert_eq!(end.expect("the subscription does not end"), None);
    is_heard(&store, &store).await;
    let keys: usize = watched.replica.says(&["DBSIZE"]).unwrap();
    assert_eq!(keys, 4);
}

#[tokio::test]
async fn sentinels_accept_their_own_user_and_password() {
    let test = "sentinels with passwords";
    let Some(primary) = own(test, &["--requirepass", "of-primary"]) else {
        return;
    };
    let port = primary.port();
    let file = std::env::temp_dir().join(format!("oxmcp-sentinel-{port}.conf"));
    let settings = format!(
        "bind 127.0.0.1\nsentinel monitor main 127.0.0.1 {port} 1\nsentinel auth-pass main of-primary\n\
         requirepass of-sentinels\nuser ann on >of:ann/ allchannels +@all\n"
    );
    fs::write(&file, settings).unwrap();
    let sentinel = own(test, &[file.to_str().unwrap(), "--sentinel"]).unwrap();
    until("the sentinel does not reach the primary", || {
        let known: Vec<String> = sentinel
            .says_as(
                ":of-sentinels@",
                &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"],
            )
            .unwrap();
        known[1] == port.to_string()
    })
    .await;
    fs::remove_file(file).ok();
    let connect = |login: &str, query: &str| {
        let host = format!("127.0.0.1:{}", sentinel.port());
        Redis::connect(format!("redis-sentinel://{login}@{host}/main{query}"))
    };
    for (login, query) in [
        (":of-primary", ""),
        (":of-primary", "?sentinel_password=wrong-secret"),
        (":wrong-secret", "?sentinel_password=of-sentinels"),
    ] {
        let error = refused(connect(login, query).await);
        assert!(error.contains("?sentinel_username="), "{query}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    for query in [
        "?sentinel_password=of-sentinels",
        "?sentinel_username=ann&sentinel_password=of%3Aann/",
    ] {
        let store = connect(":of-primary", query).await.unwrap();
        let store = store.prefix(query).keys([key(1)]);
        store.create(task("a")).await.unwrap();
    }
}

//! Slots of a cluster that move from one node to another while they are in use.

use bytes::Bytes;
use oxmcp::{
    Revision,
    store::{
        CreateOutcome, EventStore, Replay, SessionChange, SessionRecord, SessionStore, StreamWrite,
    },
};
use oxmcp_redis::Redis;
use redis::FromRedisValue;

use super::{
    forms::{cluster, meet, node_of_cluster, until},
    server::{Server, key, refused},
};

const LONG: std::time::Duration = std::time::Duration::from_secs(60);

fn record() -> SessionRecord {
    SessionRecord::new(serde_json::from_str("{}").unwrap(), Revision::V2025_11_25)
}

fn write(data: &'static str) -> StreamWrite {
    StreamWrite::new(Bytes::from_static(data.as_bytes()))
}

/// A cluster, and a slot with a session that moves to a node without slots.
struct Moving {
    nodes: Vec<Server>,
    from: usize,
    slot: String,
    store: Redis,
}

impl Moving {
    async fn begin(test: &str) -> Option<Self> {
        let mut nodes = cluster(test).await?;
        nodes.push(node_of_cluster(test)?);
        let store = Redis::connect(nodes[0].url()).await.unwrap();
        let store = store.prefix("shop").keys([key(1)]);
        store.create("a", record(), LONG, 1).await.unwrap();
        assert_eq!(
            store.append("a", "s", write("1")).await.unwrap(),
            Some(vec![1])
        );
        let keys = |node: &Server| node.says::<Vec<String>>(&["KEYS", "*:session"]).unwrap();
        let from = nodes.iter().position(|it| !keys(it).is_empty()).unwrap();
        let slot: u64 = nodes[0]
            .says(&["CLUSTER", "KEYSLOT", &keys(&nodes[from])[0]])
            .unwrap();
        meet(&nodes).await;
        let moving = Self {
            nodes,
            from,
            slot: slot.to_string(),
            store,
        };
        let (from, to) = (moving.id(from), moving.id(3));
        let () = moving.set_slot(3, "IMPORTING", &from);
        let () = moving.set_slot(moving.from, "MIGRATING", &to);
        Some(moving)
    }

    fn id(&self, node: usize) -> String {
        self.nodes[node].says(&["CLUSTER", "MYID"]).unwrap()
    }

    fn set_slot<T: FromRedisValue>(&self, node: usize, how: &str, other: &str) -> T {
        let words = ["CLUSTER", "SETSLOT", &self.slot, how, other];
        self.nodes[node].says(&words).unwrap()
    }

    /// The keys of the session that are still at its first node.
    fn keys(&self) -> Vec<String> {
        let words = ["CLUSTER", "GETKEYSINSLOT", &self.slot, "100"];
        self.nodes[self.from].says(&words).unwrap()
    }

    fn migrate(&self, key: &str) {
        let port = self.nodes[3].port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, key, "0", "5000"];
        let () = self.nodes[self.from].says(&words).unwrap();
    }

    async fn events(&self) -> Vec<Bytes> {
        match self.store.after("a", "s", 0, 100).await.unwrap() {
            Replay::Events { events, .. } => events,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn sessions_and_streams_continue_while_slot_moves() {
    let Some(moving) = Moving::begin("a slot that moves").await else {
        return;
    };
    let store = &moving.store;
    // All data is still there.
    assert_eq!(
        store.set("a", SessionChange::Initialized).await.unwrap(),
        Some(2)
    );
    assert_eq!(
        store.append("a", "s", write("2")).await.unwrap(),
        Some(vec![2])
    );
    for key in moving.keys() {
        moving.migrate(&key);
    }
    assert!(moving.keys().is_empty());
    // Now the data is at the other node, which has none of the scripts yet, and does not own the slot yet.
    let found = store.load("a").await.unwrap().unwrap();
    assert!(found.version == 2 && found.record.initialized);
    let watch = SessionChange::Watch("file:///a".to_owned());
    assert_eq!(store.set("a", watch).await.unwrap(), Some(3));
    assert_eq!(store.touch("a", LONG).await.unwrap(), Some(3));
    assert_eq!(
        store.append("a", "s", write("3")).await.unwrap(),
        Some(vec![3])
    );
    assert_eq!(moving.events().await, ["1", "2", "3"]);
    // New data goes there at once.
    store.remove("a").await.unwrap();
    assert!(moving.keys().is_empty());
    let to = moving.id(3);
    for node in 0..4 {
        let () = moving.set_slot(node, "NODE", &to);
    }
    assert_eq!(
        store.create("a", record(), LONG, 1).await.unwrap(),
        CreateOutcome::Exists
    );
    assert_eq!(
        store.append("a", "s", write("4")).await.unwrap(),
        Some(vec![4])
    );
    assert_eq!(moving.events().await.len(), 4);
}

#[tokio::test]
async fn partly_moved_slot_fails_until_move_completes() {
    let Some(moving) = Moving::begin("a slot that has moved in part").await else {
        return;
    };
    let keys = moving.keys();
    let (streams, others): (Vec<_>, Vec<_>) = keys.iter().partition(|it| it.ends_with(":streams"));
    moving.migrate(streams[0]);
    // The operation does not wait forever.
    let error = refused(moving.store.append("a", "s", write("2")).await);
    assert!(error.contains("try again"), "{error}");
    let refusals = || {
        let stats: String = moving.nodes[moving.from]
            .says(&["INFO", "errorstats"])
            .unwrap();
        let count = stats
            .lines()
            .find_map(|it| it.strip_prefix("errorstat_TRYAGAIN:count="));
        count.map_or(0, |it| it.parse::<u64>().unwrap())
    };
    let before = refusals();
    let store = moving.store.clone();
    let waiting = tokio::spawn(async move { store.append("a", "s", write("2")).await });
    until("it is not tried", || refusals() > before).await;
    for key in others {
        moving.migrate(key);
    }
    assert_eq!(waiting.await.unwrap().unwrap(), Some(vec![2]));
    assert_eq!(moving.events().await, ["1", "2"]);
}

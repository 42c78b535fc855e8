//! Changes at the nodes of a server, which a bus connects.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use oxmcp::{
    Extension,
    protocol::{JsonObject, Notification},
    store::{Bus, Delivery, MemoryBus},
};

use super::*;
use crate::support::idle;

const LISTS: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// A bus that records the published messages, and may fail.
struct Observed {
    bus: MemoryBus,
    published: Mutex<Vec<Bytes>>,
    fails: AtomicBool,
}

impl Observed {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            bus: MemoryBus::new().max_waiting(3),
            published: Mutex::default(),
            fails: AtomicBool::new(false),
        })
    }

    /// The number of messages published since the last call.
    fn count(&self) -> usize {
        std::mem::take(&mut *self.published.lock().unwrap()).len()
    }

    /// Makes all subscribers of the bus miss messages.
    async fn overflow(&self) {
        for _ in 0..4 {
            self.bus.publish("changes", Bytes::new()).await.unwrap();
        }
    }
}

impl Bus for Observed {
    async fn publish(&self, topic: &str, message: Bytes) -> oxmcp::Result<()> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::closed("the bus is away"));
        }
        self.published.lock().unwrap().push(message.clone());
        self.bus.publish(topic, message).await
    }

    async fn subscribe(&self, topics: &[&str]) -> oxmcp::Result<BoxStream<'static, Delivery>> {
        self.bus.subscribe(topics).await
    }
}

/// Several nodes of one server.
fn nodes<const N: usize>(bus: &Arc<Observed>) -> [Server; N] {
    [(); N].map(|()| server().tool(idle("nap")).bus(Arc::clone(bus)))
}

/// A client that subscribes to a resource and, if it is modern, to the list of tools.
async fn watching(server: &Server, revision: Revision) -> ScriptedPeer {
    let mut peer = open(server, revision).await;
    if revision.is_modern() {
        let filter = json!({"resourceSubscriptions": ["file:///a"], "toolsListChanged": true});
        let params = json!({"notifications": filter});
        peer.ask(modern(1, "subscriptions/listen", params))
            .await
            .unwrap();
    } else {
        watch(&mut peer, revision, 1, "file:///a").await;
    }
    settle().await;
    peer
}

/// The notifications that arrive before the answer to a request.
async fn notified(peer: &mut ScriptedPeer, revision: Revision) -> Vec<String> {
    let last = if revision.is_modern() {
        modern(4711, "server/discover", json!({}))
    } else {
        request(4711, "ping", json!({}))
    };
    peer.send(last).await.unwrap();
    let mut told = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 4711 {
            return told;
        }
        let uri = message["params"]["uri"].as_str();
        let told_of = uri.or_else(|| message["method"].as_str());
        told.push(told_of.unwrap().to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn change_at_one_node_is_notified_once_everywhere() {
    for revision in Revision::ALL {
        let bus = Observed::new();
        let nodes: [Server; 3] = nodes(&bus);
        settle().await;
        let mut peers = Vec::new();
        for node in &nodes {
            peers.push(watching(node, revision).await);
        }
        for peer in &mut peers {
            assert_eq!(notified(peer, revision).await, Vec::<String>::new());
        }
        for _ in 0..3 {
            nodes[0].resource_updated("file:///a");
            nodes[0].resource_updated("file:///nobody-watches-this");
        }
        nodes[0].remove_tools(["nap"]);
        settle().await;
        settle().await;
        for peer in &mut peers {
            let told = notified(peer, revision).await;
            assert_eq!(told, [LISTS[0], "file:///a"], "{revision}");
        }
        // A node that receives a change from the bus does not publish it again.
        settle().await;
        assert_eq!(bus.count(), 1, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn node_without_clients_notifies_other_nodes() {
    let bus = Observed::new();
    let [silent, other] = nodes(&bus);
    settle().await;
    let revision = Revision::V2025_11_25;
    let mut peer = watching(&other, revision).await;
    silent.resource_updated("file:///a");
    settle().await;
    settle().await;
    assert_eq!(notified(&mut peer, revision).await, ["file:///a"]);
}

#[tokio::test(start_paused = true)]
async fn missed_messages_report_everything_as_changed() {
    for revision in Revision::ALL {
        let bus = Observed::new();
        let [node] = nodes(&bus);
        settle().await;
        let mut peer = watching(&node, revision).await;
        bus.overflow().await;
        settle().await;
        settle().await;
        let told = notified(&mut peer, revision).await;
        // A modern client is notified of its subscriptions, a legacy client of the lists that the server declared.
        let lists = if revision.is_modern() {
            vec![LISTS[0]]
        } else {
            vec![LISTS[0], LISTS[2]]
        };
        let expected = [lists, vec!["file:///a"]].concat();
        assert_eq!(told, expected, "{revision}");
        assert_eq!(bus.count(), 0, "what was missed is no news");
    }
}

#[tokio::test(start_paused = true)]
async fn oversized_message_reports_everything_as_changed() {
    let bus = Observed::new();
    let [one, other] = nodes(&bus);
    settle().await;
    let revision = Revision::V2025_11_25;
    let mut peer = watching(&other, revision).await;
    for number in 0..2_000 {
        one.resource_updated(format!("file:///{number}"));
    }
    settle().await;
    settle().await;
    assert_eq!(
        notified(&mut peer, revision).await,
        [LISTS[0], LISTS[2], "file:///a"]
    );
    let published = bus.published.lock().unwrap();
    assert!(published.iter().all(|message| message.len() < 1_000));
}

#[tokio::test(start_paused = true)]
async fn server_of_another_name_receives_nothing() {
    let bus = Observed::new();
    let [one] = nodes(&bus);
    let other = Server::new("other", "1.0.0").subscriptions();
    let other = other.bus(Arc::clone(&bus));
    settle().await;
    let revision = Revision::V2025_11_25;
    let mut peer = open(&other, revision).await;
    watch(&mut peer, revision, 1, "file:///a").await;
    one.resource_updated("file:///a");
    settle().await;
    settle().await;
    assert_eq!(notified(&mut peer, revision).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn changes_are_announced_after_a_bus_failure() {
    let bus = Observed::new();
    let [one, other] = nodes(&bus);
    settle().await;
    let revision = Revision::V2025_11_25;
    let mut peer = watching(&other, revision).await;
    bus.fails.store(true, Ordering::Relaxed);
    one.resource_updated("file:///a");
    settle().await;
    one.remove_tools(["nap"]);
    settle().await;
    assert_eq!(notified(&mut peer, revision).await, Vec::<String>::new());
    bus.fails.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    settle().await;
    assert_eq!(notified(&mut peer, revision).await, [LISTS[0], "file:///a"]);
    assert_eq!(bus.count(), 1);
}

struct Entered;

impl Notification for Entered {
    const NAME: &'static str = "notifications/com.example/rooms/entered";
    type Params = JsonObject;
}

#[tokio::test(start_paused = true)]
async fn extension_publications_are_repeated_at_other_nodes() {
    const KEY: &str = "com.example/rooms";
    let bus = Observed::new();
    // State that the nodes share.
    let guests = Arc::new(Mutex::new(0));
    let node = || {
        let guests = Arc::clone(&guests);
        let rooms = Extension::new(KEY).listen_key(KEY);
        let rooms = rooms.republishes::<Entered, _>(KEY, move |room| {
            let guests = *guests.lock().unwrap();
            async move { Some(entered(&room, guests)) }
        });
        server().extension(rooms).bus(Arc::clone(&bus))
    };
    fn entered(room: &Value, guests: i32) -> JsonObject {
        let params = json!({"room": room, "guests": guests});
        params.as_object().unwrap().clone()
    }
    let (one, other) = (node(), node());
    settle().await;
    let mut peer = open(&other, Revision::LATEST).await;
    let params = json!({"notifications": {KEY: ["kitchen"]}});
    peer.ask(modern(1, "subscriptions/listen", params))
        .await
        .unwrap();
    let enter = |room: &str| {
        let mut guests = guests.lock().unwrap();
        *guests += 1;
        one.publish::<Entered>(KEY, room, entered(&json!(room), *guests))
            .unwrap();
    };
    enter("cellar");
    enter("kitchen");
    enter("kitchen");
    settle().await;
    settle().await;
    let heard = peer.receive().await.unwrap();
    assert_eq!(heard["method"], Entered::NAME);
    assert_eq!(heard["params"]["guests"], 3, "the newest");
    assert_eq!(
        notified(&mut peer, Revision::LATEST).await,
        Vec::<String>::new()
    );
    bus.overflow().await;
    settle().await;
    assert_eq!(notified(&mut peer, Revision::LATEST).await, [Entered::NAME]);
}

//! Change notifications between the nodes of a server, over Redis.

use std::time::Duration;

use oxmcp::{Resource, Revision, Server, Tool, testing::ScriptedPeer};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::server::{self, own};

const PATIENCE: Duration = Duration::from_secs(60);

const WATCHED: &str = "app://status";

async fn node(redis: &server::Server) -> Server {
    Server::new("shop", "1.0.0")
        .resource(Resource::text(WATCHED, "status", "fine"))
        .tool(Tool::new("nap", "Do nothing", || async {}))
        .subscriptions()
        .bus(redis.connect("shop").await)
}

/// A client that watches a resource.
async fn watching(node: &Server) -> ScriptedPeer {
    let (mut peer, transport) = ScriptedPeer::new().await;
    node.connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let params = json!({"uri": WATCHED});
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params});
    peer.ask(subscribe).await.unwrap();
    peer
}

/// The next notification: a resource URI, or a method.
async fn notified(peer: &mut ScriptedPeer) -> String {
    let message = timeout(PATIENCE, peer.receive()).await;
    let message: Value = message.expect("nothing comes").unwrap();
    let uri = message["params"]["uri"].as_str();
    let told = uri.or_else(|| message["method"].as_str());
    told.unwrap().to_owned()
}

async fn until_subscribed(redis: &server::Server, count: usize) {
    let begun = Instant::now();
    let channel = "{shop}:bus:changes";
    loop {
        let (_, there): (String, usize) = redis.says(&["PUBSUB", "NUMSUB", channel]).unwrap();
        if there == count {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{there} subscribe");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn change_reaches_other_nodes_and_gap_reports_everything() {
    let Some(redis) = own("changes at other nodes", &[]) else {
        return;
    };
    let (one, other) = (node(&redis).await, node(&redis).await);
    until_subscribed(&redis, 2).await;
    let mut peer = watching(&other).await;
    one.resource_updated(WATCHED);
    assert_eq!(notified(&mut peer).await, WATCHED);
    one.remove_tools(["nap"]);
    assert_eq!(
        notified(&mut peer).await,
        "notifications/tools/list_changed"
    );
    let killed: usize = redis.says(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    assert!(killed >= 2);
    // The other node does not receive this message. After reconnecting, it reports what it may have missed.
    one.resource_updated(WATCHED);
    let all = [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        WATCHED,
    ];
    for expected in all {
        assert_eq!(notified(&mut peer).await, expected);
    }
    until_subscribed(&redis, 2).await;
    one.resource_updated(WATCHED);
    assert_eq!(notified(&mut peer).await, WATCHED);
}

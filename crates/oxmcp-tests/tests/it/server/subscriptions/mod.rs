//! Subscriptions of clients to lists and resources, in every revision.

mod author_hooks;
mod list_changes;
mod listen;
#[cfg(feature = "http-server")]
mod nodes;
mod resource_updates;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{
    Error, Limits, RequestContext, Resource, ResourceTemplate, Revision, Server, ServerSession,
    protocol::SubscriptionFilter,
    testing::{self, ScriptedPeer},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};

use crate::support::{LEGACY, modern, request, script};

const UPDATED: &str = "notifications/resources/updated";

fn server() -> Server {
    Server::new("files", "1.0.0")
        .resource(Resource::text("file:///a", "a", ""))
        .subscriptions()
}

/// The recorded calls of the hooks.
type Calls = Arc<Mutex<Vec<String>>>;

/// A server with a hidden resource and a hidden template, and a visible template.
fn restricted(server: Server) -> Server {
    let hidden = |_cx: &RequestContext| false;
    let template =
        |uri_template| ResourceTemplate::dynamic(uri_template, "x", |_cx, _variables| async { "" });
    server
        .resource(Resource::text("file:///secret", "s", "").visible_to(hidden))
        .resource_template(template("secret://{x}").visible_to(hidden))
        .resource_template(template("secret://open{x}"))
}

/// Lets all pending work run.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(11)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn open(server: &Server, revision: Revision) -> ScriptedPeer {
    let mut peer = script(server).await;
    if !revision.is_modern() {
        peer.initialize(revision).await.unwrap();
    }
    peer
}

/// Subscribes to a resource in the way of the revision. Returns the answer.
async fn watch(peer: &mut ScriptedPeer, revision: Revision, id: i64, uri: &str) -> Value {
    let message = if revision.is_modern() {
        let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
        modern(id, "subscriptions/listen", filter)
    } else {
        request(id, "resources/subscribe", json!({"uri": uri}))
    };
    peer.ask(message).await.unwrap()
}

/// Ends the subscription that was requested with this id.
async fn leave(peer: &mut ScriptedPeer, revision: Revision, id: i64, uri: &str) {
    if revision.is_modern() {
        let params = json!({"requestId": id});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        peer.send(cancel).await.unwrap();
    } else {
        let message = request(id + 1000, "resources/unsubscribe", json!({"uri": uri}));
        let answer = peer.ask(message).await.unwrap();
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
}

/// The URIs of the updates that arrive before the answer to a request.
async fn updates(peer: &mut ScriptedPeer, revision: Revision) -> Vec<String> {
    let last = if revision.is_modern() {
        modern(4711, "server/discover", json!({}))
    } else {
        request(4711, "ping", json!({}))
    };
    peer.send(last).await.unwrap();
    let mut updates = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 4711 {
            return updates;
        }
        if message["method"] == "notifications/resources/list_changed" {
            continue;
        }
        assert_eq!(message["method"], UPDATED, "{message}");
        updates.push(message["params"]["uri"].as_str().unwrap().to_owned());
    }
}

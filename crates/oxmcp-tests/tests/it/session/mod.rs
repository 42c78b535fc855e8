//! The session engine: inbound and outbound messages, their order, and the end of a connection.

mod cancellation;
mod driver;
mod inbound;
mod middleware;
mod notifications;
mod outbound;
mod panics;
mod tolerance;
mod trace;

use std::time::Duration;

use oxmcp::{
    Client, ClientSession, JsonSchema, RequestContext, Revision, Server, Tool,
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

#[derive(serde::Deserialize, JsonSchema)]
struct Millis {
    ms: u64,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Count {
    n: u32,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// A server with tools that answer at once, after a while, with progress, or never.
fn server() -> Server {
    Server::new("test", "1.0.0")
        .tool(Tool::new("fast", "Answers at once", || async { "fast" }))
        .tool(Tool::new(
            "echo",
            "Says it again",
            |Text { text }: Text| async move { text },
        ))
        .tool(Tool::new(
            "slow",
            "Takes its time",
            |Millis { ms }: Millis| async move {
                sleep(Duration::from_millis(ms)).await;
                "slow"
            },
        ))
        .tool(Tool::new("stuck", "Never answers", || async {
            std::future::pending::<()>().await;
        }))
        .tool(Tool::new("stream", "Reports progress", stream))
}

async fn stream(cx: RequestContext, Count { n }: Count) -> &'static str {
    for done in 1..=n {
        cx.progress(done).total(n).await;
    }
    "done"
}

/// A client of `server` that has opened a session.
async fn client_of(server: &Server, revision: Revision) -> ScriptedPeer {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server.connect(transport).await.unwrap();
    peer.initialize(revision).await.unwrap();
    peer
}

/// A server for `client`, which has opened a session with it.
async fn server_of(client: Client) -> (ClientSession, ScriptedPeer) {
    server_in(client, Revision::V2025_11_25).await
}

async fn server_in(client: Client, revision: Revision) -> (ClientSession, ScriptedPeer) {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = client.revisions([revision]);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    accept(&mut peer).await;
    (opening.await.unwrap().unwrap(), peer)
}

/// Answers `initialize`, and waits for the notification that follows it.
async fn accept(peer: &mut ScriptedPeer) {
    let request = peer.receive().await.unwrap();
    assert_eq!(request["method"], "initialize");
    peer.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "1.0.0"},
    }}))
    .await
    .unwrap();
    let initialized = peer.receive().await.unwrap();
    assert_eq!(initialized["method"], "notifications/initialized");
}

fn request(id: impl Into<Value>, method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params.into()})
}

fn call(id: impl Into<Value>, tool: &str, arguments: impl Into<Value>) -> Value {
    request(
        id,
        "tools/call",
        json!({"name": tool, "arguments": arguments.into()}),
    )
}

fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

fn cancel(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({"requestId": id.into()}))
}

/// Asserts that a message cancels a request, and has a reason.
fn assert_cancels(message: &Value, asked: &Value) {
    let mut expected = cancel(asked["id"].clone());
    let reason = &message["params"]["reason"];
    assert!(
        reason.as_str().is_some_and(|it| !it.is_empty()),
        "{message}"
    );
    expected["params"]["reason"] = reason.clone();
    assert_eq!(*message, expected);
}

fn notification(method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params.into()})
}

fn text_result(id: impl Into<Value>, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": {"content": [{"type": "text", "text": text}]}})
}

/// The text of a tool's result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Asserts that the peer sends nothing more within an hour.
async fn assert_silent(peer: &mut ScriptedPeer) {
    let more = timeout(Duration::from_secs(3600), peer.receive()).await;
    assert!(more.is_err(), "nothing was to come, but: {more:?}");
}

/// Asserts that the session continues: it answers a ping.
async fn assert_alive(peer: &mut ScriptedPeer) {
    let answer = peer.ask(ping("alive?")).await.unwrap();
    assert_eq!(answer["id"], "alive?", "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
}

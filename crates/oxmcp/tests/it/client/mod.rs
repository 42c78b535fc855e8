//! Clients: negotiation, calls, lists, sessions.

mod calls;
mod listen;
mod listing;
mod methods;
mod negotiation;
mod restarts;
mod sessions;
mod structured;

use oxmcp::{Client, ClientSession, Result, Revision, testing::ScriptedPeer};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A client that connects to a server by script, which has not answered yet.
async fn connecting(client: Client) -> (ScriptedPeer, JoinHandle<Result<ClientSession>>) {
    let (peer, transport) = ScriptedPeer::new().await;
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    (peer, connecting)
}

fn client() -> Client {
    Client::new("tester", "1.0.0")
}

/// The next message, which must be of this method.
async fn expect(peer: &mut ScriptedPeer, method: &str) -> Value {
    let message = peer.receive().await.unwrap();
    assert_eq!(message["method"], method, "{message}");
    message
}

async fn answer(peer: &mut ScriptedPeer, request: &Value, result: Value) {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    peer.send(answer).await.unwrap();
}

async fn refuse(peer: &mut ScriptedPeer, request: &Value, error: Value) {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
    peer.send(answer).await.unwrap();
}

fn method_not_found() -> Value {
    json!({"code": -32601, "message": "Method not found"})
}

/// What `server/discover` is answered with.
fn discovered(versions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}})
}

/// What `initialize` is answered with.
fn initialized(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "scripted", "version": "1"}})
}

/// A session with a server by script, which everything is still to be asked of.
async fn session(revision: Revision) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) = connecting(client().revisions([revision])).await;
    if revision.is_modern() {
        let probe = expect(&mut peer, "server/discover").await;
        answer(&mut peer, &probe, discovered(&[revision.as_str()])).await;
    } else {
        let opening = expect(&mut peer, "initialize").await;
        answer(&mut peer, &opening, initialized(revision.as_str())).await;
        expect(&mut peer, "notifications/initialized").await;
    }
    (peer, connecting.await.unwrap().unwrap())
}

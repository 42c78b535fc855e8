//! Clients against scripted servers: connecting, calls, questions, subscriptions, cache.

mod answers_each;
mod cache;
mod connect;
mod handlers;
mod requests;
mod sessions;
mod subscriptions;

use std::{future::IntoFuture, time::Duration};

use oxmcp::{
    Client, ClientSession, Result, Revision,
    middleware::{self, Next, Request},
    protocol::CallToolResult,
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{select, task::JoinHandle, time::timeout};

/// A client that connects to a scripted server, which has not answered yet.
async fn connecting(client: Client) -> (ScriptedPeer, JoinHandle<Result<ClientSession>>) {
    let (peer, transport) = ScriptedPeer::new().await;
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    (peer, connecting)
}

pub(crate) fn client() -> Client {
    Client::new("tester", "1.0.0")
}

/// The next message, which must have this method.
pub(crate) async fn expect(peer: &mut ScriptedPeer, method: &str) -> Value {
    let message = soon(method, peer.receive()).await.unwrap();
    assert_eq!(message["method"], method, "{message}");
    message
}

/// Waits for an event that must come. A missing event must not hang the test.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    // Longer than any timeout of the tests.
    let patience = Duration::from_secs(1_000_000);
    let came = timeout(patience, future).await;
    came.unwrap_or_else(|_| panic!("no {what} came"))
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

/// The capabilities of scripted servers: those of all listings.
fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {}})
}

/// The result of `server/discover`.
fn discovered(versions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": capabilities()})
}

/// The result of `initialize`.
fn initialized(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities(), "serverInfo": {"name": "scripted", "version": "1"}})
}

/// A session with a scripted server, before any request.
async fn session(revision: Revision) -> (ScriptedPeer, ClientSession) {
    let (peer, session, _) = session_of(client(), revision).await;
    (peer, session)
}

/// A session of this client with a scripted server. Also returns the client's declared capabilities.
pub(crate) async fn session_of(
    client: Client,
    revision: Revision,
) -> (ScriptedPeer, ClientSession, Value) {
    let (mut peer, connecting) = connecting(client.revisions(asking(revision))).await;
    let declared = if revision.is_modern() {
        let probe = expect(&mut peer, "server/discover").await;
        answer(&mut peer, &probe, discovered(&[revision.as_str()])).await;
        probe["params"]["_meta"][CAPABILITIES].clone()
    } else {
        let opening = expect(&mut peer, "initialize").await;
        answer(&mut peer, &opening, initialized(revision.as_str())).await;
        expect(&mut peer, "notifications/initialized").await;
        opening["params"]["capabilities"].clone()
    };
    (peer, connecting.await.unwrap().unwrap(), declared)
}

/// The revisions of a client that probes a server of this revision. A client with a single modern revision does not probe.
pub(crate) fn asking(revision: Revision) -> Vec<Revision> {
    if revision.is_modern() {
        vec![Revision::V2025_11_25, revision]
    } else {
        vec![revision]
    }
}

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The final result of `tools/call`.
fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

/// The intermediate result of `tools/call`, with questions.
#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn asks(inputs: Value) -> Value {
    json!({"resultType": "input_required", "inputRequests": inputs, "requestState": "the state"})
}

fn calling(session: &ClientSession) -> JoinHandle<Result<CallToolResult>> {
    tokio::spawn(session.call_tool("t", json!({"a": 1})).into_future())
}

/// Asks a client a question in the way of its revision: by a request, or within the result of a call. Returns the client's answer
/// in the form of a response: `result` or `error`.
pub(crate) async fn ask(
    (peer, session): (&mut ScriptedPeer, &ClientSession),
    method: &str,
    params: Value,
) -> Value {
    if !session.revision().is_modern() {
        let request = json!({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params});
        return peer.ask(request).await.unwrap();
    }
    let mut call = calling(session);
    let request = expect(peer, "tools/call").await;
    let question = json!({"key": {"method": method, "params": params}});
    answer(peer, &request, asks(question)).await;
    select! {
        again = peer.receive() => {
            let again = again.unwrap();
            answer(peer, &again, done()).await;
            assert_eq!(call.await.unwrap().unwrap().content.len(), 1);
            json!({"result": again["params"]["inputResponses"]["key"]})
        }
        failed = &mut call => {
            let error = failed.unwrap().unwrap_err();
            json!({"error": {"code": error.code(), "message": error.message()}})
        }
    }
}

/// A middleware that changes nothing.
async fn pass_on(request: Request, next: Next) -> Result<middleware::Response> {
    next.run(request).await
}

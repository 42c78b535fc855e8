//! The tasks of a client: against the SDK's server, and against scripted servers.

mod core_tasks;
mod handles;
mod hostile;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod restarts;
mod waiting;

use std::future::IntoFuture;

use oxmcp::{
    Client, ClientSession, Result, Revision,
    protocol::CallToolResult,
    tasks::{ClientTasks, ID},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Duration, Instant, timeout},
};

use super::Meta;
use crate::client::expect;

/// A scripted server and the client's session with it.
struct Office {
    peer: ScriptedPeer,
    session: ClientSession,
}

impl Office {
    /// A modern server that declares the extension.
    async fn open() -> Self {
        Self::of(client(), json!({"tools": {}, "extensions": {ID: {}}})).await
    }

    async fn of(client: Client, capabilities: Value) -> Self {
        let client = client.revisions([Revision::V2025_11_25, Revision::LATEST]);
        let (mut peer, transport) = ScriptedPeer::new().await;
        let connecting = tokio::spawn(async move { client.connect(transport).await });
        let probe = expect(&mut peer, "server/discover").await;
        let found = json!({
            "resultType": "complete", "supportedVersions": [Revision::LATEST], "capabilities": capabilities,
        });
        give(&mut peer, &probe, found).await;
        let session = connecting.await.unwrap().unwrap();
        Self { peer, session }
    }

    fn call(&self) -> JoinHandle<Result<CallToolResult>> {
        tokio::spawn(self.session.call_tool("report", ()).into_future())
    }

    /// The next request, which must have this method.
    async fn expect(&mut self, method: &str) -> Value {
        expect(&mut self.peer, method).await
    }

    /// Answers the next request, which must have this method, and returns it.
    async fn answer(&mut self, method: &str, result: Value) -> Value {
        let request = self.expect(method).await;
        give(&mut self.peer, &request, result).await;
        request
    }

    async fn refuse(&mut self, method: &str, code: i64) {
        let request = self.expect(method).await;
        let error = json!({"code": code, "message": "no"});
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
        self.peer.send(answer).await.unwrap();
    }

    /// Asserts that no more messages arrive.
    async fn silence(&mut self) {
        let next = timeout(Duration::from_secs(600), self.peer.receive()).await;
        assert!(next.is_err(), "it said {next:?}");
    }
}

fn client() -> Client {
    Client::new("tester", "1.0.0").tasks()
}

async fn give(peer: &mut ScriptedPeer, request: &Value, result: Value) {
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
    peer.send(answer).await.unwrap();
}

/// The result of a call that has become a task.
fn created(more: Value) -> Value {
    let mut task = state("working", more);
    task["resultType"] = json!("task");
    task
}

/// The result of `tasks/get`.
#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn state(status: &str, more: Value) -> Value {
    let mut task = json!({
        "resultType": "complete", "taskId": "the-id", "status": status, "ttlMs": null, "pollIntervalMs": 1000,
        "createdAt": "2026-11-24T00:00:00Z", "lastUpdatedAt": "2026-11-24T00:00:00Z",
    });
    for (key, value) in more.as_object().unwrap() {
        task[key] = value.clone();
    }
    task
}

fn completed() -> Value {
    let result =
        json!({"resultType": "complete", "content": [{"type": "text", "text": "the report"}]});
    state("completed", json!({"result": result}))
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().unwrap()
}

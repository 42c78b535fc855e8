//! Questions from handlers to the client, in every revision.

mod answers;
mod official_schemas;
mod outcomes;
mod prompts_and_resources;
mod refused;
mod returned_questions;
mod rounds;
mod sealed_state;
mod session_questions;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{JsonSchema, RequestContext, Revision, Server, Tool, ToolError, testing::ScriptedPeer};
use serde_json::{Value, json};

use crate::support::{request, script};

/// The revisions with elicitation.
const ASKING: [Revision; 3] = [
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

/// The capabilities of a client that can be asked every question.
fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": true}})
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// A scripted client that answers questions. It speaks one revision.
struct User {
    peer: ScriptedPeer,
    revision: Revision,
    capabilities: Value,
    last_id: i64,
    /// The questions, in order: keys and params if the revision is modern, methods and params if it is not.
    asked: Vec<(String, Value)>,
    /// The number of questions of each round.
    rounds: Vec<usize>,
}

impl User {
    async fn new(server: &Server, revision: Revision) -> Self {
        Self::able(server, revision, everything()).await
    }

    async fn able(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let mut user = Self {
            peer: script(server).await,
            revision,
            capabilities,
            last_id: 0,
            asked: Vec::new(),
            rounds: Vec::new(),
        };
        if !revision.is_modern() {
            let opened = user.peer.ask(request(
                0,
                "initialize",
                json!({
                    "protocolVersion": revision,
                    "capabilities": user.capabilities,
                    "clientInfo": {"name": "user", "version": "1.0.0"},
                }),
            ));
            assert_eq!(
                opened.await.unwrap()["result"]["protocolVersion"],
                json!(revision)
            );
            user.notify("notifications/initialized").await;
        }
        user
    }

    async fn notify(&mut self, method: &str) {
        let message = crate::support::notification(method);
        self.peer.send(message).await.unwrap();
    }

    /// Makes one request, and receives the next message.
    async fn once(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.revision.is_modern() {
            params["_meta"] = ScriptedPeer::modern_meta();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        let message = request(self.last_id, method, params);
        self.peer.ask(message).await.unwrap()
    }

    async fn call_once(&mut self, name: &str, arguments: Value, more: Value) -> Value {
        let mut params = json!({"name": name, "arguments": arguments});
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        self.once("tools/call", params).await
    }

    /// Makes a request and answers the questions until there is a result or an error.
    async fn drive(
        &mut self,
        method: &str,
        params: Value,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> Value {
        let mut got = self.once(method, params.clone()).await;
        for _ in 0..12 {
            if got.get("method").is_some() {
                let method = got["method"].as_str().unwrap().to_owned();
                let result = answer(&method, &got["params"]);
                self.asked.push((method, got["params"].clone()));
                self.rounds.push(1);
                let message = json!({"jsonrpc": "2.0", "id": got["id"], "result": result});
                got = self.peer.ask(message).await.unwrap();
            } else if got["result"]["resultType"] == "input_required" {
                let mut again = params.clone();
                let requests = got["result"]["inputRequests"].as_object();
                self.rounds.push(requests.map_or(0, serde_json::Map::len));
                for (key, asked) in requests.into_iter().flatten() {
                    let result = answer(asked["method"].as_str().unwrap(), &asked["params"]);
                    again["inputResponses"][key] = result;
                    self.asked.push((key.clone(), asked["params"].clone()));
                }
                if let Some(state) = got["result"].get("requestState") {
                    again["requestState"] = state.clone();
                }
                got = self.once(method, again).await;
            } else {
                return got;
            }
        }
        panic!("it asks and asks: {got}");
    }

    async fn call(
        &mut self,
        name: &str,
        arguments: Value,
        answer: impl FnMut(&str, &Value) -> Value,
    ) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.drive("tools/call", params, answer).await
    }
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Confirm {
    /// Keep a copy
    keep: bool,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Project {
    project: String,
}

/// A server whose tool `delete` counts in a step and asks twice, with the numbers of counts and of runs.
fn deleting() -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (counted, run) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let tool = {
        let (counted, run) = (Arc::clone(&counted), Arc::clone(&run));
        Tool::new(
            "delete",
            "Delete a project",
            move |cx: RequestContext, Project { project }: Project| {
                let (counted, run) = (Arc::clone(&counted), Arc::clone(&run));
                async move {
                    run.fetch_add(1, Ordering::Relaxed);
                    let Name { name } = cx.ask("name", "Who are you?").await?;
                    let count = || async { 5 + counted.fetch_add(1, Ordering::Relaxed) };
                    let files = cx.step("count", count).await?;
                    let question = format!("Delete {project} with {files} files, {name}?");
                    let Confirm { keep } = cx.ask("confirm", question).await?;
                    Ok::<_, ToolError>(format!("{name}: {files} files, keep {keep}"))
                }
            },
        )
    };
    (Server::new("files", "1.0.0").tool(tool), counted, run)
}

/// The answers of a user named Ann.
fn ann(_method: &str, params: &Value) -> Value {
    match params["message"].as_str() {
        Some("Who are you?") => accept(json!({"name": "Ann"})),
        _ => accept(json!({"keep": true})),
    }
}

//! The extension for tasks: calls that continue after they were answered.

mod calls;
mod client;
mod handing_over;
pub(crate) mod leases;
mod legacy;
mod orphans;
mod owners;
mod questions;
mod races;
mod refusals;
mod replays;
mod stores;
mod takeover;
#[cfg(unix)]
mod takeover_of_processes;

use std::time::Duration;

use oxmcp::{
    Reply, RequestContext, Server, Tool, ToolError,
    protocol::{BooleanSchema, ElicitParams, ElicitSchema, InputRequiredResult, Meta},
    tasks::{ID, TaskPolicy, TaskTool, Tasks},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};

use crate::support::{modern, script};

/// A server with the extension and a tool.
fn server(tool: Tool) -> Server {
    Server::new("office", "1.0.0")
        .extension(Tasks::in_memory().extension())
        .tool(tool)
}

/// A request that declares the extension, and a client that can be asked.
fn declaring(id: i64, method: &str, params: Value) -> Value {
    let mut request = modern(id, method, params);
    request["params"]["_meta"][Meta::CLIENT_CAPABILITIES] =
        json!({"extensions": {ID: {}}, "elicitation": {}});
    request
}

/// A scripted client that declares the extension.
struct Peer(ScriptedPeer, i64);

impl Peer {
    async fn of(server: &Server) -> Self {
        Self(script(server).await, 0)
    }

    /// The answer to a request.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.1 += 1;
        self.0.ask(declaring(self.1, method, params)).await.unwrap()
    }

    /// Calls a tool, and returns the id of the task that it becomes.
    async fn begin(&mut self, tool: &str) -> String {
        let answer = self.ask("tools/call", json!({"name": tool})).await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "task", "{answer}");
        result["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&mut self, id: &str) -> Value {
        let answer = self.ask("tasks/get", json!({"taskId": id})).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"].clone()
    }

    /// Polls the task until it has this status.
    async fn until(&mut self, id: &str, status: &str) -> Value {
        for _ in 0..1000 {
            let state = self.get(id).await;
            if state["status"] == status {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the task never is {status}: {}", self.get(id).await);
    }
}

/// The members of an object, sorted.
fn members(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// A tool that waits until the test opens the gate.
fn gated(policy: TaskPolicy) -> (Tool, tokio::sync::watch::Sender<bool>) {
    let (open, gate) = tokio::sync::watch::channel(false);
    let tool = Tool::new("report", "Write a report", move || {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            "the report"
        }
    });
    (tool.task(policy), open)
}

/// A tool that returns two questions, one after the other.
fn returning_questions(policy: TaskPolicy) -> Tool {
    let tool = Tool::new("twice", "Ask twice", |cx: RequestContext| async move {
        let asked = cx.request_state().unwrap_or_default();
        if asked == "12" {
            return Ok::<_, ToolError>(Reply::Complete("asked".to_owned()));
        }
        let number = if asked.is_empty() { "1" } else { "2" };
        let form = ElicitSchema::new().required("sure", BooleanSchema::default());
        let question = InputRequiredResult::new()
            .with_input_request(number, ElicitParams::form(number, form))
            .with_request_state(asked + number);
        Ok(Reply::InputRequired(question))
    });
    tool.task(policy)
}

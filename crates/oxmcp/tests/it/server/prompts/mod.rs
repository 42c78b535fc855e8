//! Prompts: what they are, what they take, and what they give.

mod arguments;
mod definition;
mod required;
mod results;

use oxmcp::{JsonSchema, Prompt, Revision, Server};
use serde_json::{Value, json};

use crate::support::answer;

#[derive(serde::Deserialize, JsonSchema)]
pub(super) struct Review {
    /// the code to review
    pub(super) code: String,
    /// how strict to be
    #[schemars(title = "How strict")]
    pub(super) severity: Option<Severity>,
    #[serde(default)]
    pub(super) lines: u32,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Kind,
    Harsh,
}

pub(super) fn review() -> Prompt {
    let handler = |review: Review| async move {
        let severity = review.severity.unwrap_or(Severity::Kind);
        format!("{severity:?}, {} lines: {}", review.lines, review.code)
    };
    Prompt::new("review", "Review code", handler)
}

/// A prompt that does nothing.
pub(super) fn idle(name: &str) -> Prompt {
    Prompt::new(name, "Do nothing", || async { "nothing" })
}

pub(super) fn server(prompt: Prompt) -> Server {
    Server::new("prompts", "1.0.0").prompt(prompt)
}

pub(super) async fn listed(server: &Server, revision: Revision) -> Vec<Value> {
    let list = answer(server, revision, "prompts/list", json!({})).await;
    let prompts = list["result"]["prompts"].as_array();
    prompts.unwrap_or_else(|| panic!("{list}")).clone()
}

pub(super) fn names(prompts: &[Value]) -> Vec<&str> {
    let names = prompts.iter().map(|it| it["name"].as_str().unwrap());
    names.collect()
}

pub(super) async fn got(
    server: &Server,
    revision: Revision,
    name: &str,
    arguments: Value,
) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    answer(server, revision, "prompts/get", params).await
}

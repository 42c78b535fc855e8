//! Prompts: definitions, arguments, results.

mod arguments;
mod definition;
mod results;

use oxmcp::{JsonSchema, Prompt, Revision, Server};
use serde_json::{Value, json};

use crate::support::answer;

#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Review {
    /// the code to review
    pub(crate) code: String,
    /// how strict to be
    #[schemars(title = "How strict")]
    pub(crate) severity: Option<Severity>,
    #[serde(default)]
    pub(crate) lines: u32,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Kind,
    Harsh,
}

pub(crate) fn review() -> Prompt {
    let handler = |review: Review| async move {
        let severity = review.severity.unwrap_or(Severity::Kind);
        format!("{severity:?}, {} lines: {}", review.lines, review.code)
    };
    Prompt::new("review", "Review code", handler)
}

/// A prompt that does nothing.
pub(crate) fn idle(name: &str) -> Prompt {
    Prompt::new(name, "Do nothing", || async { "nothing" })
}

pub(crate) fn server(prompt: Prompt) -> Server {
    Server::new("prompts", "1.0.0").prompt(prompt)
}

pub(crate) async fn listed(server: &Server, revision: Revision) -> Vec<Value> {
    let list = answer(server, revision, "prompts/list", json!({})).await;
    let prompts = list["result"]["prompts"].as_array();
    prompts.unwrap_or_else(|| panic!("{list}")).clone()
}

pub(crate) fn names(prompts: &[Value]) -> Vec<&str> {
    let names = prompts.iter().map(|it| it["name"].as_str().unwrap());
    names.collect()
}

pub(crate) async fn got(
    server: &Server,
    revision: Revision,
    name: &str,
    arguments: Value,
) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    answer(server, revision, "prompts/get", params).await
}

//! A tool that asks the user before it deletes: written once, for every revision that has elicitation.
//!
//! `cargo run --example asking`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::sync::atomic::{AtomicUsize, Ordering};

use oxmcp::{
    Client, JsonSchema, Question, RequestContext, Result, Revision, Server, Tool, ToolError,
    protocol::{ElicitAction, ElicitFormParams, ElicitResult, Root},
    testing,
};
use serde_json::json;

#[derive(serde::Deserialize, JsonSchema)]
struct Delete {
    project: String,
}

// The fields of the form, with their descriptions.
#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    /// Keep a copy for 30 days
    keep_a_copy: bool,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Reason {
    /// Why it is no longer needed
    reason: Option<String>,
    urgency: Urgency,
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Urgency {
    Tonight,
    Now,
}

/// The number of times that the files were counted.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

async fn count_files(project: &str) -> usize {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    project.len()
}

// In the newest revision, the handler runs again from its beginning when an answer arrives. Put work that must not be done twice
// into a step.
async fn delete(cx: RequestContext, Delete { project }: Delete) -> Result<String, ToolError> {
    let files = cx.step("count", || count_files(&project)).await?;
    let question = format!("Delete {project} with {files} files?");
    // If the user declines, `?` returns an error that tells the model.
    let Confirm { keep_a_copy } = cx.ask("confirm", question).await?;
    // Two questions in one round.
    let (reason, roots) = cx
        .ask_all((
            Question::form::<Reason>("reason", "Tell the others why."),
            Question::roots(),
        ))
        .await?;
    let (why, urgency) = (reason.reason.unwrap_or_default(), reason.urgency);
    let place = roots.first().map_or("nowhere", |root| &root.uri);
    Ok(format!(
        "deleted {files} files of {place} ({urgency:?}, {why:?}, copy: {keep_a_copy})"
    ))
}

/// A simulated user, who declines to delete "archive".
async fn user(form: ElicitFormParams) -> Result<ElicitResult> {
    println!("  the user is asked: {}", form.message);
    let answer = if form.message.contains("archive") {
        Ok(ElicitResult::new(ElicitAction::Decline))
    } else if form.message.contains("why") {
        ElicitResult::accept(&json!({"reason": "done", "urgency": "tonight"}))
    } else {
        ElicitResult::accept(&json!({"keep_a_copy": true}))
    };
    answer.map_err(|error| oxmcp::Error::internal(error.to_string()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let server =
        Server::new("files", "1.0.0").tool(Tool::new("delete", "Delete a project", delete));
    let client = Client::new("my-app", "1.0.0")
        .roots([Root::new("file:///home/ann")])
        .on_elicit(user);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        println!("{revision}");
        COUNTED.store(0, Ordering::Relaxed);
        let session = testing::connect(&server)
            .client(&client)
            .revision(revision)
            .await?;
        for project in ["teahouse", "archive"] {
            let result = session
                .call_tool("delete", json!({"project": project}))
                .await?;
            for text in result.content.iter().filter_map(|block| block.as_text()) {
                println!("  {text}");
            }
        }
        println!("  counted {} times", COUNTED.load(Ordering::Relaxed));
        session.close().await?;
    }
    Ok(())
}

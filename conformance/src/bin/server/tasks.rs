//! Tools whose calls become tasks.

use std::time::Duration;

use oxmcp::{
    Error, JsonSchema, Question, RequestContext, Result, Server, Tool, ToolError,
    tasks::{TaskPolicy, TaskTool, Tasks},
};
use serde::Deserialize;
use tokio::time::sleep;

#[rustfmt::skip]
pub(crate) fn offer(server: Server) -> Server {
    use TaskPolicy::{Always, Required};

    server.extension(Tasks::in_memory().extension()).tools([
        Tool::new("greet", "Greets the user at once", greet),
        Tool::new("slow_compute", "Take some seconds", slow_compute).task(Always),
        Tool::new("failing_job", "Fail after a second", failing_job).task(Required),
        Tool::new("protocol_error_job", "Fail with an error of the protocol", protocol_error_job).task(Always),
        Tool::new("confirm_delete", "Ask the user to agree", confirm_delete).task(Required),
        Tool::new("multi_input", "Ask the user two things at once", multi_input).task(Required),
        Tool::new("test_tool_with_task", "Ask for a name, and then take a while", greet_later).task(Always),
    ])
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// The person to greet
    name: String,
}

async fn greet(Name { name }: Name) -> String {
    format!("Hello, {name}!")
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    /// How long it takes
    seconds: f64,
    /// The label of the work
    #[serde(default)]
    label: String,
}

async fn slow_compute(Work { seconds, label }: Work) -> Result<String, ToolError> {
    let time = Duration::try_from_secs_f64(seconds);
    sleep(time.map_err(|error| ToolError::new(error.to_string()))?).await;
    Ok(format!("done: {label}"))
}

async fn failing_job() -> Result<String, ToolError> {
    sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("this job always fails"))
}

async fn protocol_error_job() -> Result<String> {
    sleep(Duration::from_millis(100)).await;
    Err(Error::invalid_params("this job never begins"))
}

#[derive(Deserialize, JsonSchema)]
struct File {
    /// The file to delete
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    confirm: bool,
}

async fn confirm_delete(cx: RequestContext, File { filename }: File) -> Result<String> {
    let Confirm { confirm } = cx.ask("confirm", format!("Delete {filename}?")).await?;
    Ok(if confirm {
        format!("deleted {filename}")
    } else {
        format!("kept {filename}")
    })
}

async fn multi_input(cx: RequestContext) -> Result<String> {
    let first = Question::form::<Confirm>("first", "Is the first right?");
    let second = Question::form::<Confirm>("second", "Is the second right?");
    let (first, second) = cx.ask_all((first, second)).await?;
    Ok(format!("{} and {}", first.confirm, second.confirm))
}

async fn greet_later(cx: RequestContext) -> Result<String> {
    let Name { name } = cx.ask("user_name", "What is your name?").await?;
    sleep(Duration::from_millis(500)).await;
    Ok(format!("Hello, {name}!"))
}

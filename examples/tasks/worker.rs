//! Work in another process: the server turns a call into a task, and a worker completes the task by its id.
//!
//! The worker is another process of this program. It does not use MCP: it reads lines with an id and a title, and writes lines with
//! the same id and the outcome. A message queue could replace the two pipes.
//!
//! `cargo run --example worker --features tasks`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    env,
    io::{self, BufRead},
    process::{self, Stdio},
    sync::Arc,
    time::Duration,
};

use oxmcp::{
    Client, Error, JsonSchema, RequestContext, Result, Server, Tool,
    protocol::CallToolResult,
    tasks::{ClientTasks, ServerTasks, TaskContext, TaskPolicy, TaskTool, Tasks},
    testing,
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    sync::Mutex,
};

/// The worker: each line of its input is a picture to paint.
fn work() -> Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let Some((id, title)) = line.split_once(' ') else {
            continue;
        };
        println!("{id} working mixing the colors");
        if title.is_empty() {
            println!("{id} failed a picture needs a title");
        } else {
            println!("{id} done {title}, by process {}", process::id());
        }
    }
    Ok(())
}

#[derive(serde::Deserialize, JsonSchema)]
struct Picture {
    title: String,
}

/// The handler, which passes the work on, and then waits until the completed task cancels it.
async fn paint(jobs: Arc<Mutex<ChildStdin>>, cx: RequestContext, picture: Picture) -> Result<()> {
    let id = cx.leave_task().await?;
    let id =
        id.ok_or_else(|| Error::internal("cannot pass the work on: the call is not a task"))?;
    let job = format!("{id} {}\n", picture.title.replace('\n', " "));
    jobs.lock().await.write_all(job.as_bytes()).await?;
    cx.cancelled().await;
    Ok(())
}

/// Reads the worker's output: lines with an id, a status, and a text.
async fn take_results(server: Server, results: ChildStdout) -> Result<()> {
    let tasks = server.tasks()?;
    let mut results = BufReader::new(results).lines();
    while let Some(line) = results.next_line().await? {
        let mut words = line.splitn(3, ' ');
        let (Some(id), Some(status), Some(text)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        match status {
            "working" => tasks.report(id, text).await?,
            "done" => drop(tasks.complete(id, CallToolResult::text(text)).await?),
            // The tool has failed, and the caller gets the error. `fail` is for errors of the server.
            _ => drop(tasks.complete(id, CallToolResult::error(text)).await?),
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    if env::args().nth(1).as_deref() == Some("work") {
        return work();
    }
    let mut worker = Command::new(env::current_exe()?)
        .arg("work")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let missing = || Error::internal("the worker has no pipes");
    let jobs = worker.stdin.take().ok_or_else(missing)?;
    let jobs = Arc::new(Mutex::new(jobs));
    let paint = Tool::new("paint", "Paint a picture", oxmcp::with_state(jobs, paint));
    // Without a task, the handler has no id to pass on, so clients without support for tasks are refused.
    let tasks = Tasks::in_memory().poll_interval(Duration::from_millis(100));
    let server = Server::new("studio", "1.0.0")
        .extension(tasks.extension())
        .tool(paint.task(TaskPolicy::Required));
    let results = worker.stdout.take().ok_or_else(missing)?;
    tokio::spawn(take_results(server.clone(), results));

    let client = Client::new("my-app", "1.0.0").tasks();
    let session = testing::connect(&server).client(&client).await?;
    let picture = session.call_tool("paint", json!({"title": "Sunflowers"}));
    let text = picture.await?.to_text();
    let other = worker.id().map(|id| format!("by process {id}"));
    println!(
        "{}",
        text.replace(&other.unwrap_or_default(), "by another process")
    );

    let nothing = session.call_tool("paint", json!({"title": ""})).await?;
    println!("failed: {:?}: {}", nothing.is_error, nothing.to_text());
    session.close().await
}

//! A report that takes longer than a client's timeout: its call becomes a task, which a client awaits like any other call, or
//! controls with a handle.
//!
//! `cargo run --example long_report --features tasks`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{error::Error, time::Duration};

use futures_util::StreamExt;
use oxmcp::{
    Client, JsonSchema, RequestContext, Server, Tool,
    tasks::{AsTask, ClientTasks, ResumeTask, TaskPolicy, TaskTool, Tasks},
    testing,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

#[derive(serde::Deserialize, JsonSchema)]
struct Report {
    pages: u32,
}

// An ordinary handler, without any code for tasks.
async fn report(cx: RequestContext, Report { pages }: Report) -> String {
    for page in 1..=pages {
        let progress = cx.progress(page).total(pages);
        progress.message(format!("page {page} of {pages}")).await;
        sleep(Duration::from_secs(60)).await;
    }
    format!("a report of {pages} pages")
}

fn server() -> Server {
    let report = Tool::new("report", "Write a report, a minute for each page", report);
    Server::new("office", "1.0.0")
        .extension(Tasks::in_memory().extension())
        // A call that ends within five seconds returns its result directly. A longer call becomes a task, if the client supports
        // tasks.
        .tool(report.task(TaskPolicy::After(Duration::from_secs(5))))
}

// The clock of this program is paused: it jumps to the next timer whenever the program waits, so minutes take no time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = server();
    // A client without tasks waits at most a minute for a response.
    let session = testing::connect(&server).await?;
    let begun = Instant::now();
    let call = session.call_tool("report", json!({"pages": 3}));
    if let Err(error) = call.await {
        let seconds = begun.elapsed().as_secs();
        println!("timed out: {}, after {seconds} s", error.is_timeout());
    }
    session.close().await?;

    // A client with tasks awaits the call like any other. Its timeout restarts with each change of the task.
    let client = Client::new("my-app", "1.0.0").tasks();
    let session = testing::connect(&server).client(&client).await?;
    let begun = Instant::now();
    let call = session.call_tool("report", json!({"pages": 3}));
    let text: String = call.timeout(Duration::from_secs(90)).structured().await?;
    println!("{text}, after {} s", begun.elapsed().as_secs());

    // A client can also get a handle to the task, and follow its updates.
    let call = session.call_tool("report", json!({"pages": 3}));
    let task = call.as_task().await?;
    let mut updates = task.updates();
    while let Some(state) = updates.next().await {
        let message = state.status_message.as_deref();
        println!("{}: {}", state.status.as_str(), message.unwrap_or("…"));
    }
    println!("{}", task.structured::<String>().await?);

    // A task continues without its client. Its reference can be stored, and another process can resume it.
    let call = session.call_tool("report", json!({"pages": 60}));
    let reference = call.as_task().await?.detach();
    let stored = serde_json::to_string(&reference)?;
    session.close().await?;
    sleep(Duration::from_secs(30 * 60)).await;

    let session = testing::connect(&server).client(&client).await?;
    if let Some(reference) = serde_json::from_str(&stored)? {
        let task = session.resume_task(&reference)?;
        println!("resumed: {}", task.structured::<String>().await?);
    }
    session.close().await?;
    Ok(())
}

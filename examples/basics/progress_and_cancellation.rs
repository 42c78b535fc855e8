//! Long calls: progress reports, and the ways to end a call early.
//!
//! `cargo run --example progress_and_cancellation`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{future::IntoFuture, time::Duration};

use oxmcp::{CancellationToken, JsonSchema, RequestContext, Result, Server, Tool, testing};
use serde_json::json;
use tokio::{select, sync::Notify, time::sleep};

static STOPPED: Notify = Notify::const_new();

#[derive(serde::Deserialize, JsonSchema)]
struct Copy {
    files: u32,
}

async fn copy(cx: RequestContext, Copy { files }: Copy) -> String {
    for file in 1..=files {
        select! {
            () = sleep(Duration::from_millis(10)) => {}
            // A handler that waits for `cancelled` can clean up. Any other handler is dropped after a grace period.
            () = cx.cancelled() => {
                STOPPED.notify_one();
                return "cancelled".to_owned();
            }
        }
        // Sent only if the caller asked for progress.
        cx.progress(file).total(files).await;
    }
    format!("copied {files} files")
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("copier", "1.0.0").tool(Tool::new("copy", "Copy files", copy));
    let session = testing::connect(&server).await?;

    let call = session.call_tool("copy", json!({"files": 3}));
    let result = call
        .on_progress(|progress| println!("progress: {progress}"))
        .await?;
    println!("{}", result.to_text());

    // A call with a timeout. Progress would restart the timeout, but this call does not request any.
    let call = session.call_tool("copy", json!({"files": 1_000_000}));
    if let Err(error) = call.timeout(Duration::from_millis(35)).await {
        println!("timed out: {}", error.is_timeout());
    }
    STOPPED.notified().await;
    println!("the handler has stopped");

    // A call with a cancellation token, which any part of the program can cancel.
    let token = CancellationToken::new();
    let canceller = token.clone();
    let call = session
        .call_tool("copy", json!({"files": 1_000_000}))
        .cancel_with(token);
    if let Err(error) = call.on_progress(move |_| canceller.cancel()).await {
        println!("cancelled: {}", error.is_cancelled());
    }
    STOPPED.notified().await;
    println!("the handler has stopped");

    // A call whose future is dropped, which also cancels it at the server.
    let call = session.call_tool("copy", json!({"files": 1_000_000}));
    select! {
        _ = call.into_future() => unreachable!("the call is dropped first"),
        () = sleep(Duration::from_millis(35)) => println!("dropped"),
    }
    STOPPED.notified().await;
    println!("the handler has stopped");
    session.close().await
}

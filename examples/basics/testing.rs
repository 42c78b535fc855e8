//! In-process tests of a server, in every revision, with virtual time. The functions that `main` calls could be `#[test]`s.
//!
//! `cargo run --example testing`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use oxmcp::{
    JsonSchema, RequestContext, Result, Revision, Server, Tool, ToolError,
    testing::{self, ScriptedPeer},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

#[derive(serde::Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

async fn divide(Pair { a, b }: Pair) -> Result<i64, ToolError> {
    a.checked_div(b)
        .ok_or_else(|| ToolError::new("b must not be 0"))
}

async fn wait_an_hour(_cx: RequestContext) {
    sleep(Duration::from_secs(3600)).await;
}

fn server() -> Server {
    Server::new("calculator", "1.0.0")
        .tool(Tool::new("divide", "Divide a by b", divide))
        .tool(Tool::new("wait", "Wait", wait_an_hour))
}

/// Connects a client and a server in one process, at each revision.
async fn it_divides() -> Result<()> {
    for revision in Revision::ALL {
        let t = testing::connect(&server()).revision(revision).await?;
        let quotient: i64 = t
            .call_tool("divide", json!({"a": 6, "b": 2}))
            .structured()
            .await?;
        assert_eq!(quotient, 3);

        let failure = t.call_tool("divide", json!({"a": 6, "b": 0})).await?;
        assert!(failure.is_error);
        assert_eq!(failure.to_text(), "b must not be 0");
        t.close().await?;
    }
    Ok(())
}

/// Tests a timeout. With tokio's virtual time (`#[tokio::test(start_paused = true)]`), waiting takes no time.
async fn a_call_times_out() -> Result<()> {
    let start = Instant::now();
    let t = testing::connect(&server()).await?;
    let call = t.call_tool("wait", ()).timeout(Duration::from_secs(30));
    assert!(call.await.is_err_and(|error| error.is_timeout()));
    assert_eq!(start.elapsed().as_secs(), 30);
    t.close().await
}

/// Tests an invalid message. A `ScriptedPeer` sends exactly the lines of the test, valid or not, and keeps a transcript.
async fn nonsense_is_refused() -> Result<()> {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await?;
    peer.initialize(Revision::V2025_06_18).await?;
    peer.send_line("nonsense").await?;
    let answer = peer.receive().await?;
    assert_eq!(answer.pointer("/error/code"), Some(&json!(-32700)));
    println!("{}", peer.transcript());
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    tokio::time::pause();
    it_divides().await?;
    a_call_times_out().await?;
    nonsense_is_refused().await?;
    println!("all tests passed");
    Ok(())
}

//! A tour: a client starts a server, detects its revision, and uses its tools.
//!
//! `cargo run --example quickstart`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, time::Duration};

use oxmcp::{Client, ClientSession, Command, RequestContext, Server, ToolError, stdio};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Divide a by b
#[oxmcp::tool(read_only)]
async fn divide(
    /// the dividend
    a: f64,
    /// the divisor
    b: f64,
) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("b must not be 0"));
    }
    Ok(a / b)
}

/// Brew tea, one cup at a time
#[oxmcp::tool]
async fn brew(
    cx: RequestContext,
    /// how many cups
    cups: u32,
) -> String {
    for cup in 1..=cups {
        sleep(Duration::from_millis(200)).await;
        cx.progress(cup)
            .total(cups)
            .message(format!("cup {cup}"))
            .await;
    }
    format!("{cups} cups of tea")
}

fn server() -> Server {
    Server::new("teahouse", "1.0.0").tools([divide::tool(), brew::tool()])
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    // The client below starts this program again, as its server.
    if env::args().nth(1).as_deref() == Some("server") {
        return server().run(stdio()).await;
    }
    let command = Command::new(env::current_exe()?).arg("server");
    let session = Client::new("quickstart", "1.0.0").connect(command).await?;
    let result = tour(&session).await;
    session.close().await?;
    println!("\nThe session is closed, and the server has exited.");
    result
}

async fn tour(session: &ClientSession) -> oxmcp::Result<()> {
    let name = session.server_info().map_or("a server", |info| &info.name);
    println!("Connected to {name}. It speaks MCP {}.", session.revision());

    println!("\nIts tools:");
    let mut tools = session.tools();
    while let Some(tool) = tools.next().await {
        let tool = tool?;
        println!("  {:<8}{}", tool.name, tool.description.unwrap_or_default());
    }

    println!("\nA call with progress:");
    let call = session
        .call_tool("brew", json!({"cups": 5}))
        .on_progress(|progress| {
            let (done, total) = (progress.progress, progress.total.unwrap_or(5.0));
            let bar: String = (1..=5)
                .map(|cup| if f64::from(cup) <= done { '█' } else { '░' })
                .collect();
            println!(
                "  {bar} {done} of {total}: {}",
                progress.message.unwrap_or_default()
            );
        });
    println!("  => {}", call.await?.to_text());

    println!("\nA call with a typed result:");
    let quotient: f64 = session
        .call_tool("divide", json!({"a": 22, "b": 7}))
        .structured()
        .await?;
    println!("  22 / 7 => {quotient}");

    println!("\nWhat the model sees when a tool fails:");
    failure(session, json!({"a": 1, "b": 0})).await?;

    println!("\nWhat the model sees when its arguments are wrong:");
    failure(session, json!({"a": "one", "c": 2})).await
}

/// Shows the error of a tool. It is in the result of a successful request, so that the model can correct its call.
async fn failure(session: &ClientSession, arguments: Value) -> oxmcp::Result<()> {
    println!("  divide({arguments})");
    let result = session.call_tool("divide", arguments).await?;
    for line in result.to_text().lines() {
        println!("  => {line}");
    }
    Ok(())
}

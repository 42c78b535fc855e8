//! A client for a server behind a URL. It detects the server's revision, and which of the HTTP
//! transports the server has.
//!
//! `cargo run --example http_client --features http-client`, while the server of `http_server.rs` runs. The URL of another server
//! may follow.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;

use oxmcp::{Client, http::Endpoint};
use serde_json::json;

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let url = env::args().nth(1);
    let url = url.as_deref().unwrap_or("http://127.0.0.1:8080/mcp");

    // Credentials and headers for every request can be added here: `.bearer_token("…")`, `.header("x-key", "…")`.
    let endpoint = Endpoint::new(url);
    let session = Client::new("example-client", "1.0.0")
        .connect(endpoint)
        .await?;
    println!("It speaks MCP {}.", session.revision());

    for tool in session.tools().all().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let tea = session
        .call_tool("brew", json!({"cups": 3}))
        .on_progress(|progress| println!("  {progress}"))
        .await?;
    println!("=> {}", tea.to_text());
    session.close().await
}

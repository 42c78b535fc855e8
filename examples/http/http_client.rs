//! A client for a server at a URL. It detects the revision and the HTTP transport of the server.
//!
//! `cargo run --example http_client --features http-client`, while `http_server.rs` runs. For another server, add `-- URL`.
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

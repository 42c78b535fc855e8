//! A server at a URL: one endpoint for clients of every revision, with and without sessions.
//!
//! `cargo run --example http_server --features http-server`, and then see `http_client.rs`. For another address, add `-- ADDRESS`.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, time::Duration};

use oxmcp::{JsonSchema, RequestContext, Server, Tool, http::StreamableHttp};
use tokio::{signal::ctrl_c, time::sleep};

#[derive(serde::Deserialize, JsonSchema)]
struct Tea {
    /// How many cups
    cups: u32,
}

async fn brew(cx: RequestContext, Tea { cups }: Tea) -> String {
    for cup in 1..=cups {
        // The first progress report turns the JSON response into an event stream.
        cx.progress(cup).total(cups).await;
        sleep(Duration::from_millis(50)).await;
    }
    format!("{cups} cups of tea")
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let address = env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");

    let server = Server::new("teahouse", "1.0.0").tool(Tool::new(
        "brew",
        "Brew tea, one cup at a time",
        brew,
    ));
    // Other hosts cannot reach 127.0.0.1. If clients use another host name, allow it with `allowed_hosts`.
    let serving = StreamableHttp::from(server).serve(address).await?;
    println!("http://{}/mcp", serving.local_addr());

    ctrl_c().await?;
    // Requests in flight may finish; sessions and streams end.
    serving.close().await;
    Ok(())
}

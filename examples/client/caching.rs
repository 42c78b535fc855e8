//! The client's cache: responses that the server declares fresh are requested only once.
//!
//! `cargo run --example caching`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use oxmcp::{
    CacheMode, CacheOptions, Client, ClientSession, Result, Server, Tool,
    middleware::{Next, Request, Response, from_fn},
    protocol::{CacheHint, SubscriptionFilter},
    testing,
};

/// Prints the method of each request of the client.
async fn log(request: Request, next: Next) -> Result<Response> {
    println!("  sends {}", request.method());
    next.run(request).await
}

fn tool(name: &str) -> Tool {
    Tool::new(name, "Do nothing", || async { "nothing" })
}

async fn list(session: &ClientSession, mode: CacheMode) -> Result<()> {
    let tools = session.tools().cache(mode).all().await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    println!("  => {}", names.join(", "));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The list is the same for all clients, and fresh for an hour.
    let server = Server::new("toolbox", "1.0.0")
        .tool(tool("hammer"))
        .cache_tools(CacheHint::public(Duration::from_secs(3600)));

    // The client keeps responses for at most ten minutes. Its cache holds at most 1024 responses and 16 MiB.
    let client = Client::new("my-app", "1.0.0")
        .outgoing_layer(from_fn(log))
        .cache(CacheOptions {
            max_ttl: Duration::from_secs(600),
            ..CacheOptions::default()
        });
    println!("Connecting:");
    let session = testing::connect(&server).client(&client).await?;

    println!("First list:");
    list(&session, CacheMode::Use).await?;
    println!("Second list:");
    list(&session, CacheMode::Use).await?;
    println!("Refresh:");
    list(&session, CacheMode::Refresh).await?;

    // A subscription notifies the client of changes before the hour is over.
    println!("Subscribing:");
    let wanted = SubscriptionFilter::default().with_tools_list_changed(true);
    let mut subscription = session.listen(wanted).await?;
    server.add_tools([tool("saw")])?;
    subscription.next().await;
    println!("After a change:");
    list(&session, CacheMode::Use).await?;
    println!("And again:");
    list(&session, CacheMode::Use).await
}

//! Notifications of changes: handlers and watched resources, in every revision, and an explicit subscription.
//!
//! `cargo run --example subscriptions`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, ClientSession, Resource, Result, Revision, Server, SubscriptionEnd, SubscriptionEvent,
    Tool, protocol::SubscriptionFilter, testing,
};
use tokio::sync::mpsc;

fn tool(name: &str) -> Tool {
    Tool::new(name, "Do nothing", || async { "nothing" })
}

/// Uses a handler, which is called when the list has changed. It is also called after an interruption, since changes may have been
/// missed.
async fn by_handlers(revision: Revision) -> Result<()> {
    let (changes, mut heard) = mpsc::channel(8);
    let client = Client::new("my-app", "1.0.0").on_tools_changed(move |session: ClientSession| {
        let changes = changes.clone();
        async move {
            let count = session.tools().all().await.map(|tools| tools.len());
            // An error means that the receiver was dropped, and the count is no longer needed.
            let _ = changes.send(count).await;
        }
    });
    let server = Server::new("toolbox", "1.0.0").tool(tool("hammer"));
    let session = testing::connect(&server)
        .client(&client)
        .revision(revision)
        .await?;
    server.add_tools([tool("saw"), tool("file")])?;
    if let Some(count) = heard.recv().await {
        println!("  {revision}: the server now has {} tools", count?);
    }
    session.close().await
}

/// Watches a resource, whose changes are a stream. When the last watch is dropped, the server is notified.
async fn by_watching(revision: Revision) -> Result<()> {
    let server = Server::new("notes", "1.0.0")
        .resource(Resource::text("notes://todo", "todo", "Buy tea"))
        .subscriptions();
    let session = testing::connect(&server).revision(revision).await?;
    let mut watch = session.watch_resource("notes://todo").await?;
    server.resource_updated("notes://todo");
    if let Some(update) = watch.next().await {
        println!("  {revision}: {} has changed", update.uri);
    }
    drop(watch);
    session.close().await
}

/// Opens an explicit subscription of the modern protocol. A session can have several, and each reports why it has ended.
async fn by_hand() -> Result<()> {
    let server = Server::new("toolbox", "1.0.0").tool(tool("hammer"));
    let session = testing::connect(&server).await?;
    let wanted = SubscriptionFilter::default()
        .with_tools_list_changed(true)
        .with_prompts_list_changed(true);
    let mut subscription = session.listen(wanted).await?;
    let agreed = subscription.filter();
    println!(
        "  the server accepted tools: {}, prompts: {}",
        agreed.tools_list_changed, agreed.prompts_list_changed
    );
    server.remove_tools(["hammer"]);
    match subscription.next().await {
        Some(SubscriptionEvent::ToolsListChanged) => println!("  the tools have changed"),
        // The subscription was interrupted and then resumed.
        Some(SubscriptionEvent::Resumed(_)) => println!("  the tools may have changed"),
        _ => println!("  nothing has changed"),
    }
    if subscription.close().await == SubscriptionEnd::Local {
        println!("  the client has closed it");
    }
    session.close().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let both = [Revision::V2025_06_18, Revision::V2026_07_28];
    println!("Handlers for lists:");
    for revision in both {
        by_handlers(revision).await?;
    }
    println!("Watching a resource:");
    for revision in both {
        by_watching(revision).await?;
    }
    println!("An explicit subscription:");
    by_hand().await
}

//! A client hears of what changes: by handlers, which work in every revision, and by a subscription of its own.
//!
//! `cargo run --example subscriptions`
//!
//! Resources are watched in the same way: `session.watch_resource("file:///todo.md")` is a stream of their changes.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, ClientSession, Result, Revision, Server, SubscriptionEnd, SubscriptionEvent, Tool,
    protocol::SubscriptionFilter, testing,
};
use tokio::sync::mpsc;

fn tool(name: &str) -> Tool {
    Tool::new(name, "Do nothing", || async { "nothing" })
}

/// Handlers are called when something has changed, and after an interruption, when something may have.
async fn by_handlers(revision: Revision) -> Result<()> {
    let (changes, mut heard) = mpsc::channel(8);
    let client = Client::new("my-app", "1.0.0").on_tools_changed(move |session: ClientSession| {
        let changes = changes.clone();
        async move {
            let count = session.tools().all().await.map(|tools| tools.len());
            // Whoever dropped its receiver does not want to know.
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
        println!("  in {revision} there are {} tools now", count?);
    }
    session.close().await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("By handlers:");
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        by_handlers(revision).await?;
    }

    println!("By a subscription:");
    let server = Server::new("toolbox", "1.0.0").tool(tool("hammer"));
    let session = testing::connect(&server).await?;
    let wanted = SubscriptionFilter::default()
        .with_tools_list_changed(true)
        .with_resource_subscription("file:///todo.md");
    let mut subscription = session.listen(wanted).await?;
    let agreed = subscription.filter();
    println!(
        "  the server tells of tools: {}, and of {} resources",
        agreed.tools_list_changed,
        agreed.resource_subscriptions.len()
    );
    server.remove_tools(["hammer"]);
    while let Some(event) = subscription.next().await {
        match event {
            SubscriptionEvent::ToolsListChanged => println!("  the tools have changed"),
            // It was interrupted, and has been taken up again.
            SubscriptionEvent::Resumed(_) => println!("  the tools may have changed"),
            _ => {}
        }
        // What has been said is not lost by ending it.
        if subscription.close().await == SubscriptionEnd::Local {
            println!("  this side has ended it");
        }
    }
    session.close().await
}

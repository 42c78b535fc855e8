//! Views: tools and resources that are visible only to some callers. For others they do not exist, neither in listings nor in
//! calls.
//!
//! `cargo run --example views`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Duration;

use oxmcp::{Client, RequestContext, Resource, Result, Server, Tool, protocol::CacheHint, testing};

/// Trusts the name that the client declares. Over a network, check the authorization of the caller instead.
fn is_admin(cx: &RequestContext) -> bool {
    cx.peer_info()
        .is_some_and(|client| client.name == "console")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let server = Server::new("shop", "1.0.0")
        .tool(Tool::new("order", "Order tea", || async { "ordered" }))
        .tool(Tool::new("close", "Close the shop", || async { "closed" }).visible_to(is_admin))
        .resource(Resource::text("shop://menu", "menu", "green, black"))
        .resource(Resource::text("shop://books", "books", "a secret").visible_to(is_admin))
        // Listings that depend on the caller are private, even with a public hint.
        .cache_tools(CacheHint::public(Duration::from_secs(60)));

    for name in ["guest", "console"] {
        let client = Client::new(name, "1.0.0");
        let session = testing::connect(&server).client(&client).await?;
        let page = session.list_tools(Default::default()).await?;
        let tools: Vec<_> = page.tools.iter().map(|tool| &*tool.name).collect();
        println!(
            "{name} sees {} ({:?})",
            tools.join(" and "),
            page.cache_scope
        );
        for resource in session.resources().all().await? {
            println!("  and can read {}", resource.uri);
        }
        match session.call_tool("close", ()).await {
            Ok(_) => println!("  and can close the shop"),
            Err(error) => println!("  {error}"),
        }
        session.close().await?;
    }
    Ok(())
}

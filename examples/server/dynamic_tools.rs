//! Dynamic tools: added and removed while clients are connected, with schemas that are known only at run time.
//!
//! `cargo run --example dynamic_tools`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::sync::Arc;

use oxmcp::{Client, ClientSession, Result, Server, Tool, protocol::CallToolResult, testing};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Makes a tool from data, which could come from a file, a database, or another server.
fn greeting(language: &str, hello: &'static str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}},
        "required": ["name"],
    });
    let description = format!("Greet someone in {language}");
    // The handler gets the arguments as the client sent them, validated against the schema.
    Tool::dynamic(
        format!("greet_{language}"),
        description,
        schema,
        move |_cx, arguments| async move {
            let arguments: Value = serde_json::from_str(arguments.get())?;
            let name = arguments
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            Ok(CallToolResult::text(format!("{hello}, {name}!")))
        },
    )
}

async fn show(session: &ClientSession) -> Result<()> {
    let tools = session.tools().all().await?;
    let names: Vec<_> = tools.into_iter().map(|tool| tool.name).collect();
    println!("{}", names.join(", "));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::new("greeter", "1.0.0").tool(greeting("english", "Hello"));

    let changed = Arc::new(Notify::new());
    let notify = Arc::clone(&changed);
    let client = Client::new("example", "1.0.0").on_tools_changed(move |_session| {
        notify.notify_one();
        async {}
    });
    // This works in every revision: if the revision needs a subscription, the session opens it.
    let session = testing::connect(&server).client(&client).await?;
    show(&session).await?;

    server.add_tools([greeting("french", "Bonjour"), greeting("german", "Hallo")])?;
    changed.notified().await;
    show(&session).await?;
    let result = session
        .call_tool("greet_french", json!({"name": "Ferris"}))
        .await?;
    println!("{}", result.to_text());

    server.remove_tools(["greet_german"]);
    changed.notified().await;
    show(&session).await?;
    session.close().await
}

//! The elicitation of rmcp's examples, ported to oxmcp: a tool that asks for a name once, in every revision.
//!
//! `cargo run --example elicitation`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::sync::{Arc, Mutex, PoisonError};

use oxmcp::{
    Accept, Client, JsonSchema, RequestContext, Revision, Server, ToolError,
    protocol::ElicitFormParams, testing,
};
use serde_json::json;

type Name = Arc<Mutex<Option<String>>>;

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
struct User {
    /// the name of the user
    name: String,
}

fn set(stored: &Name, name: Option<String>) {
    *stored.lock().unwrap_or_else(PoisonError::into_inner) = name;
}

/// Greet the user, and ask for the name once
#[oxmcp::tool]
async fn greet_user(
    #[state] stored: Name,
    cx: RequestContext,
    greeting: String,
) -> Result<String, ToolError> {
    let known = stored
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let name = match known {
        Some(name) => name,
        // If the user declines, `?` returns an error that tells the model.
        None => cx.ask::<User>("name", "What is your name?").await?.name,
    };
    set(&stored, Some(name.clone()));
    Ok(format!("{greeting}, {name}!"))
}

/// Forget the name of the user
#[oxmcp::tool]
async fn reset_name(#[state] stored: Name) -> &'static str {
    set(&stored, None);
    "forgotten"
}

/// Run an action that requires the user to visit a page first
#[oxmcp::tool]
async fn secure_tool_call(cx: RequestContext) -> Result<&'static str, ToolError> {
    cx.ask_url(
        "visit",
        "Visit this page first",
        "https://example.com/complete_tool",
    )
    .await?;
    Ok("done")
}

fn server(stored: &Name) -> Server {
    Server::new("elicitation", "1.0.0").tools([
        greet_user::tool(stored.clone()),
        reset_name::tool(stored.clone()),
        secure_tool_call::tool(),
    ])
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        println!("{revision}");
        let client = Client::new("a-user", "1.0.0").on_elicit(|_: ElicitFormParams| async {
            println!("  the user is asked");
            Accept(User {
                name: "Ferris".to_owned(),
            })
        });
        let t = testing::connect(&server(&Name::default()))
            .client(&client)
            .revision(revision)
            .await?;
        for (tool, arguments) in [
            ("greet_user", json!({"greeting": "Hello"})),
            ("greet_user", json!({"greeting": "Good evening"})),
            ("reset_name", json!({})),
            ("greet_user", json!({"greeting": "Hello again"})),
        ] {
            println!("  {}", t.call_tool(tool, arguments).await?.to_text());
        }
    }
    Ok(())
}

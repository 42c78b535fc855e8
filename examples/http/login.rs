//! A client that logs in with the local browser, requests another scope when a tool needs it, and logs out.
//!
//! `cargo run --example login --features authorization -- URL`. For a server, run
//! `cargo run --example protected_server --features authorization -- serve`, which prints its URL.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;

use oxmcp::{
    Client,
    http::{Endpoint, Login},
};
use oxmcp_examples::AnyError;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let url = env::args().nth(1).ok_or("usage: login URL")?;

    // When the server refuses the first request, it names its authorization server, and the client opens the browser.
    let login = Login::browser().client_name("oxmcp example");
    let endpoint = Endpoint::new(&url).login(login.clone());
    let session = Client::new("login", "1.0.0").connect(endpoint).await?;
    let answer: String = session.call_tool("whoami", json!({})).structured().await?;
    println!("logged in as {answer}");

    // This tool needs another scope, so the client opens the browser again.
    session.call_tool("delete", json!({})).await?;
    for stored in login.credentials().await? {
        println!("granted scopes: {}", stored.scopes);
    }
    session.close().await?;

    login.logout(&url).await?;
    println!("logged out: {}", login.credentials().await?.is_empty());
    Ok(())
}

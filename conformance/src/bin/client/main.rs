//! The client that the official conformance suite starts: `conformance-client URL`. Environment variables select its work:
//!
//! | `MCP_CONFORMANCE_…` | |
//! |---|---|
//! | `SCENARIO` | the name of the scenario |
//! | `PROTOCOL_VERSION` | the revision to speak |
//! | `CONTEXT` | further input of some scenarios, as JSON |
//!
//! It exits with status 0 if everything succeeded.
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

mod login;
mod scenarios;
mod skills;

use std::{env, error::Error, process::ExitCode, time::Duration};

use oxmcp::{Accept, Client, Revision, http::Endpoint, protocol::ElicitFormParams};
use serde_json::{Value, json};
use tokio::time::timeout;

/// The time limit: less than the 30 seconds after which the suite ends the shell, and not this program in it.
const LIMIT: Duration = Duration::from_secs(25);

#[tokio::main]
async fn main() -> ExitCode {
    let failure = match timeout(LIMIT, run()).await {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("scenario timed out after {} s", LIMIT.as_secs()),
    };
    eprintln!("conformance-client: {failure}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("usage: conformance-client URL")?;
    let scenario = variable("SCENARIO")?;
    let revision: Revision = variable("PROTOCOL_VERSION")?.parse()?;
    let context = variable("CONTEXT").map_or(Ok(Value::Null), |context| context.parse())?;

    let client = Client::new("oxmcp-conformance", env!("CARGO_PKG_VERSION"))
        .revisions([revision])
        .on_elicit(agree);
    let mut endpoint = Endpoint::new(&url);
    if scenario.starts_with("auth/") {
        endpoint = endpoint.login(login::of(&scenario, &url, &context).await?);
    }
    let session = client.connect(endpoint).await?;
    scenarios::run(&scenario, &session, &context).await?;
    session.close().await?;
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    let name = format!("MCP_CONFORMANCE_{name}");
    env::var(&name).map_err(|error| format!("{name}: {error}"))
}

/// A user who accepts confirmations, and otherwise submits the form with its defaults.
async fn agree(form: ElicitFormParams) -> Accept<Value> {
    let is_asked = form.requested_schema.properties.get("confirmed").is_some();
    Accept(if is_asked {
        json!({"confirmed": true})
    } else {
        json!({})
    })
}

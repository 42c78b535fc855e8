//! A client for any server that runs as a process: it lists the tools, or calls one.
//!
//! `cargo build --examples`, and then
//! - `cargo run --example client -- target/debug/examples/calculator`
//! - `cargo run --example client -- --call add '{"a": 1, "b": 2}' target/debug/examples/calculator`
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::{env, error::Error, process::ExitCode};

use oxmcp::{Client, ClientSession, Command, transport::Stderr};
use serde_json::Value;

const USAGE: &str = "usage: client [--call TOOL ARGUMENTS] SERVER [ARGS...]";

#[tokio::main]
async fn main() -> ExitCode {
    match run(env::args().skip(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(mut args: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut program = args.next().ok_or(USAGE)?;
    let mut call = None;
    if program == "--call" {
        let tool = args.next().ok_or(USAGE)?;
        let arguments: Value = args.next().ok_or(USAGE)?.parse()?;
        call = Some((tool, arguments));
        program = args.next().ok_or(USAGE)?;
    }

    // The server's log output goes to the terminal. If the server cannot start, or dies, the error says why.
    let command = Command::new(program).args(args).stderr(Stderr::inherit());
    let session = Client::new("example-client", "1.0.0")
        .connect(command)
        .await?;
    match call {
        Some((tool, arguments)) => call_tool(&session, tool, arguments).await?,
        None => list_tools(&session).await?,
    }
    session.close().await?;
    Ok(())
}

async fn list_tools(session: &ClientSession) -> oxmcp::Result<()> {
    for tool in session.tools().all().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
        println!("    {}", tool.input_schema.get());
    }
    Ok(())
}

async fn call_tool(
    session: &ClientSession,
    tool: String,
    arguments: Value,
) -> Result<(), Box<dyn Error>> {
    let result = session.call_tool(tool, arguments).await?;
    println!("{}", result.to_text());
    if result.is_error {
        return Err("the tool failed".into());
    }
    Ok(())
}

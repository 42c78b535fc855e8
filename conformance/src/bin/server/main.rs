//! The server that the official conformance suite is run against: `conformance-server --port N` serves every revision at
//! once at `http://127.0.0.1:N/mcp`.
//!
//! The names of tools, prompts and resources, their texts, and the keys of questions are the suite's.
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

mod asking;
mod forms;
mod offers;
mod schemas;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;

use std::{env, error::Error, process::ExitCode};

use oxmcp::{Server, http::StreamableHttp};

const USAGE: &str = "usage: conformance-server --port PORT";

#[tokio::main]
async fn main() -> ExitCode {
    match run(env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    let [flag, port] = args.as_slice() else {
        return Err(USAGE.into());
    };
    if flag != "--port" {
        return Err(USAGE.into());
    }
    let server = server();
    let endpoint = StreamableHttp::new(move |_request| server.clone());
    endpoint
        .serve(("127.0.0.1", port.parse()?))
        .await?
        .wait()
        .await;
    Ok(())
}

fn server() -> Server {
    let server = Server::new("oxmcp-conformance", env!("CARGO_PKG_VERSION"))
        .instructions("For the conformance suite: nothing here does anything.")
        .logging()
        .subscriptions();
    let groups = [
        tools::offer,
        schemas::offer,
        asking::offer,
        forms::offer,
        offers::offer,
        tasks::offer,
    ];
    groups.iter().fold(server, |server, offer| offer(server))
}

//! The server that the official conformance suite is run against: `conformance-server --port N` serves every revision at
//! once at `http://127.0.0.1:N/mcp`; with `--redis URL` it is one of several nodes, with `--upstream URL` a proxy of another.
//!
//! The names of tools, prompts and resources, their texts, and the keys of questions are defined by the suite.
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

mod asking;
mod forms;
mod offers;
mod schemas;
mod skills;
mod tasks;
#[cfg(test)]
mod tests;
mod tools;

use std::{env, error::Error, process::ExitCode};

use oxmcp::{
    Client, Server,
    http::{Endpoint, StreamableHttp},
    keys::StateKey,
};
use oxmcp_group::{ProxyServer, Upstream};
use oxmcp_redis::Redis;

const USAGE: &str = "usage: conformance-server --port PORT [--redis URL | --upstream URL]";

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
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let (port, redis, upstream) = match args[..] {
        ["--port", port] => (port, None, None),
        ["--port", port, "--redis", url] => (port, Some(url), None),
        ["--port", port, "--upstream", url] => (port, None, Some(url)),
        _ => return Err(USAGE.into()),
    };
    let server = match upstream {
        Some(url) => proxy(url.to_owned()).await?,
        None => server(),
    };
    let endpoint = StreamableHttp::from(server);
    let endpoint = match redis {
        Some(url) => {
            // A fixed key suffices, because nothing here is secret.
            let keys = [StateKey::new([1; StateKey::LENGTH])];
            endpoint.cluster(Redis::connect(url).await?.keys(keys))
        }
        None => endpoint,
    };
    endpoint
        .serve(("127.0.0.1", port.parse()?))
        .await?
        .wait()
        .await;
    Ok(())
}

async fn proxy(url: String) -> oxmcp::Result<Server> {
    let client = Client::new("oxmcp-conformance-proxy", env!("CARGO_PKG_VERSION"));
    let upstream = Upstream::new(move || Endpoint::new(&url));
    let proxy = ProxyServer::new(client, upstream).start().await?;
    Ok(proxy.server())
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
        skills::offer,
    ];
    groups.iter().fold(server, |server, offer| offer(server))
}

//! `gateway-server stdio|http ADDRESS [rt=multi|current]`: the tools `add` and `stream` of the benchmark, behind a gateway in the same
//! process. The measured cost covers the gateway, the server behind it, and the client between them.

use std::process::ExitCode;

use oxmcp::{Client, RequestContext, Result, Server, Tool, http::StreamableHttp, stdio};
use oxmcp_group::ProxyServer;

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Count {
    n: u32,
}

async fn add(Pair { a, b }: Pair) -> String {
    a.saturating_add(b).to_string()
}

async fn stream(cx: RequestContext, Count { n }: Count) -> &'static str {
    for i in 1..=n {
        cx.progress(i).await;
    }
    "done"
}

async fn serve(address: Option<&str>) -> Result<()> {
    let upstream = Server::new("bench", "1.0.0")
        .tool(Tool::new("add", "Add two integers", add))
        .tool(Tool::new("stream", "Report progress n times", stream));
    let client = Client::new("gateway", "1.0.0");
    let gateway = ProxyServer::new(client, upstream).start().await?;
    match address {
        Some(address) => {
            let endpoint = StreamableHttp::from(gateway.server());
            endpoint.serve(address).await?.ended().await;
            Ok(())
        }
        None => gateway.server().run(stdio()).await,
    }
}

#[tokio::main]
async fn run(address: Option<&str>) -> Result<()> {
    serve(address).await
}

#[tokio::main(flavor = "current_thread")]
async fn run_on_one_thread(address: Option<&str>) -> Result<()> {
    serve(address).await
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (address, options) = match args.as_slice() {
        ["stdio", rest @ ..] => (None, rest),
        ["http", address, rest @ ..] => (Some(*address), rest),
        _ => return usage(),
    };
    let outcome = match options {
        [] | ["rt=multi"] => run(address),
        ["rt=current"] => run_on_one_thread(address),
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("gateway-server: {e}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: gateway-server stdio|http ADDRESS [rt=multi|current]");
    ExitCode::FAILURE
}

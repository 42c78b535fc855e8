//! `bench-server stdio [rt=multi|current]`, or `bench-server http ADDRESS [rt=multi|current]`: the tools of the benchmark, written as the documentation has it.

use std::process::ExitCode;

use oxmcp::{RequestContext, Server, Tool, http::StreamableHttp, stdio};

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(serde::Deserialize, oxmcp::JsonSchema)]
struct Count {
    n: u32,
}

async fn add(Pair { a, b }: Pair) -> String {
    a.saturating_add(b).to_string()
}

async fn echo(Echo { text }: Echo) -> String {
    text
}

async fn stream(cx: RequestContext, Count { n }: Count) -> &'static str {
    for i in 1..=n {
        cx.progress(i).await;
    }
    "done"
}

fn server() -> Server {
    let server = Server::new("bench", "1.0.0")
        .tool(Tool::new("add", "Add two integers", add))
        .tool(Tool::new("echo", "Give the text back", echo))
        .tool(Tool::new("stream", "Report progress n times", stream));
    (0..100).fold(server, |server, i| {
        server.tool(Tool::new(format!("dummy_{i:03}"), "Add two integers", add))
    })
}

async fn serve(address: Option<&str>) -> oxmcp::Result<()> {
    match address {
        Some(address) => {
            StreamableHttp::from(server()).serve(address).await?.await;
            Ok(())
        }
        None => server().run(stdio()).await,
    }
}

#[tokio::main]
async fn run(address: Option<&str>) -> oxmcp::Result<()> {
    serve(address).await
}

#[tokio::main(flavor = "current_thread")]
async fn run_on_one_thread(address: Option<&str>) -> oxmcp::Result<()> {
    serve(address).await
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (address, runtime) = match args.as_slice() {
        ["stdio", rest @ ..] => (None, rest),
        ["http", address, rest @ ..] => (Some(*address), rest),
        _ => return usage(),
    };
    let outcome = match runtime {
        [] | ["rt=multi"] => run(address),
        ["rt=current"] => run_on_one_thread(address),
        _ => return usage(),
    };
    if let Err(e) = &outcome {
        eprintln!("bench-server: {e}");
    }
    if outcome.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: bench-server stdio|http ADDRESS [rt=multi|current]");
    ExitCode::FAILURE
}

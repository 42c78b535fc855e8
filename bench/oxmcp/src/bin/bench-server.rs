//! `bench-server stdio|http ADDRESS [rt=multi|current] [tools=plain|more|hidden|COUNT] [auth=none|bearer]`: the tools of the
//! benchmark, written as in the documentation. `more` adds `quote`, `wait` and `update`, `hidden` hides one of the hundred tools
//! that only fill the list, and COUNT replaces their number. `bearer` protects the HTTP endpoint, which then accepts only the
//! driver's JSON Web Token.

use std::process::ExitCode;

use bench_support::{Adder, ISSUER, KEYS, RESOURCE};
use oxmcp::{
    Error, RequestContext, Result, Server, Structured, Tool, ToolError,
    auth::{jose::Jwks, server::TrustedIssuer},
    http::{ProtectedResource, StreamableHttp},
    stdio,
};

bench_support::order_types!(oxmcp::JsonSchema);

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

async fn quote(order: Order) -> Structured<Quote> {
    Structured(order.quote())
}

async fn update(cx: RequestContext) -> Result<&'static str, ToolError> {
    let session = cx
        .server_session()
        .ok_or_else(|| ToolError::new("no session"))?;
    session.server().resource_updated("bench://watched");
    Ok("updated")
}

/// A tool that waits for the result of another task.
fn wait() -> Tool {
    let adder = Adder::start();
    Tool::new(
        "wait",
        "Let another task add two integers",
        move |Pair { a, b }| {
            let adder = adder.clone();
            async move {
                let sum = adder
                    .add(a, b)
                    .await
                    .ok_or_else(|| ToolError::new("the adder has stopped"))?;
                Ok::<_, ToolError>(sum.to_string())
            }
        },
    )
}

/// The tools in addition to `add`, `echo` and `stream`.
#[derive(Clone, Copy)]
enum Tools {
    Plain,
    More,
    Hidden,
    Count(usize),
}

fn server(tools: Tools) -> Server {
    let server = Server::new("bench", "1.0.0")
        .tool(Tool::new("add", "Add two integers", add))
        .tool(Tool::new("echo", "Give the text back", echo))
        .tool(Tool::new("stream", "Report progress n times", stream));
    let server = match tools {
        Tools::More => server
            .tool(Tool::new("quote", "Say what an order costs", quote))
            .tool(wait())
            .tool(Tool::new("update", "Update a resource", update))
            .subscriptions(),
        _ => server,
    };
    let dummies = match tools {
        Tools::Count(count) => count,
        _ => 100,
    };
    (0..dummies).fold(server, |server, i| {
        let dummy = Tool::new(format!("dummy_{i:03}"), "Add two integers", add);
        server.tool(match (tools, i) {
            (Tools::Hidden, 99) => dummy.visible_to(|_| false),
            _ => dummy,
        })
    })
}

/// The endpoint. If it `is_protected`, it accepts only the driver's token.
fn endpoint(tools: Tools, is_protected: bool) -> Result<StreamableHttp> {
    let endpoint = StreamableHttp::from(server(tools));
    if !is_protected {
        return Ok(endpoint);
    }
    let keys = Jwks::parse(KEYS.as_bytes()).map_err(Error::from)?;
    let issuer = TrustedIssuer::new(ISSUER).keys(keys);
    Ok(endpoint.protect(ProtectedResource::new(RESOURCE).issuer(issuer)))
}

async fn serve(address: Option<&str>, tools: Tools, is_protected: bool) -> Result<()> {
    match address {
        Some(address) => {
            endpoint(tools, is_protected)?
                .serve(address)
                .await?
                .ended()
                .await;
            Ok(())
        }
        None => server(tools).run(stdio()).await,
    }
}

#[tokio::main]
async fn run(address: Option<&str>, tools: Tools, is_protected: bool) -> Result<()> {
    serve(address, tools, is_protected).await
}

#[tokio::main(flavor = "current_thread")]
async fn run_on_one_thread(address: Option<&str>, tools: Tools, is_protected: bool) -> Result<()> {
    serve(address, tools, is_protected).await
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (address, options) = match args.as_slice() {
        ["stdio", rest @ ..] => (None, rest),
        ["http", address, rest @ ..] => (Some(*address), rest),
        _ => return usage(),
    };
    let (mut tools, mut is_multi, mut is_protected) = (Tools::Plain, true, false);
    for option in options {
        match option.split_once('=') {
            Some(("rt", runtime @ ("multi" | "current"))) => is_multi = runtime == "multi",
            Some(("auth", auth @ ("none" | "bearer"))) => is_protected = auth == "bearer",
            Some(("tools", "plain")) => tools = Tools::Plain,
            Some(("tools", "more")) => tools = Tools::More,
            Some(("tools", "hidden")) => tools = Tools::Hidden,
            Some(("tools", count)) => match count.parse() {
                Ok(count) => tools = Tools::Count(count),
                Err(_) => return usage(),
            },
            _ => return usage(),
        }
    }
    let outcome = if is_multi {
        run(address, tools, is_protected)
    } else {
        run_on_one_thread(address, tools, is_protected)
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
    eprintln!(
        "usage: bench-server stdio|http ADDRESS [rt=multi|current] [tools=plain|more|hidden|COUNT] [auth=none|bearer]"
    );
    ExitCode::FAILURE
}

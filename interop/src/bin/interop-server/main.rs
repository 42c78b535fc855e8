//! The server for third-party clients: `interop-server` over stdio, `interop-server http ADDRESS` over HTTP, and
//! `interop-server sse ADDRESS` over the HTTP transport of 2024-11-05. `interop-server nodes ADDRESS REDIS` is one of several nodes
//! over HTTP. `interop-server protected ADDRESS URL ISSUER TOKENS` serves clients over HTTP that have tokens of the issuer for
//! the URL; see `protection.rs`. `interop-server skills` has only skills, over stdio; `interop-server proxy` is a proxy of itself
//! and `interop-server gateway FILE NAME=VALUE...` a gateway of the servers in a configuration file, over stdio.

mod features;
mod gateway;
mod orders;
mod protection;
mod skills;
mod tasks;

use std::{env, io, sync::Arc, thread, time::Duration};

use oxmcp::{
    JsonSchema, Limits, RequestContext, Server, Tool, ToolError,
    http::{LegacySse, ServerHandle, StreamableHttp},
    keys::StateKey,
    stdio,
};
use oxmcp_redis::Redis;
use serde::Deserialize;
use tokio::{
    select,
    sync::{Notify, oneshot},
    time::sleep,
};

/// The drain of a node: idle connections of a proxy last as long, and calls of the tests are much shorter.
const DRAIN: Duration = Duration::from_secs(4);

/// The key with which all nodes seal state.
const KEY: [u8; StateKey::LENGTH] = [7; StateKey::LENGTH];

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn add(Pair { a, b }: Pair) -> f64 {
    a + b
}

async fn divide(Pair { a, b }: Pair) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("b must not be 0"));
    }
    Ok(a / b)
}

async fn echo(Text { text }: Text) -> String {
    text
}

/// A handler that ignores cancellation: the SDK stops it anyway.
async fn slow(cx: RequestContext, Steps { steps }: Steps) -> String {
    for step in 1..=steps {
        cx.progress(f64::from(step)).total(f64::from(steps)).await;
        sleep(Duration::from_millis(20)).await;
    }
    "done".to_owned()
}

/// Reports that it has begun, and then waits for the tool `go`. A client that does not receive the report in time waits forever.
async fn wait(cx: RequestContext, go: Arc<Notify>) -> &'static str {
    cx.progress(1.0).total(2.0).await;
    go.notified().await;
    "waited"
}

async fn panic(Nothing {}: Nothing) -> String {
    panic!("a tool that panics on purpose")
}

#[expect(clippy::print_stdout, reason = "the session must survive it")]
async fn print(Nothing {}: Nothing) -> &'static str {
    println!("a line that is not a message");
    "printed"
}

async fn grow(server: Server) -> Result<&'static str, oxmcp::Error> {
    server.add_tools([Tool::new("grown", "Say that it is there", || async {
        "here"
    })])?;
    Ok("grown")
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    oxmcp_interop::install()?;
    let server = Server::new("interop-server", "1.0.0")
        .tool(Tool::new("add", "Add two numbers", add))
        .tool(Tool::new("divide", "Divide a by b", divide))
        .tool(Tool::new("echo", "Say it again", echo))
        .tool(Tool::new("slow", "Take 20 ms for each step", slow))
        .tool(Tool::new("panic", "Panic", panic))
        .tool(Tool::new("print", "Print a line to standard output", print))
        .tool(Tool::new(
            "trace",
            "Say which trace the call belongs to",
            || async { oxmcp_interop::current_id() },
        ));
    let growing = server.clone();
    server.add_tools([Tool::new("grow", "Add a tool", move || {
        grow(growing.clone())
    })])?;
    let server = tasks::offer(waiting(features::offer(server)?)?);
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let serving = match args.as_slice() {
        [] => return server.run(stdio()).await,
        ["proxy"] => return gateway::proxy(server).await?.run(stdio()).await,
        ["gateway", file, variables @ ..] => {
            let server = gateway::gateway(file, variables).await?;
            return server.run(stdio()).await;
        }
        ["skills"] => return skills::server().run(stdio()).await,
        ["http", address] => StreamableHttp::from(server).serve(address).await?,
        ["nodes", address, redis] => {
            let store = Redis::connect(redis).await?.keys([StateKey::new(KEY)]);
            StreamableHttp::from(orders::offer(server)?)
                .limits(Limits::default().drain(DRAIN))
                .cluster(store)
                .serve(address)
                .await?
        }
        ["protected", address, url, issuer, tokens] => {
            let resource = protection::resource(url, issuer, tokens)?;
            server.add_tools([protection::tool()])?;
            StreamableHttp::from(server)
                .protect(resource)
                .serve(address)
                .await?
        }
        ["sse", address] => LegacySse::from(server).serve(address).await?,
        _ => {
            return Err(oxmcp::Error::internal(
                "usage: interop-server [skills | proxy | gateway FILE NAME=VALUE... | http|sse ADDRESS | nodes ADDRESS REDIS | protected ADDRESS URL ISSUER TOKENS]",
            ));
        }
    };
    until_the_end(serving).await;
    Ok(())
}

fn waiting(server: Server) -> oxmcp::Result<Server> {
    let go = Arc::new(Notify::new());
    let waiting = Arc::clone(&go);
    server.add_tools([
        Tool::new(
            "wait",
            "Wait for the tool `go`",
            move |cx: RequestContext| wait(cx, Arc::clone(&waiting)),
        ),
        Tool::new("go", "Let the tool `wait` continue", move || {
            go.notify_one();
            async { "gone" }
        }),
    ])?;
    Ok(server)
}

/// Serves until standard input ends, or SIGTERM arrives.
async fn until_the_end(serving: ServerHandle) {
    let (end, ended) = oneshot::channel();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        end.send(())
    });
    select! {
        _ = ended => {}
        () = terminated() => {}
    }
    serving.close().await;
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};

    match signal(SignalKind::terminate()) {
        Ok(mut term) => drop(term.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

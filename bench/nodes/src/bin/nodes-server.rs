//! `nodes-server http ADDRESS [store=memory|redis] [rt=multi|current]`: a node with the tools `add`, `stream` and `update` of the
//! benchmark. Its sessions are in its memory, or in the Redis at the URL in `BENCH_REDIS`.

use std::{env, process::ExitCode, sync::Arc};

use oxmcp::{
    Error, Limits, RequestContext, Result, Server, Tool, ToolError,
    http::StreamableHttp,
    keys::StateKey,
    store::{MemoryBus, MemoryEventStore, MemorySessionStore},
};
use oxmcp_redis::Redis;

/// The maximum number of sessions: as many as a process has file descriptors for.
const MANY: usize = 20_000;

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

async fn update(cx: RequestContext) -> Result<&'static str, ToolError> {
    let session = cx
        .server_session()
        .ok_or_else(|| ToolError::new("no session"))?;
    session.server().resource_updated("bench://watched");
    Ok("updated")
}

/// The endpoint. If it `is_shared`, it shares its stores with other nodes.
async fn endpoint(is_shared: bool) -> Result<StreamableHttp> {
    let server = Server::new("bench", "1.0.0")
        .tool(Tool::new("add", "Add two integers", add))
        .tool(Tool::new("stream", "Report progress n times", stream))
        .tool(Tool::new("update", "Update a resource", update))
        .subscriptions();
    let limits = Limits::default().http(|http| {
        let http = http.max_connections(MANY).max_streams(MANY);
        http.max_sessions(MANY)
    });
    let endpoint = StreamableHttp::from(server).limits(limits);
    if !is_shared {
        let sessions = MemorySessionStore::new().max_sessions(MANY);
        let endpoint = endpoint.session_store(Arc::new(sessions));
        let endpoint = endpoint.event_store(Arc::new(MemoryEventStore::new()));
        return Ok(endpoint.bus(Arc::new(MemoryBus::new())));
    }
    let url = env::var("BENCH_REDIS")
        .map_err(|_| Error::invalid_params("missing the address of Redis in BENCH_REDIS"))?;
    let key = StateKey::new([7; StateKey::LENGTH]);
    Ok(endpoint.cluster(Redis::connect(url).await?.keys([key])))
}

async fn serve(address: &str, is_shared: bool) -> Result<()> {
    endpoint(is_shared)
        .await?
        .serve(address)
        .await?
        .ended()
        .await;
    Ok(())
}

#[tokio::main]
async fn run(address: &str, is_shared: bool) -> Result<()> {
    serve(address, is_shared).await
}

#[tokio::main(flavor = "current_thread")]
async fn run_on_one_thread(address: &str, is_shared: bool) -> Result<()> {
    serve(address, is_shared).await
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ["http", address, options @ ..] = args.as_slice() else {
        return usage();
    };
    let (mut is_shared, mut is_multi) = (false, true);
    for option in options {
        match option.split_once('=') {
            Some(("store", store @ ("memory" | "redis"))) => is_shared = store == "redis",
            Some(("rt", runtime @ ("multi" | "current"))) => is_multi = runtime == "multi",
            _ => return usage(),
        }
    }
    let outcome = if is_multi {
        run(address, is_shared)
    } else {
        run_on_one_thread(address, is_shared)
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("nodes-server: {e}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: nodes-server http ADDRESS [store=memory|redis] [rt=multi|current]");
    ExitCode::FAILURE
}

//! `nodes-stored SESSIONS`: the memory of sessions and streams in the Redis at the URL in `BENCH_REDIS`, as one line of JSON. It
//! writes that many records, a tenth as many streams, and a stream of many events, and then calls a node in 200 of the sessions.

use std::{
    env,
    error::Error,
    io::{Read, Write},
    net::TcpStream,
    process::ExitCode,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use oxmcp::{
    Limits, Principal, Revision, Server, Tool,
    http::StreamableHttp,
    keys::StateKey,
    store::{CreateOutcome, EventStore, SessionChange, SessionRecord, SessionStore, StreamWrite},
};
use oxmcp_redis::Redis;
use tower_service::Service;

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The number of records that are written at once.
const AT_ONCE: usize = 128;
/// The number of sessions that are used at a node.
const OPENED: usize = 200;
/// The number of events in a long stream.
const EVENTS: usize = 4000;
/// The lifetime of the records: long enough that none expires during the measurement.
const LASTS: Duration = Duration::from_secs(3600);

/// The `initialize` parameters of a typical client.
const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"an-editor","title":"An editor","version":"1.104.2","websiteUrl":"https://editor.example.com"}}"#;

/// A progress notification, as it is stored.
const EVENT: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"4f5e8f0a-7d0b-4a4e-8a39-64a7f1a0a0a5","progress":120,"total":400,"message":"Reading the report of the third quarter, page 120 of 400"}}"#;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("nodes-stored: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<String> {
    let sessions: usize = env::args()
        .nth(1)
        .ok_or("missing the number of sessions")?
        .parse()?;
    let url = env::var("BENCH_REDIS")?;
    let store = Redis::connect(&url).await?;
    let store = store
        .prefix("bench")
        .keys([StateKey::new([7; StateKey::LENGTH])]);
    let store = &store.max_sessions(sessions);
    let mut memory = Memory::of(&url)?;
    all(sessions, |number| create(store, number)).await?;
    let bytes_per_session = memory.grown_by(sessions)?;
    let streams = sessions.div_ceil(10);
    let append = |session: usize, stream: &'static str| async move {
        let write = StreamWrite::new(Bytes::from_static(EVENT.as_bytes()));
        let added = store.append(&id(session), stream, write).await?;
        added
            .map(drop)
            .ok_or_else(|| "the store kept no event".into())
    };
    all(streams, |number| append(number, "0123456789abcdef")).await?;
    let bytes_per_stream = memory.grown_by(streams)?;
    for _ in 0..EVENTS {
        append(0, "long").await?;
    }
    let bytes_per_event = memory.grown_by(EVENTS)?;
    let opened = OPENED.min(sessions);
    let node = node(store.clone());
    for number in 0..opened {
        call(&node, number * (sessions / opened)).await?;
    }
    Ok(format!(
        r#"{{"sessions":{sessions},"opened":{opened},"bytes_per_session":{bytes_per_session},"bytes_per_stream":{bytes_per_stream},"bytes_per_event":{bytes_per_event}}}"#
    ))
}

/// Runs `each` for all numbers below `count`.
async fn all<F: Future<Output = Result<()>>>(
    count: usize,
    each: impl Fn(usize) -> F,
) -> Result<()> {
    let each = stream::iter(0..count).map(each);
    each.buffer_unordered(AT_ONCE).try_collect().await
}

fn id(number: usize) -> String {
    format!("{number:032x}")
}

/// The principal of a session; ten sessions have the same.
fn principal(number: usize) -> String {
    format!("https://login.example.com|{:08}", number / 10)
}

async fn create(store: &Redis, number: usize) -> Result<()> {
    let params = serde_json::from_str(INITIALIZE)?;
    let mut record = SessionRecord::new(params, Revision::V2025_11_25);
    record.principal = Some(principal(number));
    let created = store.create(&id(number), record, LASTS, 10).await?;
    if created != CreateOutcome::Created {
        return Err(format!("cannot create session {number}: {created:?}").into());
    }
    store.set(&id(number), SessionChange::Initialized).await?;
    Ok(())
}

fn node(store: Redis) -> StreamableHttp {
    let tool = Tool::new("which", "Say who this is", || async { "the node" });
    let server = Server::new("bench", "1.0.0").tool(tool);
    let limits = Limits::default().http(|http| http.max_sessions(OPENED));
    StreamableHttp::from(server).cluster(store).limits(limits)
}

/// Calls a tool in a session.
async fn call(node: &StreamableHttp, number: usize) -> Result<()> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"which","arguments":{}}}"#;
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-11-25")
        .header("mcp-session-id", id(number))
        .extension(Principal::new(principal(number)))
        .body(Full::new(Bytes::from_static(body.as_bytes())))?;
    let response = node.clone().call(request).await?;
    let status = response.status();
    let answer = response.into_body().collect().await?.to_bytes();
    let answer = String::from_utf8_lossy(&answer);
    if status != StatusCode::OK || !answer.contains("the node") {
        return Err(format!("session {number} got status {status}: {answer}").into());
    }
    Ok(())
}

/// The memory that Redis uses.
struct Memory {
    connection: TcpStream,
    last: f64,
}

impl Memory {
    fn of(url: &str) -> Result<Self> {
        let address = url
            .strip_prefix("redis://")
            .ok_or("missing the address of Redis in BENCH_REDIS")?;
        let connection = TcpStream::connect(address)?;
        let mut memory = Self {
            connection,
            last: 0.0,
        };
        memory.last = memory.used()?;
        Ok(memory)
    }

    fn used(&mut self) -> Result<f64> {
        self.connection.write_all(b"INFO memory\r\n")?;
        let mut said = Vec::new();
        let mut chunk = [0; 4096];
        // Well before the end of the reply.
        while !said.ends_with(b"\r\n") || said.len() < 500 {
            let read = self.connection.read(&mut chunk)?;
            said.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
        let said = String::from_utf8_lossy(&said).into_owned();
        let mut lines = said.lines();
        let used = lines.find_map(|line| line.strip_prefix("used_memory:"));
        Ok(used
            .ok_or("no memory usage in the reply of Redis")?
            .parse()?)
    }

    /// The growth in bytes since the last call, divided by `count`.
    fn grown_by(&mut self, count: usize) -> Result<f64> {
        let before = std::mem::replace(&mut self.last, 0.0);
        self.last = self.used()?;
        Ok(((self.last - before) / count as f64).round())
    }
}

//! Tests of clients that do not read their responses, over HTTP/2 and HTTP/1, and of bodies that never end: their memory is
//! bounded, and freed in the end.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{future::join_all, stream};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::mpsc,
    task::JoinHandle,
    time::{Duration, Instant, sleep, timeout},
};
use tower::ServiceExt;

use super::script::{Recorded, Script};
use crate::{
    http::{
        ResponseBody, StreamableHttp,
        server::serve::{ServerHandle, accept::run},
    },
    limits::Limits,
    server::{Server, Tool},
    session::connection::RequestContext,
};

type Body = BoxBody<Bytes, Infallible>;

const MIB: usize = 1 << 20;

/// Counts the running calls.
#[derive(Clone, Default)]
struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An endpoint under test, and its connections.
struct Tested {
    endpoint: StreamableHttp,
    running: Arc<AtomicUsize>,
    accepted: mpsc::Sender<std::io::Result<Recorded>>,
    _serving: ServerHandle,
}

fn tested(max_http_bytes: usize) -> Tested {
    let running = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&running);
    let big = Tool::new("big", "Says much", || async { "x".repeat(MIB) });
    let chat = Tool::new("chat", "Never stops", move |cx: RequestContext| {
        count.fetch_add(1, Ordering::SeqCst);
        let running = Running(Arc::clone(&count));
        async move {
            let _running = running;
            for step in 0.. {
                cx.progress(step).message("x".repeat(1000)).await;
                sleep(Duration::from_millis(20)).await;
            }
        }
    });
    let limits = Limits::default()
        .max_unsent_bytes(100_000)
        .http(|http| http.max_bytes(max_http_bytes));
    let steps = Tool::new(
        "steps",
        "Reports, and is done",
        |cx: RequestContext| async move {
            for step in 0..20 {
                cx.progress(step).message("x".repeat(1000)).await;
            }
        },
    );
    let server = Server::new("s", "1")
        .tool(big)
        .tool(chat)
        .tool(steps)
        .limits(limits.clone());
    let endpoint = StreamableHttp::from(server).limits(limits.clone());
    let (accepted, script) = mpsc::channel(16);
    let script = Script::new(script);
    let (serving, signal) = ServerHandle::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    tokio::spawn(run(script, endpoint.clone(), limits, signal, |_| async {}));
    Tested {
        endpoint,
        running,
        accepted,
        _serving: serving,
    }
}

impl Tested {
    async fn pipe(&self) -> DuplexStream {
        let (near, far) = duplex(1 << 16);
        self.accepted.send(Ok(Recorded::new(far))).await.unwrap();
        near
    }

    /// An HTTP/2 client that reads `window` bytes of each response. Its connection answers pings.
    async fn connect(&self, window: u32) -> (SendRequest<Body>, JoinHandle<()>) {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let io = TokioIo::new(self.pipe().await);
        let (sender, connection) = builder.handshake(io).await.unwrap();
        let driven = tokio::spawn(async move {
            let _ = connection.await;
        });
        (sender, driven)
    }

    fn used(&self) -> usize {
        self.endpoint.state.budget.used()
    }

    /// Waits until no byte is held and no call runs. Returns the time that this took.
    async fn until_free(&self) -> Duration {
        let start = Instant::now();
        while self.used() > 0 || self.running.load(Ordering::SeqCst) > 0 {
            assert!(
                start.elapsed() < Duration::from_secs(1000),
                "{} bytes",
                self.used()
            );
            sleep(Duration::from_secs(1)).await;
        }
        start.elapsed()
    }
}

fn call(tool: &str, id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool, "arguments": {}, "_meta": {
            "progressToken": id,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

fn request(tool: &str, body: Body) -> Request<Body> {
    let request = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    request.body(body).unwrap()
}

fn whole(tool: &str, id: usize) -> Request<Body> {
    request(
        tool,
        Full::new(Bytes::from(call(tool, id).to_string())).boxed(),
    )
}

fn with_status(responses: &[Response<Incoming>], status: StatusCode) -> usize {
    responses.iter().filter(|it| it.status() == status).count()
}

#[tokio::test(start_paused = true)]
async fn unread_answers_stay_within_budget_and_are_dropped() {
    let it = tested(8 * MIB);
    let (sender, connection) = it.connect(0).await;
    let mut responses = Vec::new();
    for id in 0..20 {
        let response = sender.clone().send_request(whole("big", id)).await.unwrap();
        responses.push(response);
        assert!(it.used() <= 8 * MIB, "{} bytes", it.used());
    }
    let served = with_status(&responses, StatusCode::OK);
    assert!((6..=7).contains(&served), "{served} are answered");
    let dropped = with_status(&responses, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(served + dropped, 20);
    let waited = it.until_free().await.as_secs();
    assert!((119..=160).contains(&waited), "{waited} s");
    // The connection ends, though it answers pings.
    timeout(Duration::from_secs(60), connection)
        .await
        .unwrap()
        .unwrap();
    let (sender, _connection) = it.connect(1 << 21).await;
    let response = sender.clone().send_request(whole("big", 1)).await.unwrap();
    assert!(response.collect().await.unwrap().to_bytes().len() > MIB);
    assert_eq!(it.until_free().await.as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn handlers_with_unread_messages_are_cancelled() {
    for window in [0, 4000] {
        let it = tested(64 * MIB);
        let (sender, connection) = it.connect(window).await;
        let calls = (0..20).map(|id| sender.clone().send_request(whole("chat", id)));
        let responses = join_all(calls).await;
        assert_eq!(it.running.load(Ordering::SeqCst), 20);
        sleep(Duration::from_secs(100)).await;
        assert_eq!(it.running.load(Ordering::SeqCst), 20);
        let waited = it.until_free().await.as_secs();
        assert!((15..=60).contains(&waited), "{waited} s");
        timeout(Duration::from_secs(60), connection)
            .await
            .unwrap()
            .unwrap();
        drop(responses);
    }
}

/// A client that reads a little from time to time is only slow.
#[tokio::test(start_paused = true)]
async fn slowly_reading_client_is_awaited() {
    let it = tested(64 * MIB);
    let (sender, _connection) = it.connect(40_000).await;
    let response = sender.clone().send_request(whole("chat", 1)).await.unwrap();
    let mut body = response.into_body();
    for _ in 0..20 {
        sleep(Duration::from_secs(100)).await;
        let mut taken = 0;
        while taken < 40_000 {
            taken += body
                .frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap()
                .len();
        }
    }
    assert_eq!(it.running.load(Ordering::SeqCst), 1);
    drop(body);
    it.until_free().await;
}

#[tokio::test(start_paused = true)]
async fn endless_bodies_stay_within_the_budget() {
    let it = tested(8 * MIB);
    let (sender, _connection) = it.connect(1 << 20).await;
    let start = Instant::now();
    let endless = |_| {
        let begun = stream::iter([Ok(Frame::data(Bytes::from(vec![b' '; MIB])))]);
        let body = StreamBody::new(stream::StreamExt::chain(begun, stream::pending()));
        let answer = sender
            .clone()
            .send_request(request("big", BodyExt::boxed(body)));
        tokio::spawn(answer)
    };
    let mut peak = 0;
    let mut answers: Vec<_> = (0..20).map(endless).collect();
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        peak = peak.max(it.used());
    }
    assert!((7 * MIB..=9 * MIB).contains(&peak), "{peak} bytes");
    let mut refused = 0;
    for answer in answers.drain(..) {
        let response = answer.await.unwrap().unwrap();
        refused += usize::from(response.status() == StatusCode::SERVICE_UNAVAILABLE);
    }
    assert!((12..=13).contains(&refused), "{refused} are refused");
    assert!(start.elapsed() <= Duration::from_secs(61));
    it.until_free().await;
}

/// The response that a framework holds without polling its body.
async fn unpolled(it: &Tested, version: Version, tool: &str) -> Response<ResponseBody> {
    let (mut parts, body) = whole(tool, 1).into_parts();
    parts.version = version;
    let request = Request::from_parts(parts, body);
    it.endpoint.clone().oneshot(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn answer_not_polled_by_framework_is_dropped() {
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for tool in ["big", "chat"] {
            let it = tested(64 * MIB);
            let mut response = unpolled(&it, version, tool).await;
            sleep(Duration::from_secs(100)).await;
            assert!(it.used() > 0);
            let waited = it.until_free().await.as_secs();
            assert!((15..=60).contains(&waited), "{waited} s");
            assert!(response.body_mut().frame().await.is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frame_is_short_and_remaining_bytes_count() {
    let it = tested(64 * MIB);
    let mut response = unpolled(&it, Version::HTTP_2, "big").await;
    let mut length = 0;
    while let Some(frame) = response.body_mut().frame().await {
        assert!(it.used() >= MIB);
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= 32 << 10);
        length += data.len();
    }
    assert!(length > MIB);
    assert_eq!(it.used(), 0);
}

/// Sends a message without reading.
async fn post(it: &Tested, session: Option<&str>, message: &Value) -> Response<ResponseBody> {
    let mut request = Request::post("/mcp")
        .version(Version::HTTP_2)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(id) = session {
        request = request.header("mcp-session-id", id);
    }
    let request = request.body(Full::new(Bytes::from(message.to_string())));
    it.endpoint.clone().oneshot(request.unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn unread_session_streams_are_dropped() {
    let it = tested(64 * MIB);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let opened = post(&it, None, &open).await;
    let id = opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let opened = opened.into_body().collect().await.unwrap();
    drop(opened);
    let get = Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &id);
    let get = get.body(Full::<Bytes>::default()).unwrap();
    let standing = it.endpoint.clone().oneshot(get).await.unwrap();
    // Only comments are sent.
    sleep(Duration::from_secs(30)).await;
    let client = it.used();
    assert!(client > 0);
    let steps = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "chat", "arguments": {}, "_meta": {"progressToken": 1},
    }});
    let answer = post(&it, Some(&id), &steps).await;
    sleep(Duration::from_secs(1)).await;
    assert!(it.used() > client + 10_000, "{}", it.used());
    sleep(Duration::from_secs(400)).await;
    // The rest of a stream that has ended is dropped as well.
    let steps = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "steps", "arguments": {}, "_meta": {"progressToken": 2},
    }});
    let ended = post(&it, Some(&id), &steps).await;
    sleep(Duration::from_secs(1)).await;
    assert!(it.used() > client + 10_000, "{}", it.used());
    sleep(Duration::from_secs(200)).await;
    drop(ended);
    // The call continues, and its messages are stored.
    assert!(it.used() < client + 10_000, "{}", it.used());
    assert_eq!(it.running.load(Ordering::SeqCst), 1);
    drop((standing, answer));
    it.endpoint.close().await;
    it.until_free().await;
}

/// The request is sent as raw bytes.
#[tokio::test(start_paused = true)]
async fn stalled_http1_client_is_dropped_and_memory_freed() {
    let it = tested(64 * MIB);
    let mut pipe = it.pipe().await;
    let body = call("big", 1).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: big\r\ncontent-length: {}\r\n\r\n{body}",
        body.len(),
    );
    pipe.write_all(head.as_bytes()).await.unwrap();
    sleep(Duration::from_secs(100)).await;
    assert!(it.used() >= MIB);
    let waited = it.until_free().await.as_secs();
    assert!((19..=60).contains(&waited), "{waited} s");
    let mut rest = Vec::new();
    pipe.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() < MIB);
}

//! Tests of the streams of sessions: slow readers, resumption, lost events, and the end of streams.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use super::settings::{builder, request, send};
use crate::{
    error::{Error, Result},
    http::{
        ResponseBody, StreamableHttp,
        server::event_encoding::{COMMENT, KEEP_ALIVE},
    },
    limits::Limits,
    server::{Resource, Server, Tool},
    session::connection::RequestContext,
    store::{ClaimMode, EventId, EventStore, MemoryEventStore, Replay, StreamWrite},
};

/// The length of a notification that takes several frames.
const LONG: usize = 300 << 10;
const SECOND: Duration = Duration::from_secs(1);

/// A session that watches a resource whose URI is long.
struct Watching {
    server: Server,
    endpoint: StreamableHttp,
    id: String,
    uri: String,
}

impl Watching {
    async fn open(store: impl EventStore) -> Self {
        Self::open_in("2025-11-25", store).await
    }

    async fn open_in(revision: &str, store: impl EventStore) -> Self {
        let steps = Tool::new("steps", "Report", |cx: RequestContext| async move {
            for step in 0..3 {
                cx.progress(step).await;
            }
        });
        let file = Resource::text("file:///a", "a", "");
        let server = Server::new("files", "1").resource(file).tool(steps);
        let server = server.subscriptions();
        let limits = Limits::default().http(|http| http.stall(SECOND * 30));
        let endpoint = StreamableHttp::from(server.clone()).limits(limits);
        let endpoint = endpoint.event_store(store);
        let params = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        });
        let initialize = request(1, "initialize", &params);
        let opened = send(&endpoint, builder("POST"), &initialize).await;
        let id = opened.headers()["mcp-session-id"].to_str().unwrap();
        let uri = format!("file:///{}", "x".repeat(LONG));
        let watching = Self {
            id: id.to_owned(),
            server,
            endpoint,
            uri,
        };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        watching.post(&initialized).await;
        let params = json!({"uri": watching.uri});
        let subscribe = request(2, "resources/subscribe", &params);
        let subscribed = watching.post(&subscribe).await;
        assert_eq!(subscribed.status(), StatusCode::OK);
        watching
    }

    async fn post(&self, message: &Value) -> Response<ResponseBody> {
        let builder = builder("POST").header("mcp-session-id", &self.id);
        send(&self.endpoint, builder, message).await
    }

    /// The stream of the session, from after the event `seen`.
    async fn listen(&self, seen: Option<&str>) -> ResponseBody {
        let builder = builder("GET").header("mcp-session-id", &self.id);
        let seen = seen.into_iter();
        let builder = seen.fold(builder, |it, seen| it.header("last-event-id", seen));
        let response = send(&self.endpoint, builder, &json!(null)).await;
        assert_eq!(response.status(), StatusCode::OK);
        response.into_body()
    }

    /// The number of bytes that the endpoint holds.
    fn held(&self) -> usize {
        self.endpoint.state.budget.used()
    }

    /// The stream of a call that reports its progress.
    async fn call(&self) -> ResponseBody {
        let params = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": 1}});
        self.post(&request(3, "tools/call", &params))
            .await
            .into_body()
    }

    /// Sends the long notification.
    async fn update(&self) {
        self.server.resource_updated(&self.uri);
        sleep(SECOND).await;
    }
}

async fn frame(body: &mut ResponseBody) -> Option<Bytes> {
    let frame = body.frame().await?;
    Some(frame.unwrap().into_data().unwrap())
}

/// Reads the long notification. Returns its ID.
async fn read_long(body: &mut ResponseBody) -> String {
    let first = frame(body).await.unwrap();
    let mut read = first.len();
    while read < LONG {
        read += frame(body).await.unwrap().len();
    }
    id_in(&first)
}

/// The ID of the event in a frame.
fn id_in(frame: &Bytes) -> String {
    let text = str::from_utf8(frame).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("id: "));
    id.unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn silent_stream_sends_comments() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut body = watching.listen(None).await;
    frame(&mut body).await.unwrap();
    let comment = tokio::time::timeout(KEEP_ALIVE * 2, frame(&mut body)).await;
    assert_eq!(comment.unwrap().unwrap(), COMMENT);
}

#[tokio::test(start_paused = true)]
async fn available_events_arrive_with_the_stream_head() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut called = watching.call().await;
    assert!(called.frame().now_or_never().is_some());
    let mut listening = watching.listen(None).await;
    assert!(listening.frame().now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn stalled_reader_is_dropped_only_after_several_intervals() {
    for (waits, is_there) in [(50, true), (100, false)] {
        let watching = Watching::open(MemoryEventStore::new()).await;
        let mut body = watching.listen(None).await;
        frame(&mut body).await.unwrap();
        watching.update().await;
        sleep(Duration::from_secs(waits)).await;
        assert_eq!(frame(&mut body).await.is_some(), is_there, "{waits}");
    }
}

#[tokio::test(start_paused = true)]
async fn reader_progressing_each_interval_is_not_dropped() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut body = watching.listen(None).await;
    frame(&mut body).await.unwrap();
    watching.update().await;
    let mut read = 0;
    while read < LONG {
        sleep(KEEP_ALIVE - SECOND).await;
        read += frame(&mut body).await.expect("it is slow").len();
    }
}

#[tokio::test(start_paused = true)]
async fn stall_intervals_are_not_inherited_by_next_reader() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut first = watching.listen(None).await;
    let seen = id_in(&frame(&mut first).await.unwrap());
    watching.update().await;
    let _silent = watching.listen(Some(&seen)).await;
    sleep(KEEP_ALIVE * 2 + SECOND * 5).await;
    let mut next = watching.listen(Some(&seen)).await;
    sleep(KEEP_ALIVE + SECOND * 5).await;
    assert!(frame(&mut next).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn unread_events_are_freed_soon_after_session() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut body = watching.listen(None).await;
    frame(&mut body).await.unwrap();
    // More notifications than fit for a reader: the stream waits for it.
    for _ in 0..6 {
        watching.update().await;
    }
    assert!(watching.held() > LONG);
    let end = builder("DELETE").header("mcp-session-id", &watching.id);
    send(&watching.endpoint, end, &json!(null)).await;
    sleep(SECOND * 3).await;
    assert_eq!(watching.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_start_is_visible_at_once() {
    // This revision has no events without data.
    let watching = Watching::open_in("2025-06-18", MemoryEventStore::new()).await;
    let mut body = watching.listen(None).await;
    let begun = tokio::time::timeout(SECOND, frame(&mut body)).await;
    assert_eq!(begun.unwrap().unwrap(), COMMENT);
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_continues_with_missed_events() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let watching = Watching::open_in(revision, MemoryEventStore::new()).await;
        let mut body = watching.listen(None).await;
        frame(&mut body).await.unwrap();
        watching.update().await;
        let seen = read_long(&mut body).await;
        for is_stored in [false, true] {
            if is_stored {
                watching.update().await;
            }
            drop(body);
            sleep(SECOND).await;
            if !is_stored {
                watching.update().await;
            }
            body = watching.listen(Some(&seen)).await;
            let next = tokio::time::timeout(SECOND, frame(&mut body)).await;
            let next = next.unwrap().unwrap();
            let text = str::from_utf8(&next).unwrap();
            assert!(
                text.contains("resources/updated"),
                "{revision}: {text:.200}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_have_no_ids_after_store_loss() {
    for kept in [0, 1] {
        let store = Arc::new(MemoryEventStore::new());
        let watching = Watching::open(Arc::clone(&store)).await;
        let mut body = watching.listen(None).await;
        id_in(&frame(&mut body).await.unwrap());
        for _ in 0..kept {
            watching.update().await;
            read_long(&mut body).await;
        }
        store.forget(&watching.id).await.unwrap();
        watching.update().await;
        let next = frame(&mut body).await.unwrap();
        assert!(next.starts_with(b"data: "), "{kept}: {next:.200?}");
    }
}

#[tokio::test(start_paused = true)]
async fn session_with_dropped_reader_is_idle() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let _body = watching.listen(None).await;
    watching.update().await;
    sleep(Limits::default().http.session_idle + SECOND * 600).await;
    let gone = watching.post(&request(3, "ping", &json!({}))).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn final_event_is_not_held_for_stalled_reader() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let before = watching.held();
    let _body = watching.call().await;
    sleep(SECOND).await;
    assert!(watching.held() > before);
    sleep(SECOND * 60).await;
    assert_eq!(watching.held(), before);
}

#[tokio::test(start_paused = true)]
async fn replaced_stalled_reader_is_dropped_too() {
    let watching = Watching::open(MemoryEventStore::new()).await;
    let mut silent = watching.listen(None).await;
    let seen = id_in(&frame(&mut silent).await.unwrap());
    let before = watching.held();
    watching.update().await;
    let mut next = watching.listen(Some(&seen)).await;
    read_long(&mut next).await;
    sleep(SECOND).await;
    assert!(watching.held() > before + LONG / 2);
    sleep(SECOND * 60).await;
    assert!(watching.held() < before + LONG / 2);
}

/// A store that on the second read of a stream reports lost events, or fails.
struct Lossy {
    store: Arc<MemoryEventStore>,
    asked: Arc<AtomicUsize>,
    fails: bool,
    /// The store refuses events with this text. If it is empty, it refuses none.
    refused: &'static str,
}

impl EventStore for Lossy {
    async fn append(
        &self,
        session: &str,
        stream: &str,
        write: StreamWrite,
    ) -> Result<Option<Vec<u64>>> {
        let is_refused = |event: Bytes| str::from_utf8(&event).unwrap().contains(self.refused);
        if !self.refused.is_empty() && write.events.iter().any(is_refused) {
            return Err(Error::limit("that is too much"));
        }
        self.store.append(session, stream, write).await
    }

    async fn after(&self, session: &str, stream: &str, index: u64, max: usize) -> Result<Replay> {
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => self.store.after(session, stream, index, max).await,
            _ if self.fails => Err(Error::internal("it is broken")),
            _ => Ok(Replay::Lost),
        }
    }

    async fn watch(&self, session: &str, stream: &str, index: u64) -> Result<()> {
        self.store.watch(session, stream, index).await
    }

    async fn claim(
        &self,
        session: &str,
        stream: &str,
        claim: ClaimMode,
        lasts: Duration,
    ) -> Result<Option<u64>> {
        self.store.claim(session, stream, claim, lasts).await
    }

    async fn renew(
        &self,
        session: &str,
        stream: &str,
        epoch: u64,
        lasts: Duration,
    ) -> Result<bool> {
        self.store.renew(session, stream, epoch, lasts).await
    }

    async fn forget(&self, session: &str) -> Result<()> {
        self.store.forget(session).await
    }
}

#[tokio::test(start_paused = true)]
async fn reader_receives_nothing_after_a_gap() {
    for fails in [false, true] {
        let asked = Arc::new(AtomicUsize::new(0));
        let watching = Watching::open(Lossy {
            store: Arc::new(MemoryEventStore::new()),
            asked: Arc::clone(&asked),
            fails,
            refused: "",
        });
        let watching = watching.await;
        let mut first = watching.listen(None).await;
        let seen = id_in(&frame(&mut first).await.unwrap());
        watching.update().await;
        let mut again = watching.listen(Some(&seen)).await;
        sleep(SECOND).await;
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        watching.update().await;
        // The stream ends, and the client learns of the gap when it reconnects.
        assert!(frame(&mut again).await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn store_records_the_end_of_a_stream() {
    // Also if the store does not keep the response.
    for refused in ["", r#""result""#] {
        has_ended(refused).await;
    }
}

async fn has_ended(refused: &'static str) {
    let store = Arc::new(MemoryEventStore::new());
    let watching = Watching::open(Lossy {
        store: Arc::clone(&store),
        asked: Arc::default(),
        fails: false,
        refused,
    });
    let watching = watching.await;
    let mut body = watching.call().await;
    let first = id_in(&frame(&mut body).await.unwrap());
    while frame(&mut body).await.is_some() {}
    let first = EventId::parse(&first).unwrap();
    let found = store.after(&watching.id, first.stream(), first.index(), 64);
    let found = found.await.unwrap();
    assert!(
        matches!(found, Replay::Events { ended: true, .. }),
        "{found:?}"
    );
}

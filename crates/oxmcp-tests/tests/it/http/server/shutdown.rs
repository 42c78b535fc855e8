//! Shutdown of sessions, and of an endpoint with all of them.

use std::{
    future::pending,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use futures_util::future::join_all;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use oxmcp::{
    Limits, RequestContext, Result, Server, Tool,
    http::{ResponseBody, StreamableHttp},
    store::{
        CreateOutcome, MemorySessionStore, SessionChange, SessionRecord, SessionStore,
        StoredSession,
    },
};
use serde_json::{Value, json};
use tokio::{
    join, spawn,
    task::{spawn_blocking, yield_now},
    time::sleep,
};

use crate::http::mounts::mounts;
use crate::http::server::{
    legacy::endpoint,
    peer::{Events, LEGACY, Session, builder, call_modern, initialize, json, send},
};
use crate::support::calculator;

/// A wait that exceeds the silence after which the response to a running call becomes a stream.
const LATER: Duration = Duration::from_secs(20);

/// A server with a tool that never returns.
fn stuck() -> Server {
    let tool = Tool::new("stuck", "Wait for ever", || async {
        pending::<()>().await;
    });
    calculator().tool(tool)
}

fn call_stuck() -> Value {
    json!({"name": "stuck", "arguments": {}})
}

#[tokio::test(start_paused = true)]
async fn call_cut_with_its_session_is_answered() {
    for wait in [Duration::from_secs(1), LATER] {
        let session = Session::open(&endpoint(&stuck())).await;
        let ended = async {
            sleep(wait).await;
            session.delete().await
        };
        let called = async {
            let response = session.call(7, "tools/call", call_stuck()).await;
            if wait < LATER {
                return json(response).await;
            }
            let events = Events::of(response).rest().await;
            events.into_iter().last().unwrap().data
        };
        let (answer, ended) = join!(called, ended);
        assert_eq!(ended.status(), StatusCode::NO_CONTENT);
        assert_eq!(answer["id"], 7);
        let error = &answer["error"];
        assert_eq!(error["data"]["reason"], "closing", "{answer}");
    }
}

/// The first poll of the call's handler lasts until the session has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_beginning_while_session_ends_is_answered() {
    let (begins, begun) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let ended = Mutex::new(ended);
    let (begins, ended) = (Arc::new(Mutex::new(begins)), Arc::new(ended));
    let tool = Tool::new("stuck", "Wait to be told", move |cx: RequestContext| {
        let (begins, ended) = (Arc::clone(&begins), Arc::clone(&ended));
        async move {
            begins.lock().unwrap().send(()).unwrap();
            ended.lock().unwrap().recv().unwrap();
            cx.cancelled().await;
        }
    });
    let server = calculator().tool(tool);
    let session = Arc::new(Session::open(&endpoint(&server)).await);
    let caller = Arc::clone(&session);
    let called = spawn(async move { caller.call(7, "tools/call", call_stuck()).await });
    spawn_blocking(move || begun.recv()).await.unwrap().unwrap();
    session.delete().await;
    while server.sessions().count() > 0 {
        yield_now().await;
    }
    end.send(()).unwrap();
    assert_eq!(json(called.await.unwrap()).await["id"], 7);
}

#[tokio::test]
async fn streams_end_with_a_retry_delay() {
    let endpoint = endpoint(&calculator());
    let session = Session::open(&endpoint).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let listening = call_modern(&endpoint, "subscriptions/listen", filter).await;
    let text = async |stream: Response<ResponseBody>| {
        let text = stream.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8_lossy(&text).into_owned()
    };
    let streams = [text(session.get().await), text(listening)];
    let (texts, ()) = join!(join_all(streams), endpoint.close());
    for text in texts {
        assert!(text.ends_with("\n\nretry: 2000\n\n"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn endpoint_may_wait_indefinitely_for_running_requests() {
    let limits = Limits::default().drain(Duration::MAX);
    let endpoint = StreamableHttp::from(calculator().limits(limits.clone())).limits(limits);
    Session::open(&endpoint).await;
    endpoint.close().await;
}

/// A store in which removals never complete.
#[derive(Default)]
struct Slow(MemorySessionStore);

impl SessionStore for Slow {
    async fn create(
        &self,
        id: &str,
        record: SessionRecord,
        lasts: Duration,
        max_per_owner: usize,
    ) -> Result<CreateOutcome> {
        self.0.create(id, record, lasts, max_per_owner).await
    }

    async fn load(&self, id: &str) -> Result<Option<StoredSession>> {
        self.0.load(id).await
    }

    async fn set(&self, id: &str, change: SessionChange) -> Result<Option<u64>> {
        self.0.set(id, change).await
    }

    async fn touch(&self, id: &str, lasts: Duration) -> Result<Option<u64>> {
        self.0.touch(id, lasts).await
    }

    async fn remove(&self, _id: &str) -> Result<()> {
        pending().await
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn session_evictions_are_limited_by_cleanup_time() {
    for mount in mounts!() {
        let server = calculator();
        let limits = Limits::default().http(|http| http.max_sessions(3));
        let endpoint = endpoint(&server).session_store(Slow::default());
        let endpoint = mount.serve(&endpoint.limits(limits)).await;
        let open = initialize(LEGACY, json!({})).to_string();
        let mut refused = 0;
        for _ in 0..100 {
            let response = send(&endpoint, builder("POST"), open.clone()).await;
            if response.status() != StatusCode::OK {
                assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
                refused += 1;
            }
            // As many sessions as are open may also be ending, and each ends only when the wait for the store is over.
            assert!(server.sessions().count() <= 6);
        }
        assert!(refused > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn session_with_open_stream_is_never_idle() {
    let endpoint =
        endpoint(&stuck()).limits(Limits::default().http(|http| http.session_idle(Duration::ZERO)));
    let opened = initialize(LEGACY, json!({})).to_string();
    let response = send(&endpoint, builder("POST"), opened).await;
    let id = response.headers()["mcp-session-id"].to_str().unwrap();
    let session = Session {
        endpoint: endpoint.clone(),
        id: id.to_owned(),
    };
    let response = session.call(7, "tools/call", call_stuck()).await;
    Events::of(response);
    sleep(LATER).await;
    let ping = session.call(8, "ping", json!({})).await;
    assert_eq!(ping.status(), StatusCode::OK);
}

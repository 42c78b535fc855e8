//! Cancellation of calls, in both directions.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp::{Client, Limits, RequestContext, Revision, Server, Tool, testing::ScriptedPeer};
use serde_json::json;
use tokio::{sync::oneshot, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn dropping_the_future_cancels_on_the_wire() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move { session.call_tool("slow", json!({})).await }
    });
    let asked = peer.receive().await.unwrap();
    calling.abort();
    assert!(calling.await.unwrap_err().is_cancelled());
    let cancelled = peer.receive().await.unwrap();
    assert_cancels(&cancelled, &asked);
    // The late answer is ignored.
    peer.send(text_result(asked["id"].clone(), "late"))
        .await
        .unwrap();
    assert_alive(&mut peer).await;
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn token_cancels_and_call_returns_at_once() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let token = CancellationToken::new();
    let calling = tokio::spawn({
        let (session, token) = (session.clone(), token.clone());
        async move {
            session
                .call_tool("slow", json!({}))
                .cancel_with(token)
                .await
        }
    });
    let asked = peer.receive().await.unwrap();
    let start = Instant::now();
    token.cancel();
    let error = calling.await.unwrap().unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_cancels(&peer.receive().await.unwrap(), &asked);
    // The token is already cancelled: if the request was sent, it is cancelled on the wire.
    let error = session
        .call_tool("slow", json!({}))
        .cancel_with(token)
        .await
        .unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn answered_call_is_not_cancelled() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let pinging = tokio::spawn({
        let session = session.clone();
        async move { session.ping().await }
    });
    let asked = peer.receive().await.unwrap();
    peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
        .await
        .unwrap();
    pinging.await.unwrap().unwrap();
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn initialize_is_never_cancelled() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("test", "1.0.0")
        .revisions([Revision::V2025_11_25])
        .timeout(Duration::from_secs(1));
    let error = client.connect(transport).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(peer.receive().await.unwrap()["method"], "initialize");
    assert!(
        peer.receive().await.unwrap_err().is_closed(),
        "nothing follows but the end"
    );
}

#[tokio::test(start_paused = true)]
async fn connecting_can_be_dropped() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("test", "1.0.0").revisions([Revision::V2025_11_25]);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    assert_eq!(peer.receive().await.unwrap()["method"], "initialize");
    opening.abort();
    let start = Instant::now();
    assert!(peer.receive().await.unwrap_err().is_closed());
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn dropped_server_call_is_cancelled() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let session = server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    assert_alive(&mut peer).await;
    let pinging = tokio::spawn(async move { session.ping().await });
    let asked = peer.receive().await.unwrap();
    pinging.abort();
    assert_cancels(&peer.receive().await.unwrap(), &asked);
}

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A server with tools that react to cancellation in different ways, and two flags: a handler has noticed it, and a handler was
/// dropped.
fn cancellable() -> (Server, Arc<AtomicBool>, Arc<AtomicBool>) {
    let (noticed, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let flag = Arc::clone(&noticed);
    let polite = Tool::new(
        "polite",
        "Stops when it is told",
        move |cx: RequestContext| {
            let flag = Arc::clone(&flag);
            async move {
                cx.cancelled().await;
                flag.store(cx.is_cancelled(), Ordering::SeqCst);
                "stopped"
            }
        },
    );
    let flag = Arc::clone(&dropped);
    let deaf = Tool::new("deaf", "Goes on for ever", move || {
        let dropped = Dropped(Arc::clone(&flag));
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
        }
    });
    (server().tool(polite).tool(deaf), noticed, dropped)
}

#[tokio::test(start_paused = true)]
async fn cancelled_handler_is_notified_and_sends_nothing() {
    let (server, noticed, _) = cancellable();
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for round in 0..4 {
        noticed.store(false, Ordering::SeqCst);
        peer.send(call(round, "polite", json!({}))).await.unwrap();
        assert_alive(&mut peer).await;
        peer.send(cancel(round)).await.unwrap();
        assert_silent(&mut peer).await;
        assert!(noticed.load(Ordering::SeqCst));
        // The id is free again.
        assert_eq!(
            text(&peer.ask(call(round, "fast", json!({}))).await.unwrap()),
            "fast"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn handler_ignoring_cancellation_is_dropped_after_grace() {
    let limits = Limits::default().cancel_grace(Duration::from_secs(5));
    let (server, _, dropped) = cancellable();
    let mut peer = client_of(&server.limits(limits), Revision::V2025_11_25).await;
    peer.send(call(1, "deaf", json!({}))).await.unwrap();
    peer.send(cancel(1)).await.unwrap();
    assert_alive(&mut peer).await;
    sleep(Duration::from_millis(4_900)).await;
    assert!(!dropped.load(Ordering::SeqCst));
    // The handler's request still holds its id.
    let refused = peer.ask(call(1, "fast", json!({}))).await.unwrap();
    assert_eq!(refused["error"]["code"], -32600);
    sleep(Duration::from_millis(200)).await;
    assert!(dropped.load(Ordering::SeqCst));
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn error_of_cancelled_handler_is_not_sent() {
    let fails = Tool::new(
        "fails",
        "Fails when it is cancelled",
        |cx: RequestContext| async move {
            cx.cancelled().await;
            Err::<String, _>(oxmcp::ToolError::new("cancelled"))
        },
    );
    let panics = Tool::new(
        "panics",
        "Panics when it is cancelled",
        |cx: RequestContext| async move {
            cx.cancelled().await;
            assert!(!cx.is_cancelled(), "this is the test's own panic");
        },
    );
    let mut peer = client_of(&server().tool(fails).tool(panics), Revision::V2025_11_25).await;
    for tool in ["fails", "panics"] {
        peer.send(call(tool, tool, json!({}))).await.unwrap();
        peer.send(cancel(tool)).await.unwrap();
        assert_silent(&mut peer).await;
        assert_alive(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn modern_request_can_be_cancelled() {
    let (server, noticed, _) = cancellable();
    let (mut peer, transport) = ScriptedPeer::new().await;
    server.connect(transport).await.unwrap();
    let meta = ScriptedPeer::modern_meta();
    peer.send(request(
        "m",
        "tools/call",
        json!({"name": "polite", "_meta": meta}),
    ))
    .await
    .unwrap();
    peer.send(cancel("m")).await.unwrap();
    assert_silent(&mut peer).await;
    assert!(noticed.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_the_servers_handler() {
    let (server, noticed, _) = cancellable();
    for revision in Revision::ALL {
        noticed.store(false, Ordering::SeqCst);
        let session = oxmcp::testing::connect(&server)
            .revision(revision)
            .await
            .unwrap();
        let calling = session
            .call_tool("polite", json!({}))
            .timeout(Duration::from_secs(1));
        let error = calling.await.unwrap_err();
        assert!(error.is_timeout(), "{revision}: {error}");
        session.ping().await.unwrap();
        sleep(Duration::from_millis(1)).await;
        assert!(noticed.load(Ordering::SeqCst), "{revision}");
    }
}

#[tokio::test]
async fn handler_only_reporting_is_dropped_after_grace() {
    let limits = Limits::default().cancel_grace(Duration::from_millis(1));
    let (dropped, gone) = oneshot::channel::<()>();
    let dropped = Arc::new(Mutex::new(Some(dropped)));
    let reporter = Tool::new("reporter", "", move |cx: RequestContext| {
        let dropped = dropped.lock().unwrap().take();
        async move {
            // A handler that is not dropped would block the thread for ever; the test should fail instead.
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(60) {
                cx.progress(1).await;
            }
            let _ = dropped.map(|dropped| dropped.send(()));
            "never"
        }
    });
    let server = server().limits(limits).tool(reporter);
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    peer.send(call(1, "reporter", json!({}))).await.unwrap();
    peer.send(cancel(1)).await.unwrap();
    assert!(gone.await.is_err(), "the handler was dropped");
    assert_alive(&mut peer).await;
}

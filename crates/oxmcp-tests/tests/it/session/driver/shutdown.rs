//! Graceful shutdown: nothing new is started, running work may finish within a bound, then the rest
//! is cancelled and the transport closed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, Limits, RequestContext, Revision, Server, Tool,
    protocol::{ElicitAction, ElicitFormParams},
    testing::ScriptedPeer,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf, stream},
};
use serde_json::json;
use tokio::{io::AsyncWriteExt, time::Instant};

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn every_answer_is_written_after_input_ends() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    for id in 0..50 {
        peer.send(call(id, "slow", json!({"ms": 100 * id})))
            .await
            .unwrap();
    }
    peer.close().await.unwrap();
    for id in 0..50 {
        let answer = peer.receive().await.unwrap();
        assert_eq!((&answer["id"], text(&answer)), (&json!(id), "slow"));
    }
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn run_returns_when_the_client_disconnects() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let running = tokio::spawn(async move { server().run(transport).await });
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    assert_alive(&mut peer).await;
    assert!(!running.is_finished());
    peer.close().await.unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn stuck_handler_delays_shutdown_only_until_drain() {
    let cancelled = Arc::<AtomicBool>::default();
    let flag = Arc::clone(&cancelled);
    let hangs = Tool::new("hangs", "Waits for its end", move |cx: RequestContext| {
        let flag = Arc::clone(&flag);
        async move {
            cx.cancelled().await;
            flag.store(true, Ordering::SeqCst);
        }
    });
    let limits = Limits::default().drain(Duration::from_secs(3));
    let (mut peer, transport) = ScriptedPeer::new().await;
    let server = server().tool(hangs).limits(limits);
    let running = tokio::spawn(async move { server.run(transport).await });
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.send(call(1, "hangs", json!({}))).await.unwrap();
    peer.send(call(2, "stuck", json!({}))).await.unwrap();
    peer.send(call(3, "slow", json!({"ms": 2_000})))
        .await
        .unwrap();
    let start = Instant::now();
    peer.close().await.unwrap();
    assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    running.await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 3);
    tokio::task::yield_now().await;
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn questions_are_cancelled_when_their_server_is_gone() {
    let asked = |_: ElicitFormParams| std::future::pending::<ElicitAction>();
    let client = Client::new("test", "1.0.0").on_elicit(asked);
    let (session, mut peer) = server_of(client).await;
    let form = json!({"type": "object", "properties": {}});
    let question = json!({"message": "Sure?", "requestedSchema": form});
    let question = request(1, "elicitation/create", question);
    peer.send(question).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let end = Instant::now();
    peer.close().await.unwrap();
    session.wait().await.unwrap();
    let grace = Limits::default().cancel_grace;
    assert_eq!(end.elapsed(), grace, "and not what a drain may take");
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_delays_shutdown_only_for_its_grace() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let session = server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.send(call(1, "stuck", json!({}))).await.unwrap();
    assert_alive(&mut peer).await;
    let start = Instant::now();
    let closing = tokio::spawn(async move { session.close().await });
    peer.send(cancel(1)).await.unwrap();
    closing.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Limits::default().cancel_grace);
}

#[tokio::test(start_paused = true)]
async fn close_refuses_new_requests_and_answers_running_ones() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let session = server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.send(call(1, "slow", json!({"ms": 1_000})))
        .await
        .unwrap();
    assert_alive(&mut peer).await;
    let closing: Vec<_> = (0..3)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.close().await })
        })
        .collect();
    tokio::task::yield_now().await;
    let refused = peer.ask(call(2, "fast", json!({}))).await.unwrap();
    assert_eq!(refused["id"], 2);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("is closing")
    );
    assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    assert!(peer.receive().await.unwrap_err().is_closed());
    for closing in closing {
        closing.await.unwrap().unwrap();
    }
    session.close().await.unwrap();
    session.wait().await.unwrap();
    assert_eq!(session.server().sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn client_close_lets_calls_finish_within_drain() {
    let limits = Limits::default().drain(Duration::from_secs(5));
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").limits(limits)).await;
    let calls: Vec<_> = ["answered", "forgotten"]
        .map(|tool| {
            let session = session.clone();
            tokio::spawn(async move { session.call_tool(tool, json!({})).await })
        })
        .into();
    let first = peer.receive().await.unwrap();
    peer.receive().await.unwrap();
    let start = Instant::now();
    let closing = tokio::spawn({
        let session = session.clone();
        async move { session.close().await }
    });
    tokio::task::yield_now().await;
    // New calls fail.
    let error = session.ping().await.unwrap_err();
    assert!(error.is_closed(), "{error}");
    sleep(Duration::from_secs(1)).await;
    peer.send(text_result(first["id"].clone(), "in time"))
        .await
        .unwrap();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    assert!(results[0].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert!(error.is_closed());
    assert!(
        error.message().contains("the session was closed"),
        "{error}"
    );
    closing.await.unwrap().unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn close_does_not_wait_for_dropped_call() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move { session.call_tool("slow", json!({})).await }
    });
    peer.receive().await.unwrap();
    let start = Instant::now();
    let closing = tokio::spawn(async move { session.close().await });
    tokio::task::yield_now().await;
    calling.abort();
    closing.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn close_is_bounded_even_if_peer_reads_nothing() {
    let (ours, theirs) = tokio::io::duplex(1_000);
    let session = server().connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let asked = request(
        1,
        "tools/call",
        json!({
            "name": "echo", "arguments": {"text": "x".repeat(5_000)}, "_meta": ScriptedPeer::modern_meta(),
        }),
    );
    write
        .write_all(format!("{asked}\n").as_bytes())
        .await
        .unwrap();
    tokio::task::yield_now().await;
    let start = Instant::now();
    let error = session.close().await.unwrap_err();
    assert!(error.message().contains("stopped reading"), "{error}");
    assert!(
        start.elapsed() <= Duration::from_secs(13),
        "{:?}",
        start.elapsed()
    );
    drop(read);
}

#[tokio::test(start_paused = true)]
async fn wait_returns_on_both_sides_whichever_closes() {
    for client_closes in [true, false] {
        let (near, far) = oxmcp::in_memory();
        let serving = server().connect(far).await.unwrap();
        let session = Client::new("test", "1.0.0").connect(near).await.unwrap();
        let waiting = tokio::spawn({
            let (serving, session) = (serving.clone(), session.clone());
            async move { tokio::join!(serving.wait(), session.wait()) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        if client_closes {
            session.close().await.unwrap();
        } else {
            serving.close().await.unwrap();
        }
        let (server_side, client_side) = waiting.await.unwrap();
        server_side.unwrap();
        client_side.unwrap();
        let error = session.ping().await.unwrap_err();
        assert!(error.is_closed(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_of_one_server_end_independently() {
    let server: Server = server();
    let mut peers = Vec::new();
    for _ in 0..3 {
        peers.push(client_of(&server, Revision::V2025_06_18).await);
    }
    for left in (0..3).rev() {
        assert_eq!(server.sessions().count(), left + 1);
        let mut peer = peers.pop().unwrap();
        peer.close().await.unwrap();
        assert!(peer.receive().await.is_err());
        sleep(Duration::from_millis(1)).await;
        assert_eq!(server.sessions().count(), left);
        for peer in &mut peers {
            assert_alive(peer).await;
        }
    }
}

/// A transport whose peer sends notifications without end and without a pause.
#[derive(Clone, Copy)]
struct Endless {
    /// Whether each message is already available with the one before.
    together: bool,
}

impl Endless {
    const MESSAGE: Frame<'static> = Frame::Message(br#"{"jsonrpc":"2.0","method":"x"}"#);
}

impl Transport for Endless {
    type Read = Self;
    type Write = Self;

    async fn connect(&mut self, _limits: &Limits) -> oxmcp::Result<(Self, Self)> {
        Ok((*self, *self))
    }
}

impl ReadHalf for Endless {
    async fn read(&mut self) -> oxmcp::Result<Option<Frame<'_>>> {
        Ok(Some(Self::MESSAGE))
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        self.together.then_some(Self::MESSAGE)
    }
}

impl WriteHalf for Endless {
    async fn write(&mut self, _messages: Messages<'_>) -> oxmcp::Result<()> {
        Ok(())
    }

    async fn close(&mut self) -> oxmcp::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn close_is_noticed_though_peer_never_pauses() {
    for together in [false, true] {
        let session = server().connect(Endless { together }).await.unwrap();
        session.close().await.unwrap();
    }
}

//! Exchanges with legacy servers: a session id, and a stream for messages beside the answers.

use std::time::Duration;

use ::http::Method;
use oxmcp::Error;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::http::client::peer::{Peer, both, legacy, open, open_listening, text};

#[tokio::test(start_paused = true)]
async fn later_requests_carry_session_and_revision() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.post("initialize").await;
        assert_eq!(asked.header("mcp-session-id"), None);
        assert_eq!(asked.header("mcp-protocol-version"), None);
        assert_eq!(asked.header("mcp-method"), None);
        // The revision that the server agrees to counts, and not the one that it was asked for.
        asked.opens_in(Some("s-1"), &json!("2025-11-25"));
        for _ in 0..2 {
            let asked = peer.next().await;
            assert_eq!(asked.header("mcp-session-id"), Some("s-1"), "{asked:?}");
            assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"));
            asked.status(405);
        }
    })
    .await;
    let session = session.unwrap();
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"));
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap().to_text(), "3");
    let (closed, ()) = both(session.close(), async {
        let asked = peer.next().await;
        assert_eq!(asked.request.method(), Method::DELETE);
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.status(405);
    })
    .await;
    closed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn session_may_have_no_id() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-session-id"), None);
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25"));
        asked.result(text("3"));
    })
    .await;
    assert!(answer.is_ok());
    session.close().await.unwrap();
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn first_call_waits_for_session_and_stream() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.post("initialize").await.opens(Some("s-1"));
    })
    .await;
    let session = session.unwrap();
    let (answer, _listening) = both(async { session.call_tool("add", json!({})).await }, async {
        let initialized = peer.post("notifications/initialized").await;
        assert!(timeout(Duration::from_secs(1), peer.next()).await.is_err());
        initialized.status(202);
        let listening = peer.get().await;
        assert_eq!(listening.header("accept"), Some("text/event-stream"));
        assert_eq!(listening.header("mcp-session-id"), Some("s-1"));
        assert!(
            timeout(Duration::from_millis(100), peer.next())
                .await
                .is_err()
        );
        let listening = listening.events();
        peer.post("tools/call").await.result(text("3"));
        listening
    })
    .await;
    assert!(answer.is_ok());
}

#[tokio::test(start_paused = true)]
async fn first_call_does_not_wait_for_stalled_stream() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), peer.initialize(None)).await;
    let session = session.unwrap();
    let start = Instant::now();
    let (answer, _listening) = both(async { session.call_tool("add", json!({})).await }, async {
        let listening = peer.get().await;
        peer.post("tools/call").await.result(text("3"));
        listening
    })
    .await;
    assert!(answer.is_ok());
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn server_request_on_stream_is_answered_by_post() {
    let (mut peer, _session, listening) = open_listening(Some("s-1")).await;
    listening.message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    let answer = peer.next().await;
    assert_eq!(
        answer.body(),
        json!({"jsonrpc": "2.0", "id": "p", "result": {}})
    );
    assert_eq!(answer.header("mcp-session-id"), Some("s-1"));
    answer.status(202);
}

#[tokio::test(start_paused = true)]
async fn answer_is_resent_until_accepted_or_refused() {
    let (mut peer, _session, listening) = open_listening(Some("s-1")).await;
    let minute = Duration::from_secs(60);
    for (id, status) in [(1, Some(429)), (2, Some(502)), (3, Some(503)), (4, None)] {
        listening.message(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        for _ in 0..3 {
            let lost = timeout(minute, peer.next()).await.unwrap();
            assert_eq!(lost.body(), answer);
            match status {
                Some(status) => lost.status(status),
                None => lost.fail(Error::network("the connection broke")),
            }
        }
        let taken = timeout(minute, peer.next()).await.unwrap();
        assert_eq!(taken.body(), answer);
        taken.status(202);
    }
    listening.message(&json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}));
    peer.next().await.status(400);
    sleep(minute).await;
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn dropped_call_posts_cancellation_and_abandons_its_stream() {
    let (mut peer, session) = open(Some("s-1")).await;
    let limit = Duration::from_millis(100);
    let late = async {
        let call = session.call_tool("slow", json!({})).timeout(limit);
        call.await.unwrap_err()
    };
    let (error, ()) = both(late, async {
        let asked = peer.post("tools/call").await;
        let id = asked.body()["id"].clone();
        let chunks = asked.events();
        let cancelled = peer.post("notifications/cancelled").await;
        assert_eq!(cancelled.body()["params"]["requestId"], id);
        cancelled.status(202);
        chunks.given_up().await;
    })
    .await;
    assert!(error.is_timeout());
}

#[tokio::test(start_paused = true)]
async fn closing_is_bounded_with_an_unresponsive_server() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (closed, ()) = both(timeout(Duration::from_secs(6), session.close()), async {
        let asked = peer.next().await;
        assert_eq!(asked.request.method(), Method::DELETE);
        asked.given_up().await;
    })
    .await;
    closed.unwrap().unwrap();
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn server_asking_without_reading_uses_bounded_memory() {
    let (mut peer, session, listening) = open_listening(Some("s-1")).await;
    for id in 0..20_000 {
        listening.message(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
    }
    let mut answers = Vec::new();
    while let Ok(answer) = timeout(Duration::from_secs(1), peer.next()).await {
        answers.push(answer);
    }
    assert_eq!(answers.len(), 256, "no more are on their way at once");
    // When the server accepts these answers at last, the rest follows.
    let (answer, taken) = both(async { session.call_tool("add", json!({})).await }, async {
        let mut taken = 0;
        answers.into_iter().for_each(|answer| answer.status(202));
        loop {
            let asked = peer.next().await;
            if asked.body()["method"] == "tools/call" {
                asked.result(text("3"));
                return taken;
            }
            taken += 1;
            asked.status(202);
        }
    })
    .await;
    assert!(answer.is_ok() && taken > 0, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn failed_notification_does_not_break_the_session() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.post("initialize").await.opens(None);
        let initialized = peer.post("notifications/initialized").await;
        initialized.fail(Error::network("oh"));
        peer.get().await.status(405);
    })
    .await;
    let session = session.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert!(peer.is_quiet());
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert!(answer.is_ok());
}

//! Answers without an end, which must not hold up the client.

use std::time::Duration;

use oxmcp::{ClientSession, Result};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::client::peer::{Asked, Chunks, Peer, both, legacy, open, text};

const SOON: Duration = Duration::from_secs(3);

async fn call(session: &ClientSession) -> Result<String> {
    let call = session.call_tool("add", json!({}));
    let result = call.timeout(Duration::from_secs(7200)).await?;
    Ok(result.to_text())
}

/// Answers so, with a body that begins and does not end.
fn endless(asked: Asked, status: u16) -> Chunks {
    let chunks = asked.streams(status, "text/plain");
    chunks.raw("well, ");
    chunks
}

#[tokio::test(start_paused = true)]
async fn attack_8_a_refusal_that_does_not_end_is_one_all_the_same() {
    let (mut peer, session) = open(Some("s-1")).await;
    let start = Instant::now();
    let (answer, _endless) = both(call(&session), async {
        endless(peer.post("tools/call").await, 503)
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.http_status(), Some(503));
    assert!(error.message().contains("well,"), "{error}");
    assert!(start.elapsed() < SOON);
}

#[tokio::test(start_paused = true)]
async fn attack_8_a_renewal_waits_for_no_end() {
    let (mut peer, session) = open(Some("s-1")).await;
    let start = Instant::now();
    let (answer, _endless) = both(call(&session), async {
        peer.post("tools/call").await.status(404);
        endless(peer.post("initialize").await, 503)
    })
    .await;
    assert_eq!(answer.unwrap_err().http_status(), Some(503));
    assert!(start.elapsed() < SOON);
    let (answer, _endless) = both(call(&session), async {
        let lost = endless(peer.post("tools/call").await, 404);
        peer.post("initialize").await.opens(Some("s-2"));
        let initialized = endless(peer.post("notifications/initialized").await, 202);
        loop {
            let asked = peer.next().await;
            if asked.request.method() == ::http::Method::POST {
                assert_eq!(asked.header("mcp-session-id"), Some("s-2"));
                asked.result(text("3"));
                return (lost, initialized);
            }
            asked.status(405);
        }
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
    assert!(start.elapsed() < 2 * SOON);
}

#[tokio::test(start_paused = true)]
async fn attack_8_the_first_call_waits_for_no_end_of_what_is_said_before() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let start = Instant::now();
    let (session, _endless) = both(client.connect(endpoint), async {
        peer.post("initialize").await.opens(Some("s-1"));
        let initialized = endless(peer.post("notifications/initialized").await, 202);
        (initialized, endless(peer.get().await, 405))
    })
    .await;
    let session = session.unwrap();
    let (answer, ()) = both(call(&session), async {
        let asked = timeout(SOON, peer.post("tools/call")).await.unwrap();
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
    assert!(start.elapsed() < SOON);
}

#[tokio::test(start_paused = true)]
async fn attack_8_a_stream_that_is_refused_without_end_is_not_waited_for() {
    for status in [200, 400] {
        let (mut peer, session) = open(None).await;
        let start = Instant::now();
        let (answer, _endless) = both(call(&session), async {
            let asked = peer.post("tools/call").await;
            asked.events().raw("id: 1\ndata:\n\n");
            endless(peer.get().await, status)
        })
        .await;
        assert!(answer.unwrap_err().is_network());
        assert!(start.elapsed() < SOON);
    }
}

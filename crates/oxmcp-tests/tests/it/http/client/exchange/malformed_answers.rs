//! Malformed and endless answers: the waiting call fails at once, and nothing waits for their end.

use std::time::Duration;

use oxmcp::{ClientSession, Result};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::client::peer::{Asked, Chunks, Peer, both, discover, legacy, open, text};

/// A time limit far below the timeout of a patient call.
const SOON: Duration = Duration::from_secs(3);

/// A time limit far below the default timeout of a call.
const AT_ONCE: Duration = Duration::from_secs(2);

async fn call(session: &ClientSession) -> Result<String> {
    let calling = timeout(AT_ONCE, async { session.call_tool("add", json!({})).await });
    let answer = calling.await.expect("nobody waits for what has come");
    answer.map(|result| result.to_text())
}

/// The result of a call that gets this answer. The session continues.
async fn answered(
    peer: &mut Peer,
    session: &ClientSession,
    answer: impl FnOnce(Asked),
) -> Result<String> {
    let (result, ()) = both(call(session), async {
        answer(peer.post("tools/call").await);
    })
    .await;
    let (next, ()) = both(call(session), async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert_eq!(next.unwrap(), "3", "the session goes on");
    result
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn deeply_nested_response_is_not_recursed_into() {
    let brackets = "[".repeat(100_000) + &"]".repeat(100_000);
    let (mut peer, session) = discover().await;
    let error = answered(&mut peer, &session, |asked| {
        asked.text(200, "application/json", brackets.clone());
    });
    let error = error.await.unwrap_err();
    assert!(error.message().contains("does not answer"), "{error}");
    let answer = answered(&mut peer, &session, |asked| {
        let answer = asked.reply_to(text("3"));
        let events = asked.events();
        events.raw(format!("data: {brackets}\n\n"));
        events.message(&answer);
    });
    assert_eq!(answer.await.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn unreadable_answer_fails_its_call_at_once() {
    let (mut peer, session) = discover().await;
    let deep = "[".repeat(200) + &"]".repeat(200);
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"result":"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{}} {}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"jsonrpc":"2.0","error":{"code":1,"message":""}}"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":{}}]"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":{}}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"a":{deep}}}}}"#),
        &format!(r#"{{"jsonrpc":"2.0","result":{{"a":{deep}}},"id":ID}}"#),
    ] {
        for streams in [false, true] {
            let error = answered(&mut peer, &session, |asked| {
                let answer = answer.replace("ID", &asked.body()["id"].to_string());
                if streams {
                    asked.events().raw(format!("data: {answer}\n\n"));
                } else {
                    asked.text(200, "application/json", answer);
                }
            });
            let error = error.await.unwrap_err();
            let text = error.message();
            assert!(text.contains("malformed response"), "{answer}: {text}");
        }
    }
}

/// A call with a timeout of two hours.
async fn patient_call(session: &ClientSession) -> Result<String> {
    let call = session.call_tool("add", json!({}));
    let result = call.timeout(Duration::from_secs(7200)).await?;
    Ok(result.to_text())
}

/// Answers with this status, and with a body that begins and does not end.
fn endless(asked: Asked, status: u16) -> Chunks {
    let chunks = asked.streams(status, "text/plain");
    chunks.raw("well, ");
    chunks
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn endless_error_body_keeps_the_status() {
    let (mut peer, session) = open(Some("s-1")).await;
    let start = Instant::now();
    let (answer, _endless) = both(patient_call(&session), async {
        endless(peer.post("tools/call").await, 503)
    })
    .await;
    let error = answer.unwrap_err();
    assert_eq!(error.http_status(), Some(503));
    assert!(error.message().contains("well,"), "{error}");
    assert!(start.elapsed() < SOON);
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn session_renewal_does_not_await_endless_response() {
    let (mut peer, session) = open(Some("s-1")).await;
    let start = Instant::now();
    let (answer, _endless) = both(patient_call(&session), async {
        peer.post("tools/call").await.status(404);
        endless(peer.post("initialize").await, 503)
    })
    .await;
    assert_eq!(answer.unwrap_err().http_status(), Some(503));
    assert!(start.elapsed() < SOON);
    let (answer, _endless) = both(patient_call(&session), async {
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

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn first_call_does_not_await_earlier_responses() {
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
    let (answer, ()) = both(patient_call(&session), async {
        let asked = timeout(SOON, peer.post("tools/call")).await.unwrap();
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
    assert!(start.elapsed() < SOON);
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn endless_body_of_refused_stream_is_ignored() {
    for status in [200, 400] {
        let (mut peer, session) = open(None).await;
        let start = Instant::now();
        let (answer, _endless) = both(patient_call(&session), async {
            let asked = peer.post("tools/call").await;
            asked.events().raw("id: 1\ndata:\n\n");
            endless(peer.get().await, status)
        })
        .await;
        assert!(answer.unwrap_err().is_network());
        assert!(start.elapsed() < SOON);
    }
}

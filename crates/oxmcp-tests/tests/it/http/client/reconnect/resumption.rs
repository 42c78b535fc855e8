//! Resumption of legacy streams by GET, with the id of the last event.

use std::time::Duration;

use oxmcp::{ClientSession, Result, http::Reconnect};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::client::peer::{Peer, both, legacy, open, open_listening, open_with, text};

async fn call(session: &ClientSession) -> Result<String> {
    let call = session.call_tool("add", json!({}));
    let result = call.timeout(Duration::from_secs(7200)).await?;
    Ok(result.to_text())
}

#[tokio::test(start_paused = true)]
async fn closed_stream_is_polled_after_its_retry_delay() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let answer = asked.reply_to(text("3"));
        asked.events().raw("id: 1\nretry: 500\ndata: \n\n");
        let closed = Instant::now();
        let polled = peer.get().await;
        assert!(closed.elapsed() >= Duration::from_millis(500));
        assert!(closed.elapsed() < Duration::from_secs(1));
        assert_eq!(polled.header("last-event-id"), Some("1"));
        assert_eq!(polled.header("mcp-session-id"), Some("s-1"));
        polled.events().raw("id: 2\ndata:\n\n");
        let polled = peer.get().await;
        assert_eq!(polled.header("last-event-id"), Some("2"));
        polled.events().message(&answer);
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn resumed_stream_may_have_another_media_type() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let answer = asked.reply_to(text("3"));
        asked.events().raw("id: 1\nretry: 500\ndata: \n\n");
        peer.get().await.streams(200, "text/plain").message(&answer);
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn stream_without_progress_is_abandoned() {
    let (mut peer, session) = open(None).await;
    let (answer, polls) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        asked.events().raw("id: 1\nretry: 0\ndata:\n\n");
        let mut polls = 0;
        while let Ok(polled) = timeout(Duration::from_secs(100), peer.get()).await {
            polls += 1;
            polled.events().raw("retry: 0\n: still there\n\n");
        }
        polls
    })
    .await;
    let error = answer.unwrap_err();
    assert!(error.is_network() && error.message().contains("could not be resumed"));
    assert!(
        error
            .message()
            .contains("retry only if the call is idempotent")
            && !error.is_unserved()
    );
    assert_eq!(polls, 5);
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn only_progress_resets_the_retry_count() {
    let (peer, endpoint) = Peer::endpoint();
    let endpoint = endpoint.reconnect(Reconnect::default().attempts(2));
    let (mut peer, session) = open_with(&legacy(), endpoint, peer, None).await;
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let answer = asked.reply_to(text("3"));
        asked.events().raw("id: 0\ndata:\n\n");
        for id in 1..20 {
            peer.get().await.status(503);
            let start = Instant::now();
            peer.get()
                .await
                .events()
                .raw(format!("id: {id}\nretry: 0\ndata:\n\n"));
            assert!(start.elapsed() >= Duration::from_millis(100), "it spins");
        }
        peer.get().await.events().message(&answer);
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn hostile_retry_delay_is_clamped() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(call(&session), async {
        let asked = peer.post("tools/call").await;
        let answer = asked.reply_to(text("3"));
        let hostile = "9".repeat(400);
        asked.events().raw(format!(
            "retry: {hostile}\nretry: -1\nretry: 1e9\nid: 1\ndata:\n\n"
        ));
        let start = Instant::now();
        peer.get().await.events().message(&answer);
        assert_eq!(start.elapsed(), Duration::from_secs(3600));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn stream_without_event_ids_cannot_be_resumed() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.events().breaks();
    })
    .await;
    assert!(answer.unwrap_err().is_network());
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn refused_resumption_is_not_retried() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call")
            .await
            .events()
            .raw("id: 1\ndata:\n\n");
        peer.get().await.status(400);
    })
    .await;
    assert!(answer.unwrap_err().message().contains("400"));
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn get_stream_is_resumed_after_a_break() {
    let (mut peer, session, mut listening) = open_listening(Some("s-1")).await;
    for number in 0..20 {
        let ping = json!({"jsonrpc": "2.0", "id": number, "method": "ping"});
        listening.raw(format!("id: e-{number}\ndata: {ping}\n\n"));
        peer.next().await.status(202);
        listening.breaks();
        let again = peer.get().await;
        assert_eq!(again.header("last-event-id"), Some(&*format!("e-{number}")));
        listening = again.events();
    }
    drop(listening);
    // A stream that brings no events is not reopened without end, and the session does not depend on it.
    let mut attempts = 1;
    while let Ok(again) = timeout(Duration::from_secs(100), peer.get()).await {
        attempts += 1;
        drop(again.events());
    }
    assert_eq!(attempts, 5);
    let (answer, ()) = both(call(&session), async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn quiet_stream_cut_by_proxies_is_kept_alive() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), peer.initialize(None)).await;
    let _session = session.unwrap();
    for _ in 0..50 {
        let listening = peer.get().await.events();
        tokio::time::sleep(Duration::from_secs(30)).await;
        drop(listening);
    }
    peer.get().await.status(405);
}

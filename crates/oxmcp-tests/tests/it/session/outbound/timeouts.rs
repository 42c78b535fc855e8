//! Timeouts of calls.

use std::time::Duration;

use oxmcp::Client;
use serde_json::json;
use tokio::time::Instant;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn default_call_timeout_is_a_minute() {
    let minute = Duration::from_secs(60);
    let hour = Duration::from_secs(3600);
    let cases = [
        (Client::new("test", "1.0.0"), None, minute),
        (Client::new("test", "1.0.0").timeout(hour), None, hour),
        (
            Client::new("test", "1.0.0").timeout(hour),
            Some(minute),
            minute,
        ),
        (Client::new("test", "1.0.0"), Some(hour), hour),
    ];
    for (client, own, expected) in cases {
        let (session, mut peer) = server_of(client).await;
        let start = Instant::now();
        let mut calling = session.call_tool("slow", json!({}));
        if let Some(own) = own {
            calling = calling.timeout(own);
        }
        let error = calling.await.unwrap_err();
        assert!(error.is_timeout(), "{error}");
        assert_eq!(start.elapsed().as_secs(), expected.as_secs());
        let asked = peer.receive().await.unwrap();
        assert_cancels(&peer.receive().await.unwrap(), &asked);
    }
}

#[tokio::test(start_paused = true)]
async fn infinite_timeout_means_no_timeout() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").timeout(Duration::MAX)).await;
    let calling = tokio::spawn(async move { session.ping().await });
    let asked = peer.receive().await.unwrap();
    sleep(Duration::from_secs(365 * 24 * 3600)).await;
    peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
        .await
        .unwrap();
    calling.await.unwrap().unwrap();
}

/// Calls a tool that reports progress once per second, for ever.
async fn call_with_progress(timeout: u64, max_total: u64) -> (Duration, oxmcp::Error) {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let start = Instant::now();
    let calling = tokio::spawn({
        let session = session.clone();
        async move {
            session
                .call_tool("slow", json!({}))
                .timeout(Duration::from_millis(timeout))
                .max_total(Duration::from_millis(max_total))
                .on_progress(|_| {})
                .await
        }
    });
    let asked = peer.receive().await.unwrap();
    let token = asked["params"]["_meta"]["progressToken"].clone();
    let mut done = 0;
    while !calling.is_finished() {
        sleep(Duration::from_secs(1)).await;
        done += 1;
        let update = json!({"progressToken": token, "progress": done});
        peer.send(notification("notifications/progress", update))
            .await
            .unwrap();
    }
    let error = calling.await.unwrap().unwrap_err();
    assert_cancels(&peer.receive().await.unwrap(), &asked);
    (start.elapsed(), error)
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_deadline_up_to_the_maximum() {
    let (elapsed, error) = call_with_progress(1_500, 10_250).await;
    assert!(error.is_timeout(), "{error}");
    assert!(error.message().contains("10.25s"), "{error}");
    assert!(
        (10_250..=11_100).contains(&elapsed.as_millis()),
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn late_progress_does_not_extend_the_timeout() {
    let (elapsed, error) = call_with_progress(500, 10_000).await;
    assert!(error.message().contains("500ms"), "{error}");
    assert!(elapsed < Duration::from_millis(1_100), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_nonreading_peer_is_bounded() {
    let limits = oxmcp::Limits::default().max_unsent_bytes(1_000);
    let (session, _peer) = server_of(Client::new("test", "1.0.0").limits(limits)).await;
    // More than the pipe holds: from here on nothing can be sent.
    let stuffing = tokio::spawn({
        let session = session.clone();
        async move {
            session
                .call_tool("echo", json!({"text": "x".repeat(200_000)}))
                .timeout(Duration::MAX)
                .await
        }
    });
    tokio::task::yield_now().await;
    let start = Instant::now();
    let error = session.ping().await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(start.elapsed().as_secs(), 60);
    let token = tokio_util::sync::CancellationToken::new();
    token.cancel();
    let error = session
        .call_tool("fast", json!({}))
        .cancel_with(token)
        .await
        .unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    stuffing.abort();
}

//! Keep-alive: pings that detect a lost legacy peer.

use std::time::Duration;

use oxmcp::{Client, Revision, testing::ScriptedPeer};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::session::*;

const INTERVAL: Duration = Duration::from_secs(30);

fn answer(ping: &Value) -> Value {
    assert_eq!(ping["method"], "ping");
    json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}})
}

fn error(ping: &Value, code: i64) -> Value {
    assert_eq!(ping["method"], "ping");
    json!({"jsonrpc": "2.0", "id": ping["id"], "error": {"code": code, "message": "no"}})
}

#[tokio::test(start_paused = true)]
async fn server_closes_session_of_silent_client() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let session = server()
        .keep_alive(INTERVAL)
        .connect(transport)
        .await
        .unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for _ in 0..3 {
        let ping = peer.receive().await.unwrap();
        peer.send(answer(&ping)).await.unwrap();
    }
    peer.receive().await.unwrap();
    let start = Instant::now();
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("ping"), "{error}");
    assert_eq!(start.elapsed(), INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn client_closes_session_of_silent_server() {
    let client = Client::new("test", "1.0.0").keep_alive(INTERVAL);
    let (session, mut peer) = server_of(client).await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move {
            session
                .call_tool("slow", json!({}))
                .timeout(Duration::MAX)
                .await
        }
    });
    peer.receive().await.unwrap();
    for _ in 0..3 {
        let ping = peer.receive().await.unwrap();
        peer.send(answer(&ping)).await.unwrap();
    }
    peer.receive().await.unwrap();
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("ping"), "{error}");
    let error = calling.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert!(error.message().contains("ping"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn keep_alive_closes_though_peer_reads_nothing() {
    let client = Client::new("test", "1.0.0").keep_alive(INTERVAL);
    let (session, _peer) = server_of(client).await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move {
            let text = "x".repeat(3 << 20);
            session
                .call_tool("echo", json!({"text": text}))
                .timeout(Duration::MAX)
                .await
        }
    });
    let start = Instant::now();
    assert!(session.wait().await.is_err());
    assert!(calling.await.unwrap().unwrap_err().is_closed());
    assert!(
        start.elapsed() <= 2 * INTERVAL + Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn peer_without_ping_is_not_pinged() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let _session = server()
        .keep_alive(INTERVAL)
        .connect(transport)
        .await
        .unwrap();
    peer.initialize(Revision::V2024_11_05).await.unwrap();
    let ping = peer.receive().await.unwrap();
    peer.send(error(&ping, -32601)).await.unwrap();
    assert_silent(&mut peer).await;
    assert_alive(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn error_counts_as_sign_of_life() {
    let (_session, mut peer) = server_of(Client::new("test", "1.0.0").keep_alive(INTERVAL)).await;
    for code in [-32603, -32602, -32000, 7] {
        let ping = peer.receive().await.unwrap();
        peer.send(error(&ping, code)).await.unwrap();
    }
    assert_eq!(peer.receive().await.unwrap()["method"], "ping");
}

#[tokio::test(start_paused = true)]
async fn modern_peers_are_not_pinged() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let _session = server()
        .keep_alive(INTERVAL)
        .connect(transport)
        .await
        .unwrap();
    let meta = json!({"_meta": ScriptedPeer::modern_meta()});
    peer.ask(request(1, "tools/list", meta)).await.unwrap();
    assert_silent(&mut peer).await;

    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("test", "1.0.0").keep_alive(INTERVAL);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    let asked = peer.receive().await.unwrap();
    assert_eq!(asked["method"], "server/discover");
    peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
        "ttlMs": 0, "cacheScope": "private",
    }}))
    .await
    .unwrap();
    let _session = opening.await.unwrap().unwrap();
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn pings_end_with_the_session() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0").keep_alive(INTERVAL)).await;
    drop(session);
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn limited_number_of_pings_may_go_unanswered() {
    for threshold in [0, 1, 3] {
        let client = Client::new("test", "1.0.0")
            .keep_alive(INTERVAL)
            .keep_alive_threshold(threshold);
        let (session, mut peer) = server_of(client).await;
        // An answer resets the count of unanswered pings.
        for unanswered in 1..threshold {
            for _ in 0..unanswered {
                assert_eq!(peer.receive().await.unwrap()["method"], "ping");
                let cancelled = peer.receive().await.unwrap();
                assert_eq!(cancelled["method"], "notifications/cancelled");
            }
            let ping = peer.receive().await.unwrap();
            peer.send(answer(&ping)).await.unwrap();
        }
        let start = Instant::now();
        assert!(session.wait().await.is_err());
        let pings = threshold.max(1);
        assert_eq!(start.elapsed(), 2 * pings * INTERVAL, "{threshold}");
    }
}

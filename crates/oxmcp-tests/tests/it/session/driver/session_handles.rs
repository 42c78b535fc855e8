//! Session handles: a session lives until its last handle is dropped.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{Client, Revision, testing::ScriptedPeer};
use serde_json::json;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_session() {
    let client = Client::new("test", "1.0.0");
    let (session, mut peer) = server_of(client.clone()).await;
    let other = session.clone();
    assert_eq!(client.sessions().count(), 1);
    drop(session);
    assert_alive(&mut peer).await;
    // A call keeps the session open until it ends.
    let calling = tokio::spawn(async move { other.call_tool("slow", json!({})).await });
    let asked = peer.receive().await.unwrap();
    sleep(Duration::from_secs(5)).await;
    peer.send(text_result(asked["id"].clone(), "x"))
        .await
        .unwrap();
    calling.await.unwrap().unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
    assert_eq!(client.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn listing_sessions_closes_none() {
    let client = Client::new("test", "1.0.0");
    let (session, mut peer) = server_of(client.clone()).await;
    for _ in 0..3 {
        drop(client.sessions().next().unwrap());
        assert_alive(&mut peer).await;
    }
    assert_eq!(session.client().sessions().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_handlers_session_handle_closes_nothing() {
    let kept: Arc<Mutex<Option<ClientSession>>> = Arc::default();
    let place = Arc::clone(&kept);
    let client = Client::new("test", "1.0.0")
        .on_tools_changed(|session| async move { drop(session) })
        .on_prompts_changed(move |session| {
            *place.lock().unwrap() = Some(session);
            async {}
        });
    let (session, mut peer) = server_of(client).await;
    peer.send(notification("notifications/tools/list_changed", json!({})))
        .await
        .unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_alive(&mut peer).await;
    // A handle that the handler keeps is a handle like any other.
    peer.send(notification(
        "notifications/prompts/list_changed",
        json!({}),
    ))
    .await
    .unwrap();
    sleep(Duration::from_secs(1)).await;
    drop(session);
    assert_alive(&mut peer).await;
    drop(kept.lock().unwrap().take());
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn handler_can_close_its_own_session() {
    let client = Client::new("test", "1.0.0").on_tools_changed(|session| async move {
        session.close().await.unwrap();
    });
    let (session, mut peer) = server_of(client).await;
    peer.send(notification("notifications/tools/list_changed", json!({})))
        .await
        .unwrap();
    session.wait().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_run_closes_the_session() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let server = server();
    let running = tokio::spawn({
        let server = server.clone();
        async move { server.run(transport).await }
    });
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    peer.send(call(1, "slow", json!({"ms": 1_000})))
        .await
        .unwrap();
    assert_alive(&mut peer).await;
    assert_eq!(server.sessions().count(), 1);
    running.abort();
    assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    assert!(peer.receive().await.unwrap_err().is_closed());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.sessions().count(), 0);
}

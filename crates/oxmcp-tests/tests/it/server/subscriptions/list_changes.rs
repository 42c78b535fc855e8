//! Notifications that a list has changed.

use std::time::Duration;

use oxmcp::{Server, Tool, testing::ScriptedPeer};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::support::{LEGACY, calculator, idle, modern, notification, request, script};

const CHANGED: &str = "notifications/tools/list_changed";

/// All messages that arrive before the answer to a ping.
async fn heard(peer: &mut ScriptedPeer) -> Vec<Value> {
    peer.send(request(4711, "ping", json!({}))).await.unwrap();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 4711 {
            return heard;
        }
        heard.push(message);
    }
}

/// Lets all pending work run.
async fn settle() {
    advance(Duration::from_millis(11)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_within_ten_milliseconds_are_coalesced() {
    for revision in LEGACY {
        let server = calculator();
        let mut peer = script(&server).await;
        peer.initialize(revision).await.unwrap();
        heard(&mut peer).await;

        let start = Instant::now();
        for index in 0..50 {
            server.add_tools([idle(&format!("tool{index}"))]).unwrap();
        }
        server.remove_tools(["tool7"]);
        let told = peer.receive().await.unwrap();
        assert_eq!(told["method"], CHANGED, "{revision}");
        assert_eq!(start.elapsed(), Duration::from_millis(10));
        settle().await;
        assert_eq!(heard(&mut peer).await, Vec::<Value>::new());

        server.remove_tools(["tool8"]);
        assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
    }
}

#[tokio::test(start_paused = true)]
async fn steady_changes_are_notified_in_intervals() {
    let server = calculator();
    let mut peer = script(&server).await;
    peer.initialize(LEGACY[3]).await.unwrap();
    heard(&mut peer).await;
    for index in 0..20 {
        server.add_tools([idle(&format!("tool{index}"))]).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    settle().await;
    let times = heard(&mut peer).await.len();
    assert!((5..=10).contains(&times), "{times}");
}

#[tokio::test(start_paused = true)]
async fn only_initialized_clients_are_notified() {
    let server = calculator();
    let mut stranger = script(&server).await;
    let mut modern_peer = script(&server).await;
    let mut early = script(&server).await;
    modern_peer
        .ask(modern(1, "tools/list", json!({})))
        .await
        .unwrap();
    let initialize = request(
        1,
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    early.ask(initialize).await.unwrap();

    server.add_tools([idle("more")]).unwrap();
    settle().await;
    assert!(heard(&mut early).await.is_empty());
    // A client that has not sent `initialize` may ping, too.
    assert!(heard(&mut stranger).await.is_empty());
    let next = modern_peer
        .ask(modern(2, "tools/list", json!({})))
        .await
        .unwrap();
    assert_eq!(next["id"], 2);

    early
        .send(notification("notifications/initialized"))
        .await
        .unwrap();
    heard(&mut early).await;
    server.add_tools([idle("even_more")]).unwrap();
    assert_eq!(early.receive().await.unwrap()["method"], CHANGED);
}

#[tokio::test(start_paused = true)]
async fn client_without_tools_capability_is_not_notified() {
    let server = Server::new("empty", "1.0.0");
    let mut peer = script(&server).await;
    peer.initialize(LEGACY[2]).await.unwrap();
    heard(&mut peer).await;
    server.add_tools([idle("late")]).unwrap();
    settle().await;
    assert!(heard(&mut peer).await.is_empty());
    // The client can still use the tools.
    let list = peer.ask(request(2, "tools/list", json!({}))).await.unwrap();
    assert_eq!(list["result"]["tools"][0]["name"], "late");
}

#[tokio::test(start_paused = true)]
async fn operations_without_effect_are_not_notified() {
    let server = calculator();
    let mut peer = script(&server).await;
    peer.initialize(LEGACY[2]).await.unwrap();
    heard(&mut peer).await;
    server.remove_tools(["never there"]);
    server.add_tools(Vec::<Tool>::new()).unwrap();
    server.add_tools([idle("two words")]).unwrap_err();
    settle().await;
    assert!(heard(&mut peer).await.is_empty());
}

#[tokio::test]
async fn tools_may_be_changed_outside_a_runtime() {
    let server = calculator();
    let mut peer = script(&server).await;
    peer.initialize(LEGACY[2]).await.unwrap();
    heard(&mut peer).await;
    let other = server.clone();
    std::thread::spawn(move || other.add_tools([idle("more")]).unwrap())
        .join()
        .unwrap();
    assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
}

#[test]
fn ended_runtime_does_not_silence_the_server() {
    let server = calculator();
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    first.block_on(async {
        let mut peer = script(&server).await;
        peer.initialize(LEGACY[2]).await.unwrap();
        heard(&mut peer).await;
        server.add_tools([idle("a")]).unwrap();
        // The runtime ends before any client is notified.
    });
    drop(first);
    runtime().block_on(async {
        let mut peer = script(&server).await;
        peer.initialize(LEGACY[2]).await.unwrap();
        heard(&mut peer).await;
        server.add_tools([idle("b")]).unwrap();
        assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
    });
}

#[tokio::test(start_paused = true)]
async fn every_session_of_the_server_is_notified() {
    let server = calculator();
    let mut peers = Vec::new();
    for revision in LEGACY {
        let mut peer = script(&server).await;
        peer.initialize(revision).await.unwrap();
        heard(&mut peer).await;
        peers.push(peer);
    }
    // One client does not read, which must not delay the others.
    server.clone().add_tools([idle("more")]).unwrap();
    for peer in peers.iter_mut().skip(1) {
        assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
    }
}

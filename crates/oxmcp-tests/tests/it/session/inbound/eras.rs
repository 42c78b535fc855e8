//! Requests before, after and without `initialize`, of both eras.

use oxmcp::{Revision, testing::ScriptedPeer};
use serde_json::{Value, json};

use crate::session::*;

const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

#[tokio::test(start_paused = true)]
async fn requests_before_initialize_are_answered() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    for method in ["tools/list", "tools/call", "no/such", "server/discover"] {
        let answer = peer.ask(request(1, method, json!({}))).await.unwrap();
        assert_eq!(
            answer["error"]["code"], INVALID_PARAMS,
            "{method}: {answer}"
        );
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("initialize"), "{method}: {said}");
    }
    assert_alive(&mut peer).await;
    // `initialized` before `initialize` does not open a session.
    peer.send(notification("notifications/initialized", json!({})))
        .await
        .unwrap();
    assert_alive(&mut peer).await;
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    let answer = peer.ask(call(2, "fast", json!({}))).await.unwrap();
    assert_eq!(text(&answer), "fast");
}

#[tokio::test(start_paused = true)]
async fn second_initialize_is_refused_and_changes_nothing() {
    let mut peer = client_of(&server(), Revision::V2025_03_26).await;
    let again = request(
        9,
        "initialize",
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
        }),
    );
    let answer = peer.ask(again).await.unwrap();
    assert_eq!(answer["error"]["code"], INVALID_REQUEST);
    // The session is still one of 2025-03-26, which has batches.
    peer.send_line(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)
        .await
        .unwrap();
    assert!(peer.receive().await.unwrap().is_array());
}

#[tokio::test(start_paused = true)]
async fn failed_initialize_allows_a_second_attempt() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().strict().connect(transport).await.unwrap();
    for params in [
        json!({}),
        json!({"protocolVersion": 7, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    ] {
        let answer = peer.ask(request(1, "initialize", params)).await.unwrap();
        assert_eq!(answer["error"]["code"], INVALID_PARAMS, "{answer}");
    }
    peer.initialize(Revision::V2024_11_05).await.unwrap();
    assert_alive(&mut peer).await;
}

fn modern(id: i64, method: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut meta = ScriptedPeer::modern_meta();
    change(&mut meta);
    request(id, method, json!({"_meta": meta}))
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[tokio::test(start_paused = true)]
async fn discover_is_answered_at_any_time() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    for id in 0..3 {
        let answer = peer
            .ask(modern(id, "server/discover", |_| {}))
            .await
            .unwrap();
        assert_eq!(
            answer["result"]["supportedVersions"][0], "2026-07-28",
            "{answer}"
        );
        if id == 1 {
            peer.initialize(Revision::V2025_11_25).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_modern_metadata_is_refused() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    let cases: &[(&str, Value, i64)] = &[
        (VERSION, json!("2031-01-01"), -32022),
        (VERSION, json!("2025-11-25"), -32022),
        (VERSION, json!(""), -32022),
        (VERSION, json!(7), INVALID_PARAMS),
        (VERSION, json!({}), INVALID_PARAMS),
        (INFO, json!("me"), INVALID_PARAMS),
        (INFO, json!(["me"]), INVALID_PARAMS),
        (CAPABILITIES, json!([]), INVALID_PARAMS),
        (CAPABILITIES, json!("none"), INVALID_PARAMS),
        (CAPABILITIES, Value::Null, INVALID_PARAMS),
        (
            "io.modelcontextprotocol/logLevel",
            json!("loud"),
            INVALID_PARAMS,
        ),
    ];
    for (key, value, code) in cases {
        let answer = peer
            .ask(modern(1, "tools/list", |meta| meta[*key] = value.clone()))
            .await
            .unwrap();
        assert_eq!(answer["error"]["code"], *code, "{key}: {value}: {answer}");
        let good = peer.ask(modern(2, "tools/list", |_| {})).await.unwrap();
        assert!(good["result"]["tools"].is_array(), "{good}");
    }
    let lacking = modern(1, "tools/list", |meta| {
        meta.as_object_mut().unwrap().remove(CAPABILITIES);
    });
    let answer = peer.ask(lacking).await.unwrap();
    assert_eq!(answer["error"]["code"], INVALID_PARAMS);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains(CAPABILITIES),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn legacy_and_modern_requests_share_one_pipe() {
    let mut peer = client_of(&server(), Revision::V2025_06_18).await;
    for _ in 0..3 {
        let modern_call = request(
            1,
            "tools/call",
            json!({"name": "fast", "_meta": ScriptedPeer::modern_meta()}),
        );
        let answer = peer.ask(modern_call).await.unwrap();
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        let answer = peer.ask(call(2, "fast", json!({}))).await.unwrap();
        assert!(answer["result"].get("resultType").is_none(), "{answer}");
        // A method of one era is unknown in the other.
        let answer = peer.ask(modern(3, "ping", |_| {})).await.unwrap();
        assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
        let answer = peer
            .ask(request(4, "server/discover", json!({})))
            .await
            .unwrap();
        assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
    }
}

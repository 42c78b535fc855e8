//! Negotiation of revision and capabilities by a server.

use oxmcp::{Revision, Server, middleware, testing::ScriptedPeer};
use serde_json::{Value, json};

use crate::support::{LEGACY, answer, calculator, modern, notification, request, script};

fn initialize(version: &str) -> Value {
    let info = json!({"name": "scripted", "version": "1.0.0"});
    request(
        1,
        "initialize",
        json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info}),
    )
}

/// A modern request with any text as its revision.
fn modern_in(version: &str, method: &str) -> Value {
    let mut request = modern(1, method, json!({}));
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version.into();
    request
}

#[tokio::test]
async fn initialize_answers_requested_or_newest_legacy_version() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
        ("", "2025-11-25"),
    ] {
        let answer = script(&calculator())
            .await
            .ask(initialize(asked))
            .await
            .unwrap();
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked:?}");
        assert_eq!(
            answer["result"]["serverInfo"],
            json!({"name": "calculator", "version": "1.0.0"})
        );
    }
}

#[tokio::test]
async fn initialize_offers_the_newest_served_version() {
    let server = calculator().revisions([
        Revision::V2024_11_05,
        Revision::V2025_06_18,
        Revision::LATEST,
    ]);
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-06-18"),
        ("2025-11-25", "2025-06-18"),
    ] {
        let answer = script(&server).await.ask(initialize(asked)).await.unwrap();
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}");
    }
}

#[tokio::test]
async fn modern_only_server_refuses_initialize_naming_its_versions() {
    let server = calculator().revisions([Revision::LATEST]);
    let mut peer = script(&server).await;
    let answer = peer.ask(initialize("2025-06-18")).await.unwrap();
    // The error code of legacy revisions for an unsupported version.
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        answer["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "2025-06-18"})
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("2026-07-28")
    );
    // The connection can still be used.
    let list = peer.ask(modern(2, "tools/list", json!({}))).await.unwrap();
    assert_eq!(list["result"]["tools"][0]["name"], "add");
}

#[tokio::test]
async fn legacy_only_server_refuses_modern_requests_naming_versions() {
    let server = calculator().revisions(LEGACY);
    let mut peer = script(&server).await;
    for method in ["server/discover", "tools/list"] {
        let answer = peer.ask(modern(1, method, json!({}))).await.unwrap();
        assert_eq!(answer["error"]["code"], -32022, "{method}");
        let supported = json!(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
        assert_eq!(
            answer["error"]["data"],
            json!({"supported": supported, "requested": "2026-07-28"})
        );
    }
    peer.initialize(Revision::V2024_11_05).await.unwrap();
}

#[tokio::test]
async fn modern_requests_with_unknown_revision_are_refused() {
    for version in ["2099-01-01", "2025-11-25", "", "latest"] {
        let answer = script(&calculator())
            .await
            .ask(modern_in(version, "tools/list"))
            .await
            .unwrap();
        assert_eq!(answer["error"]["code"], -32022, "{version:?}: {answer}");
        assert_eq!(answer["error"]["data"]["requested"], version);
        assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
    }
}

#[tokio::test]
async fn modern_requests_without_required_metadata_are_refused() {
    let mut without = modern(1, "tools/list", json!({}));
    without["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientCapabilities");
    let mut odd = modern(1, "tools/list", json!({}));
    odd["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = json!("me");
    let mut version = modern(1, "tools/list", json!({}));
    version["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(20_260_728);
    let mut level = modern(1, "tools/list", json!({}));
    level["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("loud");
    let mut peer = script(&calculator()).await;
    for wrong in [without, odd, version, level] {
        let answer = peer.ask(wrong.clone()).await.unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{wrong} {answer}");
    }
    // The client's name is optional.
    let mut nameless = modern(2, "tools/list", json!({}));
    nameless["params"]["_meta"]
        .as_object_mut()
        .unwrap()
        .remove("io.modelcontextprotocol/clientInfo");
    assert!(peer.ask(nameless).await.unwrap().get("result").is_some());
}

#[tokio::test]
async fn discover_names_all_revisions_and_the_server() {
    let server = calculator().instructions("be exact").title("Calculator");
    let answer = answer(&server, Revision::LATEST, "server/discover", json!({})).await;
    let result = &answer["result"];
    assert_eq!(
        result["supportedVersions"],
        json!([
            "2026-07-28",
            "2025-11-25",
            "2025-06-18",
            "2025-03-26",
            "2024-11-05"
        ])
    );
    assert_eq!(result["instructions"], "be exact");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"],
        json!({"name": "calculator", "title": "Calculator", "version": "1.0.0"})
    );
}

#[tokio::test]
async fn discover_is_always_answered() {
    let server = calculator();
    let mut peer = script(&server).await;
    let bare = peer
        .ask(request(1, "server/discover", json!({})))
        .await
        .unwrap();
    assert!(
        bare["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize"),
        "{bare}"
    );
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    let legacy = peer
        .ask(request(2, "server/discover", json!({})))
        .await
        .unwrap();
    assert_eq!(legacy["error"]["code"], -32601);
    let modern = peer
        .ask(modern(3, "server/discover", json!({})))
        .await
        .unwrap();
    assert!(modern.get("result").is_some());
}

#[tokio::test]
async fn second_initialize_is_refused_and_session_continues() {
    let mut peer = script(&calculator()).await;
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    let again = peer.ask(initialize("2024-11-05")).await.unwrap();
    assert_eq!(again["error"]["code"], -32600, "{again}");
    assert!(
        peer.ask(request(2, "tools/list", json!({})))
            .await
            .unwrap()
            .get("result")
            .is_some()
    );
}

#[tokio::test]
async fn only_pings_and_modern_requests_precede_initialize() {
    let mut peer = script(&calculator()).await;
    let answer = peer.ask(request(1, "tools/list", json!({}))).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("initialize") && message.contains("protocolVersion"),
        "{message}"
    );
    assert_eq!(
        peer.ask(request(2, "ping", json!({}))).await.unwrap()["result"],
        json!({})
    );
    assert!(
        peer.ask(modern(3, "tools/list", json!({})))
            .await
            .unwrap()
            .get("result")
            .is_some()
    );
    // `initialized` without `initialize` has no effect.
    peer.send(notification("notifications/initialized"))
        .await
        .unwrap();
    assert!(
        peer.ask(request(4, "tools/list", json!({})))
            .await
            .unwrap()
            .get("error")
            .is_some()
    );
}

#[tokio::test]
async fn legacy_and_modern_requests_share_one_pipe() {
    let mut peer = script(&calculator()).await;
    peer.initialize(Revision::V2025_03_26).await.unwrap();
    let legacy = peer.ask(request(1, "tools/list", json!({}))).await.unwrap();
    assert!(legacy["result"].get("resultType").is_none());
    let now = peer.ask(modern(2, "tools/list", json!({}))).await.unwrap();
    assert_eq!(now["result"]["resultType"], "complete");
    // A method that only one era has is unknown in the other.
    assert_eq!(
        peer.ask(modern(3, "ping", json!({}))).await.unwrap()["error"]["code"],
        -32601
    );
    assert_eq!(
        peer.ask(modern(4, "initialize", json!({}))).await.unwrap()["error"]["code"],
        -32601
    );
    assert_eq!(
        peer.ask(request(5, "ping", json!({}))).await.unwrap()["result"],
        json!({})
    );
}

#[tokio::test]
async fn initialize_with_invalid_params_can_be_retried() {
    let mut peer = script(&calculator().strict()).await;
    for params in [
        json!({}),
        json!({"protocolVersion": 1, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    ] {
        let answer = peer.ask(request(1, "initialize", params)).await.unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    peer.initialize(Revision::V2025_06_18).await.unwrap();
}

#[tokio::test]
async fn initialize_with_oversized_params_can_be_retried() {
    let mut peer = script(&calculator()).await;
    let long = "x".repeat(1 << 20);
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {"experimental": {"x": long}},
        "clientInfo": {"name": "x", "version": "1"},
    });
    let answer = peer.ask(request(1, "initialize", params)).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    peer.initialize(Revision::V2025_06_18).await.unwrap();
}

#[tokio::test]
async fn revisions_need_no_order_but_one_entry() {
    let error = oxmcp::testing::connect(&calculator().revisions([]))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("at least one revision"),
        "{error}"
    );

    let server = calculator().revisions([
        Revision::V2024_11_05,
        Revision::LATEST,
        Revision::V2024_11_05,
    ]);
    let answer = answer(&server, Revision::LATEST, "server/discover", json!({})).await;
    assert_eq!(
        answer["result"]["supportedVersions"],
        json!(["2026-07-28", "2024-11-05"])
    );
}

/// The answers to messages that are sent all at once, as by a shell script.
async fn sent_at_once(server: &Server) -> Vec<Value> {
    let (mut peer, transport) = ScriptedPeer::new().await;
    peer.send(initialize("2025-06-18")).await.unwrap();
    peer.send(notification("notifications/initialized"))
        .await
        .unwrap();
    peer.send(request(2, "tools/list", json!({})))
        .await
        .unwrap();
    peer.close().await.unwrap();
    server.run(transport).await.unwrap();
    let mut answers = Vec::new();
    while let Ok(answer) = peer.receive().await {
        answers.push(answer);
    }
    answers.sort_by_key(|answer| answer["id"].as_i64());
    answers
}

#[tokio::test]
async fn client_need_not_wait_for_initialize_response() {
    let plain = calculator();
    let wrapped =
        calculator().layer(middleware::from_fn(
            |request: middleware::Request, next: middleware::Next| async move {
                next.run(request).await
            },
        ));
    for server in [plain, wrapped] {
        let answers = sent_at_once(&server).await;
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(
            answers[1]["result"]["tools"][0]["name"], "add",
            "{answers:?}"
        );
    }
}

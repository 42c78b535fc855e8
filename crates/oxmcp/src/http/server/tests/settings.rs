//! Tests of endpoints without streams, without sessions, and with the user's own IDs or routes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Builder};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    http::{ResponseBody, StreamableHttp},
    server::{Server, Tool},
    session::connection::RequestContext,
};

fn server() -> Server {
    let steps = Tool::new("steps", "Reports", |cx: RequestContext| async move {
        for step in 0..20 {
            cx.progress(step).await;
        }
        "done"
    });
    let asks = Tool::new(
        "asks",
        "Whether it could ask",
        |cx: RequestContext| async move {
            let capabilities = cx.client_capabilities();
            format!("{}", capabilities.elicitation.is_some())
        },
    );
    Server::new("s", "1").tool(steps).tool(asks)
}

pub(crate) fn builder(method: &str) -> Builder {
    Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
}

pub(crate) async fn send(
    endpoint: &StreamableHttp,
    builder: Builder,
    body: &Value,
) -> Response<ResponseBody> {
    let body = Full::new(Bytes::from(body.to_string()));
    endpoint
        .clone()
        .oneshot(builder.body(body).unwrap())
        .await
        .unwrap()
}

async fn message(response: Response<ResponseBody>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

pub(crate) fn request(id: i64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "c", "version": "1"},
    });
    request(1, "initialize", &params)
}

fn call(tool: &str) -> Value {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": 1}});
    request(2, "tools/call", &params)
}

fn modern(method: &str, params: Value) -> (Builder, Value) {
    let mut params = params;
    params["_meta"] = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let mut builder = builder("POST")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        builder = builder.header("mcp-name", name);
    }
    (builder, request(2, method, &params))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// Opens a session, and returns its ID.
async fn open(endpoint: &StreamableHttp) -> String {
    let opened = send(endpoint, builder("POST"), &initialize("2025-11-25")).await;
    assert_eq!(opened.status(), StatusCode::OK);
    opened.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn endpoint_without_streams_answers_only_with_json() {
    let endpoint = StreamableHttp::from(server()).json_only();
    let (builder_of_call, steps) = modern("tools/call", json!({"name": "steps", "arguments": {}}));
    let answer = message(send(&endpoint, builder_of_call, &steps).await).await;
    assert_eq!(text(&answer), "done");
    let (listen, body) = modern("subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(
        send(&endpoint, listen, &body).await.status(),
        StatusCode::NOT_FOUND
    );
    let id = open(&endpoint).await;
    let in_session = |method| builder(method).header("mcp-session-id", &id);
    let answer = message(send(&endpoint, in_session("POST"), &call("steps")).await).await;
    assert_eq!(text(&answer), "done");
    // A request of the server could not reach the client.
    let answer = message(send(&endpoint, in_session("POST"), &call("asks")).await).await;
    assert_eq!(text(&answer), "false");
    for get in [in_session("GET"), builder("GET")] {
        let refused = send(&endpoint, get, &Value::Null).await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(refused.headers()["allow"], "POST");
    }
    // With streams, all of this works.
    let endpoint = StreamableHttp::from(server());
    let id = open(&endpoint).await;
    let in_session = builder("POST").header("mcp-session-id", &id);
    let answer = message(send(&endpoint, in_session, &call("asks")).await).await;
    assert_eq!(text(&answer), "true");
}

#[tokio::test(start_paused = true)]
async fn stateless_endpoint_serves_legacy_requests() {
    let endpoint = StreamableHttp::from(server()).stateless();
    let opened = send(&endpoint, builder("POST"), &initialize("2025-06-18")).await;
    assert!(!opened.headers().contains_key("mcp-session-id"));
    let answer = message(opened).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let accepted = send(&endpoint, builder("POST"), &initialized).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    // Another node could serve these requests as well.
    let endpoint = StreamableHttp::from(server()).stateless();
    for revision in ["2025-06-18", "2025-11-25"] {
        let named = builder("POST").header("mcp-protocol-version", revision);
        let answer = message(send(&endpoint, named, &call("asks")).await).await;
        assert_eq!(text(&answer), "false");
    }
    let stream = send(&endpoint, builder("POST"), &call("steps")).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let body = stream.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(
        body.contains("notifications/progress") && body.contains("done"),
        "{body}"
    );
    // 404 would mean that a session has ended.
    let unknown = send(
        &endpoint,
        builder("POST"),
        &request(3, "no/such", &json!({})),
    )
    .await;
    assert_eq!(unknown.status(), StatusCode::OK);
    assert_eq!(message(unknown).await["error"]["code"], -32601);
    // Without the header the request is of the last revision without it, which has batches.
    let batch = json!([request(1, "ping", &json!({})), call("asks")]);
    let answers = message(send(&endpoint, builder("POST"), &batch).await).await;
    assert_eq!(answers.as_array().unwrap().len(), 2);
    for method in ["GET", "DELETE"] {
        let refused = send(&endpoint, builder(method), &Value::Null).await;
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let (listed, body) = modern("tools/list", json!({}));
    assert_eq!(
        send(&endpoint, listed, &body).await.status(),
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn session_ids_are_customizable() {
    let count = Arc::<AtomicUsize>::default();
    let next = Arc::clone(&count);
    let endpoint = StreamableHttp::from(server()).session_ids(move |parts| {
        let node = parts.headers["x-node"].to_str().unwrap_or_default();
        format!("{node}.{}", next.fetch_add(1, Ordering::Relaxed))
    });
    let opening = |node| builder("POST").header("x-node", node);
    let opened = send(&endpoint, opening("eu"), &initialize("2025-11-25")).await;
    assert_eq!(opened.headers()["mcp-session-id"], "eu.0");
    let named = builder("POST").header("mcp-session-id", "eu.0");
    let answer = message(send(&endpoint, named, &call("asks")).await).await;
    assert_eq!(text(&answer), "true");
    // The same ID again, and invalid IDs.
    count.store(0, Ordering::Relaxed);
    for node in ["eu", "e u", &"x".repeat(200)] {
        let refused = send(&endpoint, opening(node), &initialize("2025-11-25")).await;
        assert_eq!(
            refused.status(),
            StatusCode::INTERNAL_SERVER_ERROR,
            "{node}"
        );
        assert!(!refused.headers().contains_key("mcp-session-id"));
    }
    let named = builder("POST").header("mcp-session-id", "eu.0");
    assert_eq!(
        send(&endpoint, named, &call("asks")).await.status(),
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_can_be_routed_manually() {
    let endpoint = StreamableHttp::from(server());
    let (one, two) = (endpoint.session("one"), endpoint.session("two"));
    for session in [&one, &two] {
        let body = Full::new(Bytes::from(initialize("2025-11-25").to_string()));
        let opened = session.respond(builder("POST").body(body).unwrap()).await;
        assert_eq!(opened.headers()["mcp-session-id"], session.id());
    }
    let asked = |id: &str| {
        let body = Full::new(Bytes::from(call("asks").to_string()));
        builder("POST")
            .header("mcp-session-id", id)
            .body(body)
            .unwrap()
    };
    assert_eq!(one.respond(asked("one")).await.status(), StatusCode::OK);
    assert_eq!(
        one.respond(asked("two")).await.status(),
        StatusCode::NOT_FOUND
    );
    one.close().await;
    assert_eq!(
        one.respond(asked("one")).await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(two.respond(asked("two")).await.status(), StatusCode::OK);
    drop(two);
}

//! Tests of an endpoint's budget: data that is kept for clients of sessions counts as long as it is kept.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};
use tokio::{join, sync::Notify, time::sleep};

use super::settings::{builder, request, send};
use crate::{
    http::StreamableHttp,
    limits::Limits,
    server::{Resource, Server},
    session::middleware,
};

/// The length of the long texts that clients send.
const LONG: usize = 8 << 10;

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x".repeat(LONG), "version": "1"},
    });
    request(1, "initialize", &params)
}

fn files() -> Server {
    let file = Resource::text("file:///a", "a", "");
    Server::new("files", "1").resource(file).subscriptions()
}

fn used(endpoint: &StreamableHttp) -> usize {
    endpoint.state.budget.used()
}

/// Opens a session, and returns its ID.
async fn open(endpoint: &StreamableHttp) -> String {
    let opened = send(endpoint, builder("POST"), &initialize()).await;
    assert_eq!(opened.status(), StatusCode::OK);
    let id = opened.headers()["mcp-session-id"].to_str().unwrap();
    id.to_owned()
}

#[tokio::test(start_paused = true)]
async fn client_metadata_counts_while_its_session_is_open() {
    let endpoint = StreamableHttp::from(files());
    let id = open(&endpoint).await;
    assert!(used(&endpoint) >= LONG, "{}", used(&endpoint));
    let end = builder("DELETE").header("mcp-session-id", id);
    send(&endpoint, end, &json!(null)).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(used(&endpoint), 0);
}

#[tokio::test(start_paused = true)]
async fn client_metadata_beyond_budget_opens_no_session() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let layer = middleware::from_fn({
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        move |request, next| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                begun.notify_one();
                go_on.notified().await;
                next.run(request).await
            }
        }
    });
    // The body and the client's text fit, but not together with the charge that is added in the meantime.
    let limits = Limits::default().http(|http| http.max_bytes(LONG * 3));
    let server = files().layer(layer);
    let endpoint = StreamableHttp::from(server.clone()).limits(limits);
    let words = initialize();
    let opening = send(&endpoint, builder("POST"), &words);
    let others = async {
        begun.notified().await;
        let others = endpoint.state.budget.charge(LONG * 5 / 2);
        go_on.notify_one();
        others
    };
    let (refused, others) = join!(opening, others);
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.sessions().count(), 0);
    drop((refused, others));
    assert_eq!(used(&endpoint), 0);
}

#[tokio::test(start_paused = true)]
async fn initialize_response_beyond_budget_opens_no_session() {
    let limits = Limits::default().http(|http| http.max_bytes(LONG * 3));
    let long = || "x".repeat(LONG * 4);
    let server = files().instructions(long());
    let endpoint = StreamableHttp::from(server.clone()).limits(limits.clone());
    let refused = send(&endpoint, builder("POST"), &initialize()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.sessions().count(), 0);

    for is_json_only in [false, true] {
        let server = files().resource(Resource::text("file:///long", "long", long()));
        let mut endpoint = StreamableHttp::from(server).limits(limits.clone());
        if is_json_only {
            endpoint = endpoint.json_only();
        }
        let id = open(&endpoint).await;
        let builder = builder("POST").header("mcp-session-id", &id);
        let read = request(2, "resources/read", &json!({"uri": "file:///long"}));
        let refused = send(&endpoint, builder, &read).await;
        assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_head_counts_while_it_is_open() {
    let endpoint = StreamableHttp::from(files());
    let id = open(&endpoint).await;
    let before = used(&endpoint);
    let ask = async |number: i64, method: &str| {
        let builder = builder("POST")
            .header("mcp-session-id", &id)
            .header("x-long", "x".repeat(LONG));
        let message = request(number, method, &json!({"uri": "file:///a"}));
        let answered = send(&endpoint, builder, &message).await;
        assert_eq!(answered.status(), StatusCode::OK);
    };
    ask(2, "resources/subscribe").await;
    // The head itself, and the copy for handlers.
    let kept = used(&endpoint) - before;
    assert!(kept >= LONG * 2, "{kept}");
    ask(3, "resources/unsubscribe").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(used(&endpoint), before);
}

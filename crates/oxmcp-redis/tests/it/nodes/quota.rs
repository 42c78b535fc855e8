//! Nodes that share one Redis: the sessions of a principal are counted among all of them, and their health is that of Redis.

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use oxmcp::{Limits, Principal, Server, http::StreamableHttp, tasks::Tasks};
use serde_json::{Value, json};
use tower_service::Service;

use crate::server::{self, own, shared};

async fn node(redis: &server::Server, prefix: &str) -> StreamableHttp {
    let limits = Limits::default().http(|http| http.max_sessions_each(2));
    let server = Server::new("counted", "1").extension(Tasks::in_memory().extension());
    let store = redis.connect(prefix).await.max_sessions(3);
    StreamableHttp::from(server).cluster(store).limits(limits)
}

/// Sends a request to a node: one that opens a session for a principal, or one in a session.
async fn ask(node: &StreamableHttp, who: &str, session: Option<&str>) -> (StatusCode, String) {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"}});
    let body = match session {
        None => json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        Some(_) => json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    };
    let mut request = Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .extension(Principal::new(who));
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let request = request
        .body(Full::<bytes::Bytes>::from(body.to_string()))
        .unwrap();
    let response = node.clone().call(request).await.unwrap();
    let id = response.headers().get("mcp-session-id");
    let id = id.map(|it| it.to_str().unwrap().to_owned());
    (response.status(), id.unwrap_or_default())
}

#[tokio::test]
async fn quotas_of_principals_and_total_span_all_nodes() {
    let Some((redis, prefix)) = shared("quotas of nodes") else {
        return;
    };
    let (one, other) = (node(redis, &prefix).await, node(redis, &prefix).await);
    for node in [&one, &other] {
        let (status, id) = ask(node, "ann", None).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(ask(node, "ann", Some(&id)).await.0, StatusCode::OK);
    }
    for node in [&one, &other] {
        assert_eq!(
            ask(node, "ann", None).await.0,
            StatusCode::TOO_MANY_REQUESTS
        );
    }
    let (status, id) = ask(&one, "bob", None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ask(&other, "bob", Some(&id)).await.0, StatusCode::OK);
    // The session was used there, and the node that opened it does not know that yet, so it may evict the session, but only here.
    assert_eq!(
        ask(&other, "bob", None).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
}

#[tokio::test]
async fn readiness_covers_all_stores_of_the_cluster() {
    let Some(mut redis) = own("the health of Redis", &[]) else {
        return;
    };
    let readiness = node(&redis, "shop").await.strict_readiness().readiness();
    let check = async || {
        let request = Request::new(Full::<bytes::Bytes>::default());
        let response = readiness.clone().call(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let stores = |is: &str| json!({"sessions": is, "events": is, "bus": is, "tasks": is});
    let ready = json!({"status": "ready", "stores": stores("up")});
    assert_eq!(check().await, (StatusCode::OK, ready));
    redis.stop();
    let degraded = json!({"status": "degraded", "stores": stores("down")});
    let begun = tokio::time::Instant::now();
    while check().await != (StatusCode::SERVICE_UNAVAILABLE, degraded.clone()) {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", check().await);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

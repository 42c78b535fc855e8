//! Hooks of extensions that run when serving begins.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{Extension, Server, http::StreamableHttp};
use serde_json::json;
use tower::ServiceExt;

use crate::support::{modern, script};

/// A server with an extension that counts how often serving begins.
fn counting() -> (Server, Arc<AtomicUsize>) {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let panics = Extension::new("com.example/panics").on_serve(|_| panic!("a mistake"));
    let counts = Extension::new("com.example/counts").on_serve(move |server| {
        assert!(server.downgrade().upgrade().is_some());
        count.fetch_add(1, Ordering::Relaxed);
    });
    let server = Server::new("s", "1").extension(panics).extension(counts);
    (server, begun)
}

#[tokio::test]
async fn server_starts_serving_once() {
    let (server, begun) = counting();
    assert_eq!(begun.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        script(&server).await;
        assert_eq!(begun.load(Ordering::Relaxed), 1);
    }
    let _endpoint = StreamableHttp::from(server);
    assert_eq!(begun.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn endpoint_created_in_a_runtime_serves_at_once() {
    let (server, begun) = counting();
    let _endpoint = StreamableHttp::from(server);
    assert_eq!(begun.load(Ordering::Relaxed), 1);
}

#[test]
fn endpoint_created_before_runtime_serves_from_first_request() {
    let (server, begun) = counting();
    let endpoint = StreamableHttp::from(server);
    assert_eq!(begun.load(Ordering::Relaxed), 0);
    let (chosen, begun_chosen) = counting();
    let choosing = StreamableHttp::new(move |_| chosen.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        for (endpoint, begun) in [(endpoint, begun), (choosing, begun_chosen)] {
            for _ in 0..2 {
                let request = http::Request::post("/mcp")
                    .header("host", "localhost")
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", "2026-07-28")
                    .header("mcp-method", "server/discover")
                    .body(modern(1, "server/discover", json!({})).to_string());
                let answered = endpoint.clone().oneshot(request.unwrap()).await.unwrap();
                assert_eq!(answered.status(), 200);
                assert_eq!(begun.load(Ordering::Relaxed), 1);
            }
        }
    });
}

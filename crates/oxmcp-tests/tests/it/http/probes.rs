//! Requests of browsers, probes and health checks: each is answered at once, and opens no session.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use oxmcp::http::{LegacySse, StreamableHttp};
use serde_json::json;

use crate::{
    http::{
        attack_table::ALL,
        mounts::{Mount, Mountable, Target},
        server::peer::{LEGACY, Session},
    },
    support::calculator,
};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

/// The method, the path and `Accept` of a request, and its status at an endpoint, and at one for 2024-11-05 only.
const PROBES: [(&str, &str, &str, u16, u16); 16] = [
    ("GET", "/", BROWSER, 405, 406),
    (
        "GET",
        "/favicon.ico",
        "image/avif,image/webp,*/*;q=0.8",
        405,
        406,
    ),
    ("GET", "/mcp", "*/*", 405, 406),
    ("GET", "/mcp", "text/*", 405, 406),
    ("GET", "/mcp", "text/event-stream;q=0, */*", 405, 406),
    ("GET", "/mcp", "application/json", 406, 406),
    ("GET", "/health", "", 406, 406),
    ("HEAD", "/mcp", "*/*", 405, 405),
    ("HEAD", "/mcp", "text/event-stream", 405, 405),
    ("OPTIONS", "/mcp", "*/*", 405, 405),
    ("PUT", "/mcp", "text/event-stream", 405, 405),
    ("POST", "/register", "*/*", 415, 400),
    (
        "GET",
        "/.well-known/oauth-protected-resource",
        "*/*",
        404,
        404,
    ),
    (
        "GET",
        "/.well-known/oauth-authorization-server/mcp",
        "text/event-stream",
        404,
        404,
    ),
    (
        "GET",
        "/mcp/.well-known/openid-configuration",
        "application/json",
        404,
        404,
    ),
    ("HEAD", "/.well-known/mcp.json", "*/*", 404, 404),
];

fn probe(method: &str, path: &str, accept: &str) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    request = request.header("host", "localhost");
    if !accept.is_empty() {
        request = request.header("accept", accept);
    }
    request.body(Full::default()).unwrap()
}

async fn is_answered(
    endpoint: &impl Mountable,
    mount: Mount,
    status: impl Fn(&(&str, &str, &str, u16, u16)) -> u16,
) {
    let endpoint = mount.serve(endpoint).await;
    for row @ (method, path, accept, ..) in &PROBES {
        let response = endpoint.respond(probe(method, path, accept)).await;
        assert_eq!(response.status().as_u16(), status(row), "{mount:?} {row:?}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.is_empty(), *method == "HEAD", "{mount:?} {row:?}");
    }
}

#[tokio::test]
async fn probes_are_answered_and_open_no_session() {
    for mount in ALL {
        let server = calculator();
        let endpoint = StreamableHttp::from(server.clone());
        is_answered(&endpoint, *mount, |row| row.3).await;
        let old = LegacySse::from(server.clone());
        is_answered(&old, *mount, |row| row.4).await;
        assert_eq!(server.sessions().count(), 0, "{mount:?}");
    }
}

#[tokio::test]
async fn clients_that_ask_for_events_get_a_stream() {
    for mount in ALL {
        let server = calculator();
        let endpoint = mount.serve(&StreamableHttp::from(server.clone())).await;
        for accept in ["text/event-stream", "*/*;q=0.1, Text/Event-Stream;q=0.9"] {
            let response = endpoint.respond(probe("GET", "/sse", accept)).await;
            assert_eq!(response.status(), StatusCode::OK);
            let first = response.into_body().frame().await.unwrap().unwrap();
            assert!(first.into_data().unwrap().starts_with(b"event: endpoint"));
        }
        // A client that names its session is no probe.
        let session = Session::open_in(&endpoint, LEGACY, json!({})).await;
        let mut request = probe("GET", "/mcp", "*/*");
        let id = session.id.parse().unwrap();
        request.headers_mut().insert("mcp-session-id", id);
        assert_eq!(endpoint.respond(request).await.status(), StatusCode::OK);
    }
}

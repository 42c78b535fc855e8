//! Redirects and credentials: a request goes only to the server that it was meant for.

use ::http::Response;
use bytes::Bytes;
use oxmcp::{
    http::{Endpoint, HttpBody},
    transport::Transport,
};
use serde_json::json;

use crate::http::client::peer::{Asked, Peer, both, discovered, modern, text};

fn redirect(asked: Asked, status: u16, to: &str) {
    let response = Response::builder().status(status).header("location", to);
    asked.respond(response.body(HttpBody::from(Bytes::new())).unwrap());
}

// Attack: credentials that are sent to another origin.
#[tokio::test(start_paused = true)]
async fn redirect_within_origin_preserves_the_whole_request() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern();
    let endpoint = endpoint.bearer_token("secret");
    let (session, ()) = both(client.connect(endpoint), async {
        for status in [307, 308] {
            let asked = peer.post("server/discover").await;
            redirect(asked, status, "/mcp/");
        }
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.request.uri(), "http://server.example/mcp/");
        assert_eq!(asked.header("authorization"), Some("Bearer secret"));
        assert_eq!(asked.header("mcp-method"), Some("server/discover"));
        asked.result(discovered());
    })
    .await;
    assert!(session.is_ok());
}

// Attack: credentials that are sent to another origin.
#[tokio::test(start_paused = true)]
async fn cross_origin_redirect_sends_nothing() {
    for to in [
        "http://evil.example/mcp",
        "http://server.example:81/mcp",
        "//evil.example/",
    ] {
        let (mut peer, endpoint) = Peer::endpoint();
        let client = modern();
        let (session, ()) = both(client.connect(endpoint.bearer_token("secret")), async {
            redirect(peer.next().await, 307, to);
        })
        .await;
        let error = session.unwrap_err();
        assert!(error.message().contains("another origin"), "{error}");
        assert_eq!(error.http_status(), Some(307));
        assert!(peer.is_quiet());
    }
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn redirect_loop_ends() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern();
    let (session, ()) = both(client.connect(endpoint), async {
        for _ in 0..6 {
            redirect(peer.next().await, 308, "/mcp");
        }
    })
    .await;
    assert!(
        session
            .unwrap_err()
            .message()
            .contains("redirects more than 5 times")
    );
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_protocol_cannot_be_overridden() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern();
    let endpoint = endpoint
        .header("mcp-method", "tools/call")
        .header("accept", "*/*");
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.next().await;
        assert_eq!(asked.header("mcp-method"), Some("server/discover"));
        assert_eq!(
            asked.header("accept"),
            Some("application/json, text/event-stream")
        );
        assert_eq!(
            asked.request.headers().get_all("mcp-method").iter().count(),
            1
        );
        asked.result(discovered());
    })
    .await;
    let session = session.unwrap();
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        peer.next().await.result(text("3"));
    })
    .await;
    assert!(answer.is_ok());
}

// Attack: leaks of secrets.
#[tokio::test]
async fn secrets_never_appear_in_debug_or_errors() {
    let endpoint = Endpoint::new("https://me:secret@server.example/mcp?key=secret#secret")
        .header("x-key", "secret");
    for shown in [
        format!("{endpoint:?}"),
        format!("{endpoint:#?}"),
        endpoint.name(),
        endpoint.identity().unwrap(),
        endpoint.authorization().unwrap(),
    ] {
        assert!(!shown.contains("secret"), "{shown}");
    }
    assert_eq!(endpoint.name(), "the server at https://server.example/mcp");
}

#[test]
fn endpoints_are_distinguished_by_url_and_credentials() {
    let url = "https://server.example/mcp";
    let plain = Endpoint::new(url);
    let identity = |url: &str| Endpoint::new(url).identity();
    assert_eq!(
        plain.identity(),
        identity("https://me:secret@server.example:443/mcp#x")
    );
    assert_ne!(
        plain.identity(),
        identity("https://server.example/mcp?tenant=1")
    );
    assert_ne!(identity("https://a/?t=1"), identity("https://a/?t=2"));
    let with = |token: &str| Endpoint::new(url).bearer_token(token).authorization();
    assert_eq!(with("a"), with("a"));
    assert_ne!(with("a"), with("b"));
    assert_ne!(with("a"), plain.authorization());
    let (_peer, own) = Peer::endpoint();
    assert_eq!(own.authorization(), None, "nobody knows what it adds");
}

#[tokio::test(start_paused = true)]
async fn url_user_and_password_are_sent_as_credentials() {
    let (mut peer, client) = Peer::new();
    let endpoint = Endpoint::new("http://me:secret@server.example/mcp").http_client(client);
    let client = modern();
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.next().await;
        assert_eq!(asked.header("authorization"), Some("Basic bWU6c2VjcmV0"));
        assert_eq!(asked.request.uri(), "http://server.example/mcp");
        asked.result(discovered());
    })
    .await;
    assert!(session.is_ok());
}

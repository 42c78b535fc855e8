//! Servers of 2024-11-05: one event stream, and another URL for messages.

use oxmcp::{ClientSession, Revision, http::Endpoint};
use serde_json::json;

use crate::http::client::peer::{Chunks, Peer, URL, both, client, text};

fn old() -> oxmcp::Client {
    client().revisions([Revision::V2024_11_05])
}

/// Serves the opening of a session, from the GET on.
async fn serve(peer: &mut Peer) -> Chunks {
    serve_as(peer, "text/event-stream").await
}

/// Serves the opening of a session, with a stream of this media type.
async fn serve_as(peer: &mut Peer, media_type: &str) -> Chunks {
    let asked = peer.get().await;
    assert_eq!(asked.request.uri(), URL);
    assert_eq!(asked.header("accept"), Some("text/event-stream"));
    let stream = asked.streams(200, media_type);
    stream.raw("event: endpoint\r\ndata: /messages?session=1\r\n\r");
    stream.raw("\n: alive\r\n\r\n");
    let asked = peer.post("initialize").await;
    assert_eq!(
        asked.request.uri(),
        "http://server.example/messages?session=1"
    );
    let answer = asked.reply_to(json!({
        "protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"},
    }));
    asked.text(202, "text/plain", "Accepted");
    stream.raw(format!("event: message\ndata: {answer}\n\n"));
    let asked = peer.post("notifications/initialized").await;
    assert_eq!(asked.header("mcp-protocol-version"), None);
    asked.status(202);
    stream
}

async fn works(peer: &mut Peer, session: &ClientSession, stream: &Chunks) {
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        let asked = peer.post("tools/call").await;
        assert_eq!(
            asked.request.uri(),
            "http://server.example/messages?session=1"
        );
        // This transport has neither of these headers.
        assert_eq!(asked.header("mcp-protocol-version"), None);
        assert_eq!(asked.header("mcp-session-id"), None);
        let answer = asked.reply_to(text("3"));
        asked.status(202);
        stream.message(&answer);
    })
    .await;
    assert_eq!(answer.unwrap().to_text(), "3");
}

#[tokio::test(start_paused = true)]
async fn server_of_2024_is_used_after_failed_probes() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let (session, stream) = both(client.connect(endpoint), async {
        let asked = peer.post("server/discover").await;
        assert!(asked.header("mcp-protocol-version").is_some());
        asked.status(404);
        peer.post("initialize").await.status(404);
        serve(&mut peer).await
    })
    .await;
    let session = session.unwrap();
    works(&mut peer, &session, &stream).await;
}

#[tokio::test(start_paused = true)]
async fn stream_may_have_another_media_type() {
    for media_type in ["text/plain", "application/json"] {
        let (mut peer, http) = Peer::new();
        let endpoint = Endpoint::sse_2024(URL).http_client(http);
        let client = old();
        let serving = serve_as(&mut peer, media_type);
        let (session, stream) = both(client.connect(endpoint), serving).await;
        works(&mut peer, &session.unwrap(), &stream).await;
    }
}

#[tokio::test(start_paused = true)]
async fn refused_initialize_falls_back_to_2024_transport() {
    for status in [400, 404, 405] {
        let (mut peer, endpoint) = Peer::endpoint();
        let client = old();
        let (session, stream) = both(client.connect(endpoint), async {
            let asked = peer.post("initialize").await;
            asked.text(status, "text/plain", "what?");
            serve(&mut peer).await
        })
        .await;
        let session = session.unwrap();
        works(&mut peer, &session, &stream).await;
    }
}

#[tokio::test(start_paused = true)]
async fn known_2024_server_is_not_probed() {
    let (mut peer, http) = Peer::new();
    let endpoint = Endpoint::sse_2024(URL).http_client(http);
    let client = old();
    let (session, stream) = both(client.connect(endpoint), serve(&mut peer)).await;
    let session = session.unwrap();
    works(&mut peer, &session, &stream).await;
    session.close().await.unwrap();
    stream.given_up().await;
    assert!(peer.is_quiet());
}

// Attack: credentials that are sent to another origin.
#[tokio::test(start_paused = true)]
async fn messages_are_posted_only_to_the_same_origin() {
    for url in [
        "http://evil.example/messages",
        "//evil.example/",
        "https://server.example/",
        "file:///x",
    ] {
        let (mut peer, http) = Peer::new();
        let endpoint = Endpoint::sse_2024(URL)
            .http_client(http)
            .bearer_token("secret");
        let client = old();
        let (session, ()) = both(client.connect(endpoint), async {
            let stream = peer.get().await.events();
            stream.raw(format!("event: endpoint\ndata: {url}\n\n"));
            stream.given_up().await;
        })
        .await;
        let error = session.unwrap_err();
        assert!(error.message().contains("another origin"), "{url}: {error}");
        assert!(peer.is_quiet());
    }
}

// Attack: credentials that are sent to another origin.
#[tokio::test(start_paused = true)]
async fn foreign_origin_error_survives_an_earlier_refusal() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = old();
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.post("initialize").await;
        asked.text(404, "text/plain", "what?");
        let stream = peer.get().await.events();
        stream.raw("event: endpoint\ndata: http://evil.example/messages\n\n".to_owned());
        stream.given_up().await;
    })
    .await;
    let error = session.unwrap_err();
    assert!(error.message().contains("another origin"), "{error}");
    assert!(error.message().contains("evil.example"), "{error}");
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn first_refusal_is_reported_without_a_stream() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = old();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.post("initialize")
            .await
            .text(404, "text/plain", "no such page");
        peer.get().await.text(200, "text/html", "<p>hello</p>");
    })
    .await;
    let error = session.unwrap_err();
    assert!(error.message().contains("no such page"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn modern_refusal_does_not_request_a_stream() {
    for (status, code) in [
        (400, -32022),
        (400, -32020),
        (404, -32601),
        (401, -32000),
        (500, -32000),
    ] {
        let (mut peer, endpoint) = Peer::endpoint();
        let client = old();
        let (session, ()) = both(client.connect(endpoint), async {
            let asked = peer.post("initialize").await;
            let error = json!({"code": code, "message": "no"});
            asked.json(status, json!({"jsonrpc": "2.0", "id": 1, "error": error}));
        })
        .await;
        let error = session.unwrap_err();
        assert_eq!(error.code().value(), code);
        assert!(peer.is_quiet(), "{status} {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn stream_end_ends_the_session() {
    let (mut peer, http) = Peer::new();
    let endpoint = Endpoint::sse_2024(URL).http_client(http);
    let client = old();
    let (session, stream) = both(client.connect(endpoint), serve(&mut peer)).await;
    let session = session.unwrap();
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        peer.post("tools/call").await.status(202);
        stream.breaks();
    })
    .await;
    let error = answer.unwrap_err();
    assert!(
        error.is_closed() && error.message().contains("2024-11-05"),
        "{error}"
    );
    assert!(session.wait().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn refused_message_fails_its_call() {
    let (mut peer, http) = Peer::new();
    let endpoint = Endpoint::sse_2024(URL).http_client(http);
    let client = old();
    let (session, stream) = both(client.connect(endpoint), serve(&mut peer)).await;
    let session = session.unwrap();
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        peer.post("tools/call").await.text(500, "text/plain", "oh");
    })
    .await;
    assert_eq!(answer.unwrap_err().http_status(), Some(500));
    works(&mut peer, &session, &stream).await;
}

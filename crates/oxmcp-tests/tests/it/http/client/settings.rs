//! Settings of an endpoint: tokens that change, the standalone stream, and URLs that are wrong.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use oxmcp::{
    Error,
    http::{DefaultClient, Endpoint},
};

use crate::http::client::peer::{Peer, both, client, discovered, legacy, modern, text};

#[tokio::test(start_paused = true)]
async fn token_is_asked_for_before_each_request() {
    let (mut peer, endpoint) = Peer::endpoint();
    let asked = Arc::new(AtomicU32::new(0));
    let endpoint = endpoint.bearer_token_from(move || {
        let asked = Arc::clone(&asked);
        async move {
            match asked.fetch_add(1, Ordering::Relaxed) {
                2 => Err(Error::closed("the vault is locked")),
                number => Ok(format!("token{number}\n")),
            }
        }
    });
    let (session, ()) = both(modern().connect(endpoint), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token0"));
        asked.result(discovered());
    })
    .await;
    let session = session.unwrap();
    let call = session.call_tool("t", ()).into_future();
    let (result, ()) = both(call, async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token1"));
        asked.result(text("done"));
    })
    .await;
    result.unwrap();
    // Without a token no request is sent.
    let error = session.call_tool("t", ()).await.unwrap_err();
    let said = "could not get a token: the vault is locked";
    assert!(
        error.is_closed() && error.message().ends_with(said),
        "{error}"
    );
    assert!(peer.is_quiet());
}

#[test]
fn default_client_can_be_wrapped() {
    let _ = Endpoint::new("https://example.com/mcp").http_client(DefaultClient::default());
}

#[tokio::test(start_paused = true)]
async fn standalone_stream_can_be_disabled() {
    let (mut peer, endpoint) = Peer::endpoint();
    let endpoint = endpoint.standalone_stream(false);
    let client = legacy();
    let (session, ()) = both(client.connect(endpoint), peer.initialize(Some("s"))).await;
    let session = session.unwrap();
    let call = session.call_tool("t", ()).into_future();
    let (result, ()) = both(call, async {
        peer.post("tools/call").await.result(text("done"));
    })
    .await;
    result.unwrap();
    assert!(peer.is_quiet());
}

#[tokio::test]
async fn url_without_scheme_error_suggests_a_fix() {
    for (wrong, right) in [
        ("example.com/mcp", "https://example.com/mcp"),
        ("example.com:8080/mcp", "https://example.com:8080/mcp"),
        ("//example.com/mcp", "https://example.com/mcp"),
        ("localhost:3000/mcp", "http://localhost:3000/mcp"),
        ("127.0.0.1:3000/mcp?key=secret", "http://127.0.0.1:3000/mcp"),
        ("[::1]:3000/mcp", "http://[::1]:3000/mcp"),
    ] {
        let error = client().connect(Endpoint::new(wrong)).await.unwrap_err();
        let expected =
            format!("the URL must begin with http:// or https://; did you mean {right}?");
        assert_eq!(error.message(), expected, "{wrong}");
    }
    let error = client().connect(Endpoint::new("ftp://a/b")).await;
    assert!(error.unwrap_err().message().contains("not with ftp:"));
}

#[tokio::test(start_paused = true)]
async fn http_errors_name_the_url() {
    let (mut peer, endpoint) = Peer::endpoint();
    let (session, ()) = both(modern().connect(endpoint), async {
        let asked = peer.post("server/discover").await;
        asked.text(502, "text/plain", "the gateway is bad");
    })
    .await;
    let error = session.unwrap_err();
    for words in [
        "502 Bad Gateway",
        "http://server.example/mcp",
        "the gateway is bad",
    ] {
        assert!(error.message().contains(words), "{error}");
    }
}

//! Errors of servers, as callers see them.

use std::sync::{Arc, Mutex};

use oxmcp::{Client, Error, ErrorCode, Limits, http::Endpoint, transport::Logging};
use serde_json::{Value, json};

use crate::http::client::peer::{Asked, Peer, both, discover, discovered, modern, text};

/// The error of a call that gets this answer, in a session that continues.
async fn error_of(answer: impl FnOnce(Asked)) -> Error {
    let (mut peer, session) = discover().await;
    let calling = async { session.call_tool("add", json!({})).await };
    let (result, ()) = both(calling, async { answer(peer.post("tools/call").await) }).await;
    let calling = async { session.call_tool("add", json!({})).await };
    let (next, ()) = both(calling, async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert!(next.is_ok(), "the session goes on");
    result.unwrap_err()
}

fn refusal(id: &Value, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": {"x": 1}}})
}

#[tokio::test(start_paused = true)]
async fn json_rpc_error_counts_whatever_the_status() {
    for status in [400, 401, 404, 500] {
        let error = error_of(|asked| {
            let id = asked.body()["id"].clone();
            asked.json(status, refusal(&id, -32602));
        })
        .await;
        assert_eq!(error.code(), ErrorCode::INVALID_PARAMS);
        assert_eq!(error.http_status(), Some(status));
        assert_eq!(error.data().unwrap().get(), r#"{"x":1}"#);
        assert_eq!(error.is_unauthorized(), status == 401);
    }
    // A server that cannot read a request cannot name its id.
    let error = error_of(|asked| asked.json(400, refusal(&Value::Null, -32700))).await;
    assert_eq!(error.code(), ErrorCode::PARSE_ERROR);
}

#[tokio::test(start_paused = true)]
async fn error_status_without_json_quotes_the_server() {
    let error = error_of(|asked| asked.text(503, "text/html", "<h1>come back\nlater</h1>")).await;
    assert_eq!(error.http_status(), Some(503));
    assert!(!error.is_protocol() && !error.is_closed() && !error.is_network());
    let text = error.message();
    assert!(
        text.contains("503 Service Unavailable") && text.contains("come back later"),
        "{text}"
    );
    let error = error_of(|asked| asked.status(401)).await;
    assert!(
        error.is_unauthorized() && error.message().contains("credentials"),
        "{error}"
    );
    let error = error_of(|asked| asked.status(403)).await;
    assert!(!error.is_unauthorized() && error.http_status() == Some(403));
}

/// Every answer of the server is a 404 page: the path is wrong, or the whole URL.
#[tokio::test(start_paused = true)]
async fn error_of_another_website_questions_the_url() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = Client::new("client", "1.0.0");
    let refusing = async {
        loop {
            peer.next().await.text(404, "text/html", "no such page");
        }
    };
    let error = tokio::select! {
        result = client.connect(endpoint) => result.unwrap_err(),
        () = refusing => unreachable!("it goes on for ever"),
    };
    assert_eq!(error.http_status(), Some(404));
    assert_eq!(
        error.message(),
        "the server returned 404 Not Found (http://server.example/mcp): no such page; is this the URL of an MCP server?"
    );
}

#[tokio::test(start_paused = true)]
async fn failing_connection_affects_one_call() {
    let error = error_of(|asked| asked.fail(Error::network("connection reset"))).await;
    assert!(error.is_network() && !error.is_closed());
    let text = error.message();
    assert!(
        text.contains("POST http://server.example/mcp") && text.contains("reset"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn unusable_body_fails_the_call() {
    for (form, body) in [
        ("text/html", "<p>welcome</p>"),
        ("application/json", ""),
        ("application/json", "[]"),
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        ),
        ("application/json", "not json"),
    ] {
        let error = error_of(|asked| asked.text(200, form, body)).await;
        assert!(
            error.message().contains("the server"),
            "{form} {body}: {error}"
        );
    }
    let error = error_of(|asked| asked.status(202)).await;
    assert!(error.message().contains("202 Accepted"), "{error}");
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn responses_are_bounded() {
    let limits = Limits::default().max_message_bytes(1000);
    let (mut peer, endpoint) = Peer::endpoint();
    let client = modern().limits(limits);
    let (session, ()) = both(client.connect(endpoint), async {
        peer.next().await.result(discovered());
    })
    .await;
    let session = session.unwrap();
    for streams in [false, true] {
        let calling = async { session.call_tool("add", json!({})).await };
        let (result, ()) = both(calling, async {
            let asked = peer.post("tools/call").await;
            let message = asked.reply_to(text(&"x".repeat(1000)));
            if streams {
                let chunks = asked.events();
                chunks.message(&message);
                chunks.given_up().await;
            } else {
                asked.json(200, message);
            }
        })
        .await;
        let error = result.unwrap_err();
        assert!(
            error.is_limit() && error.message().contains("1000 bytes"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_endpoint_is_refused_on_connect() {
    let table = [
        (Endpoint::new("server.example/mcp"), "URL"),
        (Endpoint::new("ftp://server.example"), "http://"),
        (Endpoint::new("http://a").header("a b", "c"), "a b"),
        (
            Endpoint::new("http://a").header("a", "se\ncret"),
            "header `a`",
        ),
    ];
    for (endpoint, what) in table {
        let error = modern().connect(endpoint).await.unwrap_err();
        assert!(error.message().contains(what), "{error}");
        assert!(!error.message().contains("cret"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_calls_are_logged() {
    let (mut peer, endpoint) = Peer::endpoint();
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&lines);
    let logging = Logging::with(endpoint, move |line| {
        log.lock().unwrap().push(line.to_owned());
    });
    let client = modern();
    let (session, ()) = both(client.connect(logging), async {
        peer.next().await.status(503);
    })
    .await;
    assert_eq!(session.unwrap_err().http_status(), Some(503));
    let failed = "<- (request 1 failed: the server returned 503 Service Unavailable (http://server.example/mcp); \
        retry only if the call is idempotent)";
    assert_eq!(lines.lock().unwrap().last().unwrap(), failed);
}

//! Attacks on the client, by hostile servers on real sockets.

use std::time::Duration;

use oxmcp::{Client, ClientSession, Limits, Result, Revision, http::Endpoint};
use serde_json::{Value, json};

use crate::http::attacks::raw_sockets::{canned, discovered, response};

fn client() -> Client {
    let limits = Limits::default().max_message_bytes(10_000);
    Client::new("victim", "1")
        .revisions([Revision::V2025_11_25, Revision::LATEST])
        .limits(limits)
}

async fn call(session: &ClientSession, arguments: Value) -> Result<String> {
    let call = session.call_tool("add", arguments);
    let result = call.timeout(Duration::from_secs(30)).await?;
    Ok(result.to_text())
}

fn answer(id: u64, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    let result = json!({"resultType": "complete", "content": content});
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// For each of these answers, calls a tool that is answered with it, and calls the tool once more, which is answered well.
async fn endures(bad: Vec<Vec<u8>>) {
    let mut answers = vec![discovered()];
    // Connections are not reused, and each call has the next id.
    for (call, bytes) in bad.iter().enumerate() {
        answers.push(bytes.clone());
        let id = 3 + 2 * call as u64;
        answers.push(response("application/json", answer(id, "well")));
    }
    let (url, _serving) = canned(answers).await;
    let session = client().connect(Endpoint::new(&url)).await.unwrap();
    for bytes in bad {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        let failed = call(&session, json!({})).await;
        let error = failed.expect_err(&shown);
        assert!(!error.is_timeout(), "{shown}: {error}");
        let text = error.to_string();
        assert!(text.len() < 2_000 && !text.contains('\u{1b}'), "{text}");
        assert_eq!(call(&session, json!({})).await.expect(&shown), "well");
    }
}

fn json_bodies() -> Vec<Vec<u8>> {
    let deep = "[".repeat(5_000);
    let texts = [
        "",
        "null",
        "[]",
        "{",
        "\u{0}",
        r#"{"jsonrpc":"2.0","id":2}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":7}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":1e99,"message":7}}"#,
        r#"{"jsonrpc":"2.0","id":[2],"result":{}}"#,
        r#"{"jsonrpc":"2.0","Id":2,"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        "<html>\u{1b}[2J\u{1b}]0;gone\u{7}</html>",
        &deep,
    ];
    let mut bodies: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    bodies.push(b"\xff\xfe\xfd".to_vec());
    bodies
}

// Attack: malformed input that ends a process and input that two readers read differently.
#[tokio::test]
async fn no_json_response_crashes_a_client() {
    let bodies = json_bodies();
    let bad = bodies.iter().map(|body| response("application/json", body));
    endures(bad.collect()).await;
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn no_event_stream_crashes_a_client() {
    let mut streams: Vec<Vec<u8>> = json_bodies()
        .iter()
        .map(|body| [b"data: ", &body[..], b"\n\n"].concat())
        .collect();
    let texts: [&[u8]; 9] = [
        b"data",
        b"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"res",
        b"\xef\xbb\xbf\xef\xbb\xbfdata: {}\n\n",
        b"\r\r\r\n\n\n:\n\n",
        b"event: error\ndata: {}\n\n",
        b"id: \0\nretry: -1\ndata:\n\n",
        b"\xff: \xff\n\xff\n\n",
        b"retry: 99999999999999999999999999\n\n",
        b"data: \"\ndata: \"\n\n",
    ];
    streams.extend(texts.map(<[u8]>::to_vec));
    let bad = streams
        .iter()
        .map(|body| response("text/event-stream", body));
    endures(bad.collect()).await;
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn no_http_response_crashes_a_client() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let whole = answer(2, "x");
    let texts = [
        String::new(),
        "\r\n\r\n".into(),
        "SSH-2.0-OpenSSH_9.9\r\n".into(),
        "HTTP/1.1 999 What\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into(),
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n".into(),
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".into(),
        format!("{head}content-length: 99999999\r\n\r\n{whole}"),
        format!("{head}content-length: 5\r\n\r\n{whole}"),
        format!("{head}content-length: 5\r\ncontent-length: 6\r\n\r\n{whole}"),
        format!("{head}transfer-encoding: chunked\r\n\r\nffffffffffffffffffff\r\n{whole}"),
        format!("{head}transfer-encoding: chunked\r\n\r\n5\r\n{whole}"),
        format!("{head}content-encoding: gzip\r\ncontent-length: 3\r\n\r\n\u{1f}ab"),
        format!("{head}x: {}\r\n\r\n", "y".repeat(1 << 20)),
        "HTTP/1.1 500 \u{1b}[2J\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".into(),
    ];
    endures(texts.map(String::into_bytes).to_vec()).await;
}

// Attack: resource exhaustion.
#[tokio::test]
async fn server_responses_events_and_errors_are_bounded() {
    let long = "x".repeat(1 << 20);
    let error = |form: &str, body: &str| {
        format!(
            "HTTP/1.1 500 Oh\r\ncontent-type: {form}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    endures(vec![
        response("application/json", answer(2, &long)),
        response(
            "text/event-stream",
            format!("data: {}\n\n", answer(4, &long)),
        ),
        response("text/event-stream", format!("data: {long}")),
        response("text/event-stream", format!("id: {long}\n\n")),
        response("text/event-stream", long.clone()),
        response("text/event-stream", "data: x\n".repeat(100_000)),
        error("text/plain", &long),
        error("application/json", &answer(14, &long)),
        error("text/html", &long),
    ])
    .await;
}

// Attack: header injection.
#[tokio::test]
async fn model_output_never_becomes_a_header() {
    let property = json!({"type": "string", "x-mcp-header": "Region"});
    let schema = json!({"type": "object", "properties": {"region": property}});
    let listed = json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private",
        "tools": [{"name": "add", "inputSchema": schema}]});
    let listed = json!({"jsonrpc": "2.0", "id": 2, "result": listed}).to_string();
    let values = [
        "a\r\nX-Evil: 1",
        "a\nX-Evil: 1\n\nGET /evil HTTP/1.1",
        "\u{e9}\r\n\r\n{}",
        "\u{0}",
        "=?base64?DQpYLUV2aWw6IDE=?=",
    ];
    let mut answers = vec![discovered(), response("application/json", listed)];
    for id in 3..3 + values.len() as u64 {
        answers.push(response("application/json", answer(id, "3")));
    }
    let (url, serving) = canned(answers).await;
    let session = client().connect(Endpoint::new(&url)).await.unwrap();
    session.tools().all().await.unwrap();
    for value in values {
        call(&session, json!({"region": value})).await.unwrap();
    }
    for asked in &serving.await.unwrap()[2..] {
        let (head, _) = asked.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.contains("\r\nmcp-param-region: =?base64?"), "{head}");
        assert!(!head.contains("evil") && head.is_ascii(), "{head}");
    }
}

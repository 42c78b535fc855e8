//! Malformed text: nested too deeply, too long, not UTF-8, incomplete.

use oxmcp::{Limits, Revision, Server, Tool, protocol::CallToolResult, transport::stream};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::session::*;

const PARSE_ERROR: i64 = -32700;

#[tokio::test(start_paused = true)]
async fn deep_nesting_does_not_end_the_session() {
    let raw = Tool::dynamic(
        "raw",
        "Takes anything",
        json!({"type": "object"}),
        |_cx, arguments| async move { Ok(CallToolResult::text(arguments.get().len().to_string())) },
    );
    let server = server().tool(raw.without_validation());
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (method, params) in [
        ("ping", format!(r#"{{"x":{deep}}}"#)),
        ("tools/list", format!(r#"{{"cursor":{deep}}}"#)),
        ("tools/list", format!(r#"{{"_meta":{{"x":{deep}}}}}"#)),
        ("tools/list", format!(r#"{{"_meta":{deep}}}"#)),
        (
            "tools/call",
            format!(r#"{{"name":"raw","arguments":{{"x":{deep}}}}}"#),
        ),
        (
            "tools/call",
            format!(r#"{{"name":"fast","arguments":{{"x":{deep}}}}}"#),
        ),
        (
            "tools/call",
            format!(r#"{{"name":"echo","arguments":{{"text":{deep}}}}}"#),
        ),
        ("tools/call", format!(r#"{{"name":{deep}}}"#)),
        ("no/such", format!(r#"{{"x":{deep}}}"#)),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        let refused = answer["error"]["code"] == PARSE_ERROR;
        assert!(answer["id"] == 1 || refused, "{method}: {answer}");
        assert_alive(&mut peer).await;
    }
    // Ordinary nesting is far below the limit.
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    peer.send_line(format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"raw","arguments":{{"x":{nested}}}}}}}"#
    ))
    .await
    .unwrap();
    assert_eq!(text(&peer.receive().await.unwrap()), "206");
    for line in [&deep, &"[".repeat(100_000), &r#"{"a":"#.repeat(100_000)] {
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        assert_alive(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_utf_8_is_refused() {
    let mut peer = client_of(&server().strict(), Revision::V2025_11_25).await;
    for line in [
        &b"\xff\xfe"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xed\xa0\x80\",\"method\":\"ping\"}",
    ] {
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"]["code"], PARSE_ERROR, "{answer}");
        assert_alive(&mut peer).await;
    }
}

/// A connection to `server` that sends arbitrary bytes.
async fn bytes_to(server: &Server) -> BufReader<DuplexStream> {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    server.connect(stream(theirs)).await.unwrap();
    BufReader::new(ours)
}

async fn line(from: &mut BufReader<DuplexStream>) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

#[tokio::test(start_paused = true)]
async fn hundred_megabyte_line_is_skipped_and_answered_once() {
    let limits = Limits::default().max_message_bytes(1 << 20);
    let mut peer = bytes_to(&server().limits(limits)).await;
    let chunk = vec![b'['; 1 << 20];
    for _ in 0..100 {
        peer.write_all(&chunk).await.unwrap();
    }
    peer.write_all(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .await
        .unwrap();
    let answer = line(&mut peer).await;
    assert_eq!(answer["error"]["code"], PARSE_ERROR);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("1048576")
    );
    assert_eq!(line(&mut peer).await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn truncated_message_at_end_of_input_is_answered() {
    let (mut ours, theirs) = tokio::io::duplex(64 << 10);
    let session = server().connect(stream(theirs)).await.unwrap();
    ours.write_all(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,",
    )
    .await
    .unwrap();
    ours.shutdown().await.unwrap();
    let mut peer = BufReader::new(ours);
    assert_eq!(line(&mut peer).await["id"], 1);
    assert_eq!(line(&mut peer).await["error"]["code"], PARSE_ERROR);
    session.wait().await.unwrap();
}

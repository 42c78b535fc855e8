//! Bytes that no decoder expects, and a URI that is slow to match. The server must answer or close the connection, and continue.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;
use oxmcp::{ResourceTemplate, Server, Tool, http::StreamableHttp};
use serde_json::{Value, json};

use crate::{
    http::server::peer::{Session, builder, call_modern, json, modern_builder, send},
    http::{
        attacks::{raw_http2, raw_sockets as net},
        mounts::{Mount, Target, mounts},
    },
    support::{calculator, modern, request},
};

/// Bodies that are no messages, or unusual ones.
fn bodies() -> Vec<Vec<u8>> {
    let deep = 100_000;
    let texts = [
        "",
        " ",
        "\n\n\n",
        "null",
        "true",
        "0",
        "\"\"",
        "[]",
        "[[]]",
        "[null]",
        "[1,2",
        "[{}]",
        "{}",
        "{",
        "}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1e400,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":99999999999999999999,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\\ud800\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":[]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        "\u{0}",
    ];
    let mut bodies: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    bodies.push(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}".to_vec());
    bodies.push(b"\xff\xfe{\x00}\x00".to_vec());
    bodies.push((0..=255).collect());
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        bodies.push(open.repeat(deep).into_bytes());
        let nested = format!("{}1{}", open.repeat(deep), close.repeat(deep));
        bodies.push(nested.clone().into_bytes());
        let call = |arguments: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"any\",\"arguments\":{arguments}}}}}"
            )
        };
        bodies.push(call(&format!("{{\"a\":{nested}}}")).into_bytes());
    }
    bodies.push(format!("\"{}\"", "\\u0000".repeat(100_000)).into_bytes());
    bodies.push(format!("[{}1]", "1,".repeat(100_000)).into_bytes());
    bodies
}

/// A server with a tool that takes any arguments, one that panics, and one that works.
fn server() -> Server {
    let any = Tool::new("any", "Take anything", |_: Value| async {});
    let panics = Tool::new("panics", "Panic", || async {
        let wrong: Result<String, _> = "hunter2".parse::<i32>().map(|it| it.to_string());
        wrong.expect("the password is hunter2")
    });
    calculator().tool(any).tool(panics)
}

fn is_answer_or_refusal(status: u16) -> bool {
    matches!(status, 200 | 202 | 400 | 404 | 413)
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn no_body_crashes_the_server() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(server())).await;
        let session = Session::open(&endpoint).await;
        let any = modern(1, "tools/call", json!({"name": "any", "arguments": {}}));
        for body in bodies() {
            for builder in [
                builder("POST"),
                session.builder("POST"),
                modern_builder(&any),
            ] {
                let status = send(&endpoint, builder, body.clone()).await.status();
                let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
                assert!(is_answer_or_refusal(status.as_u16()), "{shown}: {status}");
            }
            net::is_alive(&endpoint).await;
        }
    }
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn non_http_bytes_end_only_their_connection() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        if mount.is_http2() {
            for bytes in raw_http2::invalid() {
                net::hurl(endpoint.address, bytes).await;
                net::is_alive(&endpoint).await;
            }
            continue;
        }
        let noise: Vec<u8> = (0..20_000_u32).map(|n| (n * n % 251) as u8).collect();
        let post = net::post("", "{}");
        for bytes in [
        &b""[..],
        b"\r\n\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"GET /mcp\r\n\r\n",
        b"GET /mcp HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999999\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n: no name\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nna me: x\r\n\r\n",
        post.as_bytes(),
        &post.as_bytes()[..post.len() - 1],
        &noise,
    ] {
        net::hurl(endpoint.address, bytes).await;
        net::is_alive(&endpoint).await;
    }
    }
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn malformed_request_heads_are_answered() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let session = Session::open(&endpoint).await;
        let values: [&[u8]; 8] = [
            b"",
            b" ",
            b"\xff\xfe",
            b"=?base64?????=",
            b"=?base64?/////w==?=",
            b"r0_99999999999999999999999",
            b"r_1_2_s",
            &[b'a'; 60_000],
        ];
        for value in values {
            for name in [
                "mcp-session-id",
                "mcp-protocol-version",
                "last-event-id",
                "mcp-method",
                "mcp-name",
                "mcp-param-a",
                "content-length",
                "accept",
                "content-type",
                "origin",
            ] {
                for method in ["POST", "GET", "DELETE"] {
                    let mut builder = session.builder(method);
                    let headers = builder.headers_mut().unwrap();
                    headers.insert(name, http::HeaderValue::from_bytes(value).unwrap());
                    let ping = request(1, "ping", json!({})).to_string();
                    if method == "DELETE" && !name.starts_with("mcp-session") {
                        continue;
                    }
                    let request = builder.body(Full::new(Bytes::from(ping))).unwrap();
                    let Some(response) = endpoint.try_respond(request).await else {
                        // HTTP/2 itself forbids a length that is no number or that differs from the body.
                        assert!(mount.is_http2() && name == "content-length", "{name}");
                        continue;
                    };
                    let status = response.status();
                    assert!(!status.is_server_error(), "{method} {name}: {status}");
                }
            }
        }
        assert_eq!(
            session.call(2, "ping", json!({})).await.status(),
            StatusCode::OK
        );
    }
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn panicking_handler_fails_only_its_call_without_details() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(server())).await;
        let session = Session::open(&endpoint).await;
        let params = || json!({"name": "panics", "arguments": {}});
        for _ in 0..3 {
            let in_session = session.call(1, "tools/call", params()).await;
            let alone = call_modern(&endpoint, "tools/call", params()).await;
            for response in [in_session, alone] {
                let answer = json(response).await;
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                assert!(!answer.to_string().contains("hunter2"), "{answer}");
            }
        }
        let add = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
        let answer = json(session.call(2, "tools/call", add.clone()).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "3.0");
        let answer = json(call_modern(&endpoint, "tools/call", add).await).await;
        assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    }
}

/// A dynamic template with this URI template.
fn template(uri: &str) -> ResourceTemplate {
    ResourceTemplate::dynamic(uri, uri, |_cx, variables| async move {
        variables.get("c").map(|c| c.len().to_string())
    })
}

// Attack: a pattern that is slow to match.
#[tokio::test]
async fn megabyte_uri_is_matched_in_one_pass() {
    for mount in mounts!() {
        let server = calculator()
            .resource_template(template("mem://{a}-{b}-{c}/end"))
            .resource_template(template("mem://{a}/{+b}/{c}"))
            .resource_template(template("mem://a-a-a-{c}"))
            .resource_template(template("mem://{?a,b,c}"));
        crate::support::script(&server).await;
        let unmounted = StreamableHttp::from(server);
        let endpoint = mount.serve(&unmounted).await;
        let session = Session::open(&endpoint).await;
        for part in [
            "-", "a-", "/", "a/", "%", "%41", "?a=", "&a=b", "{a}", "é", "\u{0}",
        ] {
            let uri = format!("mem://{}", part.repeat((1 << 20) / part.len()));
            let params = json!({"uri": uri});
            let response = session.call(1, "resources/read", params.clone()).await;
            let answer = json(response).await;
            let answered = answer.get("result").is_some() || answer["error"]["code"].is_i64();
            assert!(answered, "{part}");
            // A modern client repeats the URI in a header; without a network nothing bounds the header.
            let message = modern(1, "resources/read", params);
            if mount == Mount::Http1 && uri.is_ascii() && !uri.contains('\0') {
                let builder = modern_builder(&message);
                let status = send(&unmounted, builder, message.to_string())
                    .await
                    .status();
                assert!(status.is_success() || status.is_client_error(), "{part}");
            }
            // Completion matches templates as well.
            let complete = json!({"ref": {"type": "ref/resource", "uri": uri},
            "argument": {"name": "a", "value": "a"}});
            let response = session.call(2, "completion/complete", complete).await;
            let answer = json(response).await;
            let answered = answer.get("result").is_some() || answer["error"]["code"].is_i64();
            assert!(answered, "{part}");
        }
    }
}

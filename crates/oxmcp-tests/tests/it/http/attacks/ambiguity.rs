//! Ambiguous requests, sent to the server: input that two readers could read differently, and headers that contradict the body.

use bytes::Bytes;
use http::{HeaderValue, StatusCode, request::Builder};
use http_body_util::Full;
use oxmcp::{JsonSchema, Tool, http::StreamableHttp};
use serde_json::{Value, json};

use crate::{
    http::server::peer::{Session, builder, json, modern_builder, send},
    http::{
        attacks::{raw_http2, raw_sockets as net},
        mounts::{Mount, Target, mounts},
    },
    support::{calculator, modern, request, text},
};

/// The status of a response, and the code of its error, or 0.
async fn outcome(endpoint: &impl Target, builder: Builder, body: &str) -> (StatusCode, i64) {
    let response = send(endpoint, builder, body.to_owned()).await;
    let status = response.status();
    let answer = json(response).await;
    (status, answer["error"]["code"].as_i64().unwrap_or(0))
}

fn call() -> Value {
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    modern(1, "tools/call", params)
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn duplicate_decisive_member_is_refused() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let session = Session::open(&endpoint).await;
        let in_session = request(
            1,
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        );
        for (first, second) in [
            (r#""method":"#, r#""method":"ping","method":"#),
            (r#""id":"#, r#""id":7,"id":"#),
            (r#""jsonrpc":"#, r#""jsonrpc":"2.0","jsonrpc":"#),
            (r#""params":"#, r#""params":{},"params":"#),
            (r#""name":"add""#, r#""name":"sub","name":"add""#),
            (r#""arguments":"#, r#""arguments":{},"arguments":"#),
            (r#""a":1"#, r#""a":2,"a":1"#),
            // Some readers decode names before they compare them, and others do not.
            (r#""method":"#, r#""meth\u006fd":"ping","method":"#),
            (r#""name":"add""#, r#""n\u0061me":"sub","name":"add""#),
        ] {
            for message in [call(), in_session.clone()] {
                let body = message.to_string().replacen(first, second, 1);
                assert_ne!(body, message.to_string());
                let builder = match message["params"].get("_meta") {
                    Some(_) => modern_builder(&message),
                    None => session.builder("POST"),
                };
                let response = send(&endpoint, builder, body.clone()).await;
                let answer = json(response).await;
                let refused =
                    answer["error"]["code"].is_i64() || answer["result"]["isError"] == true;
                assert!(refused, "{body}: {answer}");
            }
        }
        let twice = call()
            .to_string()
            .replacen(r#""_meta":{"#, r#""_meta":{},"_meta":{"#, 1);
        let (status, _) = outcome(&endpoint, modern_builder(&call()), &twice).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn member_names_are_case_sensitive() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let session = Session::open(&endpoint).await;
        for (right, wrong) in [
            (r#""method":"#, r#""Method":"#),
            (r#""method":"#, r#""METHOD":"#),
            (r#""method":"#, r#""method ":"#),
            (r#""ping""#, r#""Ping""#),
            (r#""jsonrpc":"#, r#""JsonRpc":"#),
            (r#""2.0""#, r#""2.0 ""#),
            (r#""2.0""#, "2.0"),
        ] {
            let ping = request(1, "ping", json!({})).to_string();
            let body = ping.replacen(right, wrong, 1);
            assert_ne!(body, ping);
            let answer = json(send(&endpoint, session.builder("POST"), body).await).await;
            assert!(answer["error"]["code"].is_i64(), "{wrong}: {answer}");
        }
        // If the right member is there, the misspelt one is just an unknown member.
        let body = r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list","ID":2,"method":"ping"}"#;
        let answer = json(send(&endpoint, session.builder("POST"), body).await).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    }
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn message_of_several_kinds_is_refused() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let session = Session::open(&endpoint).await;
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"ping","id":1} {"jsonrpc":"2.0","method":"ping","id":2}"#,
            "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":2}",
        ] {
            let (status, code) = outcome(&endpoint, session.builder("POST"), body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
            assert!([-32600, -32700].contains(&code), "{body}: {code}");
        }
    }
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn duplicate_routing_header_is_refused() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let session = Session::open(&endpoint).await;
        let ping = request(1, "ping", json!({})).to_string();
        let message = call();
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-method", "tools/call"),
            ("mcp-method", "ping"),
            ("mcp-name", "add"),
            ("mcp-name", "sub"),
        ] {
            let twice = modern_builder(&message).header(name, value);
            let (status, code) = outcome(&endpoint, twice, &message.to_string()).await;
            assert_eq!((status, code), (StatusCode::BAD_REQUEST, -32020), "{name}");
        }
        let other = Session::open(&endpoint).await;
        for id in [&other.id, &session.id] {
            let twice = |method| session.builder(method).header("mcp-session-id", id);
            let (status, code) = outcome(&endpoint, twice("POST"), &ping).await;
            assert_eq!((status, code), (StatusCode::BAD_REQUEST, -32020));
            for method in ["GET", "DELETE"] {
                let status = send(&endpoint, twice(method), "").await.status();
                assert!(status.is_client_error(), "{method}: {status}");
            }
            let both = session
                .builder("POST")
                .header("content-type", "application/json");
            let status = send(&endpoint, both, ping.clone()).await.status();
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        for session in [&session, &other] {
            let answer = session.call(1, "ping", json!({})).await;
            assert_eq!(answer.status(), StatusCode::OK, "it was ended");
        }
        let resume = session
            .builder("GET")
            .header("last-event-id", "s0_1")
            .header("last-event-id", "s1_1");
        let status = send(&endpoint, resume, "").await.status();
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn headers_must_agree_with_the_body() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let message = call();
        for (name, value) in [
            ("mcp-method", "tools/list"),
            ("mcp-method", "Tools/Call"),
            ("mcp-method", "=?base64?dG9vbHMvY2FsbA==?="),
            ("mcp-name", "sub"),
            ("mcp-name", "ADD"),
            ("mcp-name", "add, add"),
            ("mcp-name", "=?base64?c3Vi?="),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-protocol-version", "2026-07-28, 2026-07-28"),
        ] {
            let mut builder = modern_builder(&message);
            let headers = builder.headers_mut().unwrap();
            headers.insert(name, HeaderValue::from_static(value));
            let (status, code) = outcome(&endpoint, builder, &message.to_string()).await;
            assert_eq!((status, code), (StatusCode::BAD_REQUEST, -32020), "{value}");
        }
        for name in ["mcp-method", "mcp-name", "mcp-protocol-version"] {
            let mut builder = modern_builder(&message);
            builder.headers_mut().unwrap().remove(name);
            let (status, code) = outcome(&endpoint, builder, &message.to_string()).await;
            assert_eq!((status, code), (StatusCode::BAD_REQUEST, -32020), "{name}");
        }
    }
}

// Attack: input that two readers read differently.
#[tokio::test]
async fn request_smuggling_framings_are_refused() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let address = endpoint.address;
        if mount.is_http2() {
            raw_http2::refuses_what_can_be_cut_differently(address).await;
            net::is_alive(&endpoint).await;
            continue;
        }
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let hidden = "POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: ";
        let head = net::post("", ping);
        let head = head.split_once("content-length").unwrap().0;
        for rest in [
            // Folded header lines.
            format!(
                "content-length: {}\r\nmcp-method: tools\r\n /list\r\n\r\n{ping}",
                ping.len()
            ),
            // Two lengths, ambiguous lengths and codings, and invalid header lines.
            format!(
                "content-length: 2\r\ncontent-length: {}\r\n\r\n{ping}",
                ping.len()
            ),
            format!("content-length: {0}, {0}1\r\n\r\n{ping}", ping.len()),
            format!("content-length: +{}\r\n\r\n{ping}", ping.len()),
            format!("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
            format!("transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
            format!("content-length : {}\r\n\r\n{ping}", ping.len()),
            format!("content-length: {}\r\nx: a\x00b\r\n\r\n{ping}", ping.len()),
            format!(
                "content-length: {}\r\nx: a\rmcp-name: b\r\n\r\n{ping}",
                ping.len()
            ),
        ] {
            let response = net::hurl(address, format!("{head}{rest}")).await;
            assert_eq!(net::status(&response), 400, "{rest:?}: {response}");
            assert_eq!(response.matches("HTTP/1.1").count(), 1, "{response}");
        }
        net::is_alive(&endpoint).await;
    }
}

#[derive(serde::Deserialize, JsonSchema)]
struct Place {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

// Attack: header injection.
#[tokio::test]
async fn argument_headers_must_agree_with_the_arguments() {
    for mount in mounts!() {
        let go = Tool::new("go", "Go somewhere", |Place { region }: Place| async move {
            region
        });
        let endpoint = mount
            .serve(&StreamableHttp::from(calculator().tool(go)))
            .await;
        let ask = async |region: &str, header: &[u8]| {
            let params = json!({"name": "go", "arguments": {"region": region}});
            let message = modern(1, "tools/call", params);
            let mut builder = modern_builder(&message);
            let value = HeaderValue::from_bytes(header).unwrap();
            builder
                .headers_mut()
                .unwrap()
                .insert("mcp-param-region", value);
            let response = send(&endpoint, builder, message.to_string()).await;
            (response.status(), json(response).await)
        };
        // Over HTTP/2, axum itself refuses longer heads.
        let long = if mount == Mount::AxumHttp2 {
            10_000
        } else {
            50_000
        };
        let long = "x".repeat(long);
        for (region, header) in [
            ("north", &b"north"[..]),
            ("a\r\nx-evil: 1", b"=?base64?YQ0KeC1ldmlsOiAx?="),
            ("\u{e9}", b"=?base64?w6k=?="),
            (&long, long.as_bytes()),
        ] {
            let (status, answer) = ask(region, header).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            assert_eq!(answer["result"]["content"][0]["text"], region);
        }
        for (region, header) in [
            ("north", &b"south"[..]),
            ("north", b"North"),
            ("north", b""),
            ("north", b"north, north"),
            ("north", b"=?base64?c291dGg=?="),
            ("north", b"=?base64?bm9ydGgNCng6IDE=?="),
            ("north", b"=?base64?!!!?="),
            ("north", b"=?base64?bm9ydGg"),
            ("\u{e9}", "\u{e9}".as_bytes()),
            ("\u{fffd}", b"\xff"),
            ("\u{fffd}", b"=?base64?/w==?="),
            ("north", long.as_bytes()),
        ] {
            let (status, answer) = ask(region, header).await;
            let code = &answer["error"]["code"];
            assert_eq!(
                (status, code),
                (StatusCode::BAD_REQUEST, &json!(-32020)),
                "{header:?}"
            );
        }
        let params = json!({"name": "go", "arguments": {"region": "north"}});
        let message = modern(1, "tools/call", params);
        for header in ["north", "south"] {
            let twice = modern_builder(&message)
                .header("mcp-param-region", "north")
                .header("mcp-param-region", header);
            let (status, code) = outcome(&endpoint, twice, &message.to_string()).await;
            assert_eq!((status, code), (StatusCode::BAD_REQUEST, -32020));
        }
        // Legacy requests do not repeat arguments in headers.
        let session = Session::open(&endpoint).await;
        let params = json!({"name": "go", "arguments": {"region": "north"}});
        let answer = json(session.call(1, "tools/call", params).await).await;
        assert_eq!(text(&answer), "north");
    }
}

// Attack: header injection.
#[tokio::test]
async fn oversized_header_ends_only_its_request() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let long = builder("POST").header("mcp-param-region", "x".repeat(1 << 20));
        let many = (0..2_000).fold(builder("POST"), |it, n| it.header(format!("x-{n}"), "1"));
        for builder in [long, many] {
            let request = builder.body(Full::new(Bytes::from_static(b"{}")));
            // The connection may break off before the answer is read.
            if let Some(response) = endpoint.try_respond(request.unwrap()).await {
                assert_eq!(
                    response.status(),
                    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
                );
            }
        }
        net::is_alive(&endpoint).await;
    }
}

//! Attacks by web pages in a browser on the same machine as the server: DNS rebinding and cross-site requests.

use http::{Request, StatusCode, request::Builder};
use oxmcp::{
    Server,
    http::{ResponseBody, StreamableHttp},
};
use serde_json::json;

use crate::{
    http::server::peer::{LEGACY, Session, initialize, send},
    http::{
        attacks::raw_sockets as net,
        mounts::{Mount, Mounted, mounts},
    },
    support::{calculator, modern, request},
};

/// An endpoint with a session, and the requests to it: each method of HTTP, and the requests of each transport.
struct Reach {
    unmounted: StreamableHttp,
    endpoint: Mounted,
    server: Server,
    session: Session<Mounted>,
}

impl Reach {
    async fn new(mount: Mount) -> Self {
        let server = calculator();
        let unmounted = StreamableHttp::from(server.clone());
        let endpoint = mount.serve(&unmounted).await;
        let session = Session::open(&endpoint).await;
        Self {
            unmounted,
            endpoint,
            server,
            session,
        }
    }

    /// Requests that would be served if they came from an allowed host and origin, with their bodies.
    fn requests(&self) -> Vec<(Builder, String)> {
        let id = &self.session.id;
        let of = |method: &str, uri: &str| {
            Request::builder()
                .method(method)
                .uri(uri)
                .header("accept", "application/json, text/event-stream")
                .header("content-type", "application/json")
        };
        let post = |uri| of("POST", uri);
        let in_session = |method| of(method, "/mcp").header("mcp-session-id", id);
        let ping = request(1, "ping", json!({})).to_string();
        let call = modern(1, "tools/list", json!({})).to_string();
        let calling = post("/mcp")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list");
        vec![
            (calling, call),
            (post("/mcp"), initialize(LEGACY, json!({})).to_string()),
            (in_session("POST"), ping.clone()),
            (in_session("POST"), format!("[{ping}]")),
            (in_session("GET"), String::new()),
            (
                in_session("GET").header("last-event-id", "s0_1"),
                String::new(),
            ),
            (in_session("DELETE"), String::new()),
            // The transport of 2024-11-05.
            (of("GET", "/mcp"), String::new()),
            (post("/mcp?sessionId=1"), ping),
            // Methods and paths that do not exist must be refused in the same way.
            (of("OPTIONS", "/mcp"), String::new()),
            (of("PUT", "/mcp"), String::new()),
            (of("HEAD", "/mcp"), String::new()),
            (
                of("GET", "/.well-known/oauth-protected-resource"),
                String::new(),
            ),
        ]
    }

    /// Asserts that all requests are refused, and have no effect.
    async fn refuses_all(&self, mark: impl Fn(Builder) -> Builder) {
        for (builder, body) in self.requests() {
            let builder = mark(builder);
            let told = format!("{builder:?}");
            let response = send(&self.endpoint, builder, body).await;
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{told}");
            assert_no_cors(&response);
        }
        assert_eq!(self.server.sessions().count(), 1, "one has begun or ended");
        let answer = self.session.call(7, "ping", json!({})).await;
        assert_eq!(answer.status(), StatusCode::OK);
    }
}

#[track_caller]
fn assert_no_cors(response: &http::Response<ResponseBody>) {
    let mut names = response.headers().keys();
    let cors = names.find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(cors, None);
}

// Attack: DNS rebinding.
#[tokio::test]
async fn every_endpoint_and_method_refuses_foreign_hosts() {
    for mount in mounts!() {
        let reach = Reach::new(mount).await;
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil.example#localhost",
            "localhost, evil.example",
            "localhost evil.example",
            "0.0.0.0",
            "[::]",
            "[::1].evil.example",
            "127.0.0.1:80:80",
            "",
        ] {
            reach.refuses_all(|it| it.header("host", host)).await;
        }
        reach.refuses_all(|it| it).await;
        let twice = |it: Builder| {
            it.header("host", "localhost")
                .header("host", "evil.example")
        };
        reach.refuses_all(twice).await;
        let not_text = |it: Builder| it.header("host", &b"localhost\xff"[..]);
        reach.refuses_all(not_text).await;
    }
}

// Attack: DNS rebinding.
#[tokio::test]
async fn absolute_request_url_cannot_bypass_host_check() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(calculator())).await;
        let status = async |method: &str, target: &str, host: &str| {
            if mount.is_http2() {
                let both = Request::builder()
                    .method(method)
                    .uri(target)
                    .header("host", host);
                let both = both.header("accept", "text/event-stream");
                return send(&endpoint, both, "").await.status().as_u16();
            }
            let head = format!(
                "{method} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 0\r\n\
                 accept: text/event-stream\r\n\r\n"
            );
            net::status(&net::ask(endpoint.address, head).await)
        };
        for (target, host) in [
            ("http://evil.example/mcp", "localhost"),
            ("http://localhost/mcp", "evil.example"),
            ("http://evil.example/mcp", "evil.example"),
            ("http://localhost@evil.example/mcp", "localhost"),
        ] {
            for method in ["GET", "POST", "DELETE", "OPTIONS"] {
                assert_eq!(status(method, target, host).await, 403, "{target} {host}");
            }
        }
        if !mount.is_http2() {
            // HTTP/1.0 requires no host, but the server does.
            let old = "GET /mcp HTTP/1.0\r\naccept: text/event-stream\r\n\r\n";
            assert_eq!(net::status(&net::ask(endpoint.address, old).await), 403);
        }
        net::is_alive(&endpoint).await;
    }
}

// Attack: cross-site requests from a web page.
#[tokio::test]
async fn every_endpoint_and_method_refuses_foreign_origins() {
    for mount in mounts!() {
        let reach = Reach::new(mount).await;
        for origin in [
            "https://evil.example",
            "null",
            "",
            "*",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://localhost@evil.example",
            "http://evil.example#localhost",
            "http://evil.example/localhost",
            "file://",
            "file://localhost",
            "chrome-extension://localhost",
            "http://localhost http://evil.example",
            "http:localhost",
            "localhost",
        ] {
            let from = |it: Builder| it.header("host", "localhost").header("origin", origin);
            reach.refuses_all(from).await;
        }
        let twice = |it: Builder| {
            it.header("host", "localhost")
                .header("origin", "http://localhost")
                .header("origin", "https://evil.example")
        };
        reach.refuses_all(twice).await;
    }
}

// Attack: cross-site requests from a web page.
#[tokio::test]
async fn responses_grant_no_cross_origin_access() {
    for mount in mounts!() {
        let reach = Reach::new(mount).await;
        let page = |it: Builder| {
            it.header("host", "localhost")
                .header("origin", "http://localhost:3000")
        };
        let preflight = page(Request::builder().method("OPTIONS").uri("/mcp"))
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,mcp-method");
        let response = send(&reach.endpoint, preflight, "").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_no_cors(&response);
        for (builder, body) in reach.requests() {
            assert_no_cors(&send(&reach.endpoint, page(builder), body).await);
        }
        let anybody = reach.unmounted.clone().allowed_origins(["*"]);
        let anybody = mount.serve(&anybody).await;
        for (builder, body) in reach.requests() {
            assert_no_cors(&send(&anybody, page(builder), body).await);
        }
    }
}

// Attack: cross-site requests from a web page.
#[tokio::test]
async fn html_form_content_types_are_refused() {
    for mount in mounts!() {
        let reach = Reach::new(mount).await;
        for kind in [
            Some("text/plain"),
            Some("text/plain; charset=utf-8"),
            Some("text/plain; application/json"),
            Some("text/plain, application/json"),
            Some("application/json, text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=application/json"),
            Some("application/json-seq"),
            Some("application/jsonp"),
            Some(""),
            None,
        ] {
            for (builder, body) in reach.requests() {
                if builder.method_ref() != Some(&http::Method::POST) {
                    continue;
                }
                let mut builder = builder.header("host", "localhost");
                let headers = builder.headers_mut().unwrap();
                headers.remove("content-type");
                if let Some(kind) = kind {
                    headers.insert("content-type", kind.parse().unwrap());
                }
                let is_2024 = builder.uri_ref().unwrap().query().is_some();
                let status = send(&reach.endpoint, builder, body).await.status();
                // A request for an unknown session of 2024-11-05 is refused for that reason first.
                let refused = [StatusCode::UNSUPPORTED_MEDIA_TYPE, StatusCode::NOT_FOUND];
                assert_eq!(status, refused[usize::from(is_2024)], "{kind:?}");
            }
        }
        assert_eq!(reach.server.sessions().count(), 1);
    }
}

//! The layers for servers in production, over memory and HTTP, in every revision.

use std::{
    future::{IntoFuture, pending},
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{Request, Response, StatusCode, Uri};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full};
use oxmcp::{
    Client, ClientSession, ErrorCode, JsonSchema, Revision, Server, Tool,
    http::{Endpoint, HttpBody, HttpClient, LegacySse, StreamableHttp},
    layers::{Audit, ConcurrencyLimit, KeptResults, RateLimit, ResultLimit, Timeout},
    protocol::{CallToolResult, ContentBlock},
    testing::connect,
};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use crate::support::{add, calculator, request};

const SECOND: Duration = Duration::from_secs(1);

/// The client's way to an endpoint in the same process. It records the status of each response.
#[derive(Clone)]
struct InProcess {
    streamable: StreamableHttp,
    sse: LegacySse,
    is_sse: bool,
    statuses: Arc<Mutex<Vec<StatusCode>>>,
}

impl HttpClient for InProcess {
    async fn send(&self, request: Request<Bytes>) -> oxmcp::Result<Response<HttpBody>> {
        let (mut parts, body) = request.into_parts();
        parts.headers.insert("host", "localhost".parse().unwrap());
        let target = parts.uri.path_and_query().unwrap().as_str();
        parts.uri = target.parse::<Uri>().unwrap();
        let request = Request::from_parts(parts, Full::new(body));
        let Ok(response) = if self.is_sse {
            self.sse.clone().oneshot(request).await
        } else {
            self.streamable.clone().oneshot(request).await
        };
        self.statuses.lock().unwrap().push(response.status());
        Ok(response.map(|body| {
            HttpBody::new(stream::unfold(body, |mut body| async move {
                let frame = body.frame().await?.unwrap();
                Some((Ok(frame.into_data().unwrap()), body))
            }))
        }))
    }
}

/// A client of a server, and the HTTP statuses that it has received.
pub(crate) struct Connected {
    pub(crate) session: ClientSession,
    http: Option<InProcess>,
}

impl Connected {
    /// Clients over memory and over HTTP, in each revision. The servers are all different.
    pub(crate) async fn all(server: impl Fn() -> Server) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        for revision in Revision::ALL {
            let client = Client::new("client", "1").revisions([revision]);
            let session = connect(&server()).client(&client).await.unwrap();
            all.push((
                format!("{revision} over memory"),
                Self {
                    session,
                    http: None,
                },
            ));
            let http = InProcess {
                streamable: StreamableHttp::from(server()),
                sse: LegacySse::from(server()),
                is_sse: revision == Revision::ALL[0],
                statuses: Arc::default(),
            };
            let endpoint = Endpoint::new("http://localhost/mcp").http_client(http.clone());
            let session = client.connect(endpoint).await.unwrap();
            all.push((
                format!("{revision} over HTTP"),
                Self {
                    session,
                    http: Some(http),
                },
            ));
        }
        all
    }

    async fn call(&self, tool: &str) -> oxmcp::Result<CallToolResult> {
        self.session.call_tool(tool, json!({})).await
    }

    fn refusals(&self) -> Option<usize> {
        let http = self.http.as_ref().filter(|http| !http.is_sse)?;
        let statuses = http.statuses.lock().unwrap();
        let is_refusal = |status: &&StatusCode| **status == StatusCode::TOO_MANY_REQUESTS;
        Some(statuses.iter().filter(is_refusal).count())
    }
}

fn quick() -> Tool {
    Tool::new("quick", "Be quick", || async { "done" })
}

fn stuck() -> Tool {
    Tool::new("stuck", "Never end", || async { pending::<()>().await })
}

#[tokio::test(start_paused = true)]
async fn refused_calls_are_told_when_to_return() {
    let server = || {
        Server::new("s", "1")
            .tool(quick())
            .tool(Tool::new("free", "Be free", || async { "done" }))
            .layer(
                RateLimit::new(2, SECOND * 20)
                    .tools(["quick"])
                    .per_session(),
            )
    };
    for (name, client) in Connected::all(server).await {
        let call = || {
            client
                .session
                .call_tool("quick", json!({}))
                .timeout(SECOND * 5)
        };
        call().await.unwrap();
        call().await.unwrap();
        let start = Instant::now();
        let error = call().await.unwrap_err();
        assert!(start.elapsed() < SECOND, "{name}: it would be too late");
        assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR, "{name}");
        let wait = error.retry_after().unwrap();
        assert!(wait > SECOND * 9 && wait <= SECOND * 10, "{name}: {wait:?}");
        assert!(error.message().contains("limit is 2 in 20s"), "{error}");
        client.call("free").await.unwrap();
        if let Some(refusals) = client.refusals() {
            assert_eq!(refusals, 1, "{name}");
            assert!(
                error.is_unserved() && error.http_status() == Some(429),
                "{name}"
            );
        }
        sleep(wait).await;
        call().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn client_repeats_a_refused_call_in_time() {
    let server = || {
        let limit = RateLimit::new(1, SECOND * 10);
        Server::new("s", "1").tool(quick()).layer(limit)
    };
    for (name, client) in Connected::all(server).await {
        let Some(0) = client.refusals() else { continue };
        client.call("quick").await.unwrap();
        let start = Instant::now();
        client.call("quick").await.unwrap();
        let took = start.elapsed();
        assert!(
            took >= SECOND * 9 && took <= SECOND * 11,
            "{name}: {took:?}"
        );
        assert_eq!(client.refusals(), Some(1), "{name}");
        // A call that is dropped while it waits is not repeated.
        let waiting = client.session.call_tool("quick", json!({})).into_future();
        assert!(timeout(SECOND, waiting).await.is_err());
        sleep(SECOND * 30).await;
        assert_eq!(client.refusals(), Some(2), "{name}");
        let statuses = client.http.unwrap().statuses.lock().unwrap().len();
        assert!(statuses < 12, "{name}: {statuses}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_is_json_rpc_in_the_body() {
    use crate::http::server::peer::{Session, call_modern, header, json as body};

    let server = calculator().layer(RateLimit::new(1, SECOND * 90).per_session());
    for is_json_only in [false, true] {
        let endpoint = StreamableHttp::from(server.clone());
        let endpoint = match is_json_only {
            true => endpoint.json_only(),
            false => endpoint,
        };
        let session = Session::open(&endpoint).await;
        let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
        let served = session.call(1, "tools/call", params.clone()).await;
        assert_eq!(served.status(), StatusCode::OK);
        let refused = session.call(2, "tools/call", params.clone()).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(header(refused.headers(), "retry-after"), "90");
        let refused = body(refused).await;
        assert_eq!(refused["id"], 2);
        assert!(refused["error"]["data"]["retryAfterMs"].as_u64() > Some(89_000));
        // A request without a session counts for its principal.
        let _ = call_modern(&endpoint, "tools/call", params.clone()).await;
        let refused = call_modern(&endpoint, "tools/call", params).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(body(refused).await["id"], 1);
    }
    // A batch has answers of several requests.
    let endpoint = StreamableHttp::from(server);
    let session = Session::open_in(&endpoint, "2025-03-26", json!({})).await;
    let call = |id| {
        request(
            id,
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        )
    };
    let batch = json!([call(1), call(2)]);
    let builder = crate::http::server::peer::builder("POST").header("mcp-session-id", &session.id);
    let sent = crate::http::server::peer::send(&endpoint, builder, batch.to_string()).await;
    assert_eq!(sent.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_make_space_for_others() {
    let server = || {
        Server::new("s", "1")
            .tools([quick(), stuck()])
            .layer(ConcurrencyLimit::new(1))
    };
    for (name, client) in Connected::all(server).await {
        let running = client.session.call_tool("stuck", json!({})).into_future();
        let running = tokio::spawn(running);
        sleep(SECOND).await;
        let refused = client
            .session
            .call_tool("quick", json!({}))
            .timeout(SECOND / 2)
            .await
            .unwrap_err();
        assert_eq!(refused.retry_after(), Some(SECOND), "{name}");
        running.abort();
        sleep(SECOND * 5).await;
        client.call("quick").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn queued_calls_wait_in_order() {
    let slow = || {
        Tool::new("slow", "Take a while", || async {
            sleep(SECOND * 10).await;
            "done"
        })
    };
    let server = || {
        let limit = ConcurrencyLimit::new(1).queue(1, SECOND * 15);
        Server::new("s", "1").tool(slow()).layer(limit)
    };
    let session = connect(&server()).await.unwrap();
    let call = || session.call_tool("slow", json!({}));
    let start = Instant::now();
    let (first, second, third) = tokio::join!(call(), call(), call());
    assert!(first.is_ok() && second.is_ok() && third.is_err());
    assert_eq!(start.elapsed().as_secs(), 20);
    // A call that is cancelled while it waits leaves its place.
    let running = tokio::spawn(call().into_future());
    sleep(SECOND).await;
    assert!(timeout(SECOND, call().into_future()).await.is_err());
    sleep(SECOND * 2).await;
    assert!(call().await.is_ok());
    running.await.unwrap().unwrap();
}

#[derive(Clone, Default)]
struct Entries(Arc<Mutex<Vec<String>>>);

impl Entries {
    fn audit(&self) -> Audit {
        let entries = self.clone();
        Audit::new(move |entry| {
            let target = entry.target.unwrap_or_default();
            let arguments = entry.arguments.unwrap_or_default();
            let line = format!("{target} {arguments} {}", entry.outcome);
            entries.0.lock().unwrap().push(line);
        })
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn each_end_of_a_call_is_recorded() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Login {
        user: String,
        pin: String,
    }

    let entries = Entries::default();
    let server = || {
        let login = Tool::new(
            "log_in",
            "Log in",
            |Login { user, pin }: Login| async move {
                match pin.len() {
                    4 => Ok(user),
                    _ => Err(oxmcp::ToolError::new("wrong pin")),
                }
            },
        );
        Server::new("s", "1")
            .layer(entries.audit())
            .layer(RateLimit::new(1, SECOND * 1000).tools(["add"]))
            .layer(Timeout::new(SECOND * 60).tool("stuck", SECOND * 5))
            .tools([stuck(), add()])
            .tool(login.input(|s| s.property("pin", |p| p.format("password"))))
    };
    for (name, client) in Connected::all(server).await {
        entries.take();
        let call = |tool, arguments| {
            client
                .session
                .call_tool(tool, arguments)
                .timeout(SECOND * 9)
        };
        call("log_in", json!({"user": "ann", "pin": "1234"}))
            .await
            .unwrap();
        let failed = call("log_in", json!({"user": "ann", "pin": "1"}))
            .await
            .unwrap();
        assert!(failed.is_error);
        let late = call("stuck", json!({})).await.unwrap_err();
        assert!(late.message().contains("stopped it after 5s"), "{late}");
        let dropped = client.session.call_tool("stuck", json!({})).into_future();
        assert!(timeout(SECOND, dropped).await.is_err());
        sleep(SECOND * 20).await;
        call("missing", json!({"x": "secret"})).await.unwrap_err();
        call("add", json!({"a": 1, "b": 2})).await.unwrap();
        call("add", json!({"a": 1, "b": 2})).await.unwrap_err();
        let entries = entries.take();
        let missing = &entries[4];
        assert!(missing.starts_with(r#"missing {"x":"[redacted]"} failed with -32602: "#));
        assert_eq!(
            [&entries[..4], &entries[5..]].concat(),
            [
                r#"log_in {"pin":"[redacted]","user":"ann"} completed"#,
                r#"log_in {"pin":"[redacted]","user":"ann"} tool error"#,
                "stuck {} timed out",
                "stuck {} cancelled",
                r#"add {"a":1,"b":2} completed"#,
                r#"add {"a":1,"b":2} limited"#,
            ],
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn limits_of_one_tool_answer_the_model() {
    let tool = |name: &str| {
        Tool::new(name, "Take a while", || async {
            sleep(SECOND * 10).await;
            "done"
        })
    };
    let server = Server::new("s", "1")
        .tool(tool("rated").layer(RateLimit::new(1, SECOND * 60).for_tool()))
        .tool(tool("single").layer(ConcurrencyLimit::new(1).for_tool()))
        .tool(tool("timed").layer(Timeout::new(SECOND).for_tool()));
    for revision in Revision::ALL {
        let session = connect(&server).revision(revision).await.unwrap();
        let call = |name| session.call_tool(name, json!({}));
        let (first, second) = tokio::join!(call("single"), call("single"));
        assert!(!first.unwrap().is_error && second.unwrap().is_error);
        assert!(call("timed").await.unwrap().is_error);
        sleep(SECOND * 60).await;
        assert!(!call("rated").await.unwrap().is_error);
        let refused = call("rated").await.unwrap();
        assert!(
            refused.is_error && refused.to_text().contains("retry in"),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn long_results_are_cut_and_kept() {
    let kept = KeptResults::new().max_bytes(500_000);
    let server = || {
        let long = |name: &str| Tool::new(name, "Be long", || async { "word ".repeat(10_000) });
        Server::new("s", "1")
            .layer(ResultLimit::new(2000).keep(&kept).tool("longer", 4000))
            .tools([long("long"), long("longer"), long("huge"), quick(), add()])
            .tool(Tool::new("list", "List", || async {
                oxmcp::Structured((0..5000).collect::<Vec<u32>>())
            }))
            .resource_template(kept.template())
    };
    for (name, client) in Connected::all(server).await {
        // Structured content and links came with the same revision.
        let has_links = client.session.revision() >= Revision::ALL[2];
        assert_eq!(client.call("quick").await.unwrap().to_text(), "done");
        for (tool, limit) in [("long", 2000), ("longer", 4000)] {
            let result = client.call(tool).await.unwrap();
            let json = serde_json::to_string(&result).unwrap();
            assert!(
                json.len() <= limit && json.len() > limit / 2,
                "{name}: {}",
                json.len()
            );
            assert!(!result.is_error);
            let words = result.to_text();
            assert!(
                words.starts_with("word word") && words.contains("The result was cut"),
                "{name}: {words}"
            );
            let uri = words.split("Read the resource ").nth(1).unwrap();
            let uri = uri.split(' ').next().unwrap();
            let linked = result
                .content
                .iter()
                .any(|block| matches!(block, ContentBlock::ResourceLink(link) if link.uri == uri));
            assert_eq!(linked, has_links, "{name}");
            let whole = client.session.read_resource(uri).await.unwrap();
            assert_eq!(whole.contents[0].as_text().unwrap().len(), 50_000, "{name}");
            if client.http.is_none() {
                let other = connect(&server()).await.unwrap();
                other.read_resource(uri).await.unwrap_err();
            }
        }
        let list = client.call("list").await.unwrap();
        assert!(list.structured_content.is_none(), "{name}");
        let is_left_out = list.to_text().contains("structured content was left out");
        assert_eq!(
            (list.is_error, is_left_out),
            (has_links, has_links),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn kept_results_are_bounded_and_expire() {
    let kept = KeptResults::new().max_bytes(110_000).max_age(SECOND * 60);
    let server = Server::new("s", "1")
        .layer(ResultLimit::new(2000).keep(&kept))
        .tool(Tool::new("long", "Be long", || async {
            "x".repeat(50_000)
        }))
        .tool(Tool::new("huge", "Be huge", || async {
            "x".repeat(500_000)
        }))
        .resource_template(kept.template());
    let session = connect(&server).await.unwrap();
    let mut uris = Vec::new();
    for _ in 0..3 {
        let result = session.call_tool("long", json!({})).await.unwrap();
        let Some(ContentBlock::ResourceLink(link)) = result.content.last() else {
            panic!("no link");
        };
        uris.push(link.uri.clone());
        sleep(SECOND * 10).await;
    }
    let huge = session.call_tool("huge", json!({})).await.unwrap();
    assert!(huge.to_text().contains("Ask for less"));
    let is_kept = async |uri: &str| session.read_resource(uri).await.is_ok();
    assert!(!is_kept(&uris[0]).await && is_kept(&uris[1]).await && is_kept(&uris[2]).await);
    sleep(SECOND * 42).await;
    assert!(!is_kept(&uris[1]).await && is_kept(&uris[2]).await);
}

#[tokio::test]
async fn refused_results_have_no_content() {
    let server = Server::new("s", "1")
        .layer(ResultLimit::new(2000).refuse())
        .tool(Tool::new("long", "Be long", || async {
            "x".repeat(50_000)
        }));
    let session = connect(&server).await.unwrap();
    let result = session.call_tool("long", json!({})).await.unwrap();
    assert!(result.is_error && result.to_text().len() < 200);
}

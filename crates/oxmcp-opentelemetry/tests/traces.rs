//! Traces that continue at the peer, as exported by the OpenTelemetry SDK.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

use std::{collections::HashMap, sync::LazyLock};

use bytes::Bytes;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use opentelemetry::{
    Context, KeyValue,
    baggage::BaggageExt,
    context::FutureExt,
    propagation::TextMapPropagator,
    trace::{SpanId, SpanKind, Status, TracerProvider},
};
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{InMemorySpanExporter, SdkTracerProvider, SpanData},
};
use oxmcp::{
    Accept, Client, ClientSession, JsonSchema, RequestContext, Revision, Server, Tool, ToolError,
    http::{Endpoint, LegacySse, StreamableHttp},
    protocol::{ElicitFormParams, Meta},
    testing::{self, ScriptedPeer},
};
use serde_json::{Value, json};
use tower::ServiceExt;
use tracing::{
    Dispatch, Instrument, Metadata, Span, info_span,
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{Layer, filter::filter_fn, layer::SubscriberExt};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
struct Name {
    name: String,
}

async fn greet(cx: RequestContext) -> Result<String, ToolError> {
    async {}.instrument(info_span!("think")).await;
    if let Some(request) = cx.http_request() {
        let header = request.headers.get("traceparent").unwrap();
        assert_eq!(cx.meta().traceparent(), Some(header.to_str().unwrap()));
    }
    let name: Name = cx.ask("name", "What is your name?").await?;
    Ok(name.name)
}

async fn greet_in_step(cx: RequestContext) -> Result<String, ToolError> {
    let baggage = [KeyValue::new("step", "2"), KeyValue::new("user", "bob")];
    let within = Context::current().with_baggage(baggage);
    greet(cx).with_context(within).await
}

fn server() -> Server {
    let fail = || async { Err::<(), _>(ToolError::new("no")) };
    Server::new("s", "1")
        .tool(Tool::new("greet", "Greet", greet))
        .tool(Tool::new("greet_in_step", "Greet", greet_in_step))
        .tool(Tool::new("idle", "Do nothing", || async {}))
        .tool(Tool::new("fail", "Fail", fail))
}

fn client(revision: Revision) -> Client {
    let answer = |_: ElicitFormParams| async {
        async {}.instrument(info_span!("answer")).await;
        Accept(Name {
            name: "Ada".to_owned(),
        })
    };
    Client::new("c", "1")
        .revisions([revision])
        .on_elicit(answer)
}

/// The spans that this thread exports until this is dropped.
struct Spans {
    exporter: InMemorySpanExporter,
    _guard: DefaultGuard,
}

impl Spans {
    fn new(filter: fn(&Metadata<'_>) -> bool, activates_contexts: bool) -> Self {
        /// With more than one subscriber, tracing asks each of them whether it is interested in a callsite.
        static OTHERS: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
        static INSTALLED: LazyLock<()> = LazyLock::new(|| oxmcp_opentelemetry::install().unwrap());
        LazyLock::force(&OTHERS);
        LazyLock::force(&INSTALLED);
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("test"))
            .with_context_activation(activates_contexts);
        let layer = layer.with_filter(filter_fn(move |metadata| {
            *metadata.level() <= tracing::Level::INFO && filter(metadata)
        }));
        let subscriber = tracing_subscriber::registry().with(layer);
        Self {
            exporter,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    fn all() -> Self {
        Self::new(|_| true, true)
    }

    /// Servers only: clients send no context then.
    fn served() -> Self {
        Self::new(|metadata| metadata.name() != "mcp.client.request", true)
    }

    fn take(&self) -> Vec<SpanData> {
        let spans = self.exporter.get_finished_spans().unwrap();
        self.exporter.reset();
        spans
    }

    /// Kind, name and parents of all spans, as a tree. Checks that each tree is one trace.
    fn tree(&self) -> Vec<String> {
        let mut spans = self.take();
        spans.sort_by_key(|span| span.start_time);
        let line = |span: &SpanData| {
            let mut line = format!("{:?} {}", span.span_kind, span.name).to_lowercase();
            let mut id = span.parent_span_id;
            while let Some(parent) = spans.iter().find(|it| it.span_context.span_id() == id) {
                assert_eq!(parent.span_context.trace_id(), span.span_context.trace_id());
                line = format!("{:?} {} > {line}", parent.span_kind, parent.name).to_lowercase();
                id = parent.parent_span_id;
            }
            if id != SpanId::INVALID {
                line = format!("{id} > {line}");
            }
            line
        };
        spans.iter().map(line).collect()
    }

    fn one(&self) -> SpanData {
        let [span] = self.take().try_into().unwrap();
        span
    }
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let mut attributes = span.attributes.iter();
    attributes.find_map(|it| (it.key.as_str() == key).then(|| it.value.to_string()))
}

async fn greeted(session: &ClientSession, spans: &Spans) -> Vec<String> {
    spans.take();
    let call = async { session.call_tool("greet", json!({})).await.unwrap() };
    let result = call.instrument(info_span!("user")).await;
    assert!(!result.is_error, "{result:?}");
    spans.tree()
}

/// The spans of a call whose handler asks the user.
fn expected(revision: Revision) -> Vec<&'static str> {
    const CALL: &[&str] = &[
        "internal user",
        "internal user > client tools/call greet",
        "internal user > client tools/call greet > server tools/call greet",
        "internal user > client tools/call greet > server tools/call greet > internal think",
    ];
    const ASKED: &[&str] = &[
        "internal user > client tools/call greet > server tools/call greet > client elicitation/create",
        "internal user > client tools/call greet > server tools/call greet > client elicitation/create > server elicitation/create",
        "internal user > client tools/call greet > server tools/call greet > client elicitation/create > server elicitation/create > internal answer",
    ];
    const AGAIN: &[&str] = &["internal user > internal answer"];
    match revision.is_modern() {
        // The result tells the client what to ask, and it calls again.
        true => [CALL, AGAIN, &CALL[1..]].concat(),
        false => [CALL, ASKED].concat(),
    }
}

#[tokio::test]
async fn call_and_its_input_request_share_one_trace() {
    let spans = Spans::all();
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::LATEST,
    ] {
        let connecting = testing::connect(&server()).client(&client(revision));
        let session = connecting.revision(revision).await.unwrap();
        assert_eq!(
            greeted(&session, &spans).await,
            expected(revision),
            "{revision}"
        );
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn call_and_input_request_share_trace_over_http() {
    let spans = Spans::all();
    let endpoint = StreamableHttp::from(server());
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    for revision in [
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::LATEST,
    ] {
        let url = format!("http://{}/mcp", serving.local_addr());
        let session = client(revision).connect(Endpoint::new(url)).await.unwrap();
        assert_eq!(
            greeted(&session, &spans).await,
            expected(revision),
            "{revision}"
        );
        session.close().await.unwrap();
    }
    serving.close().await;
}

/// A call of a tool that does nothing, in a revision without questions.
async fn idled(session: &ClientSession, spans: &Spans) {
    spans.take();
    let call = async { session.call_tool("idle", json!({})).await.unwrap() };
    call.instrument(info_span!("user")).await;
    let expected = [
        "internal user",
        "internal user > client tools/call idle",
        "internal user > client tools/call idle > server tools/call idle",
    ];
    assert_eq!(spans.tree(), expected, "{}", session.revision());
}

#[tokio::test]
async fn older_revisions_have_one_trace_too() {
    let spans = Spans::all();
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26] {
        let connecting = testing::connect(&server()).client(&client(revision));
        let session = connecting.revision(revision).await.unwrap();
        idled(&session, &spans).await;
        session.close().await.unwrap();
    }
    let serving = LegacySse::from(server())
        .serve("127.0.0.1:0")
        .await
        .unwrap();
    let url = format!("http://{}/sse", serving.local_addr());
    let session = client(Revision::V2024_11_05)
        .connect(Endpoint::new(url))
        .await
        .unwrap();
    idled(&session, &spans).await;
    session.close().await.unwrap();
    let serving = StreamableHttp::from(server())
        .serve("127.0.0.1:0")
        .await
        .unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    let session = client(Revision::V2025_03_26)
        .connect(Endpoint::new(url))
        .await
        .unwrap();
    idled(&session, &spans).await;
    session.close().await.unwrap();
}

async fn script(server: &Server, capabilities: Value) -> ScriptedPeer {
    let (mut peer, transport) = ScriptedPeer::new().await;
    server.connect(transport).await.unwrap();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "scripted", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    peer.ask(initialize).await.unwrap();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    peer.send(initialized).await.unwrap();
    peer
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn call(id: i64, tool: &str, meta: Value) -> Value {
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// Calls a tool, and returns the trace fields of its question.
async fn asked(tool: &str, meta: Value) -> Value {
    let mut peer = script(&server(), json!({"elicitation": {}})).await;
    let question = peer.ask(call(1, tool, meta)).await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    let greeted = peer.ask(answer).await.unwrap();
    assert_eq!(greeted.pointer("/result/content/0/text").unwrap(), "Ada");
    question["params"]["_meta"].clone()
}

#[tokio::test]
async fn received_trace_context_is_propagated() {
    let spans = Spans::all();
    let state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    let meta = json!({"traceparent": PARENT, "tracestate": state, "baggage": "user=alice"});
    let sent = asked("greet", meta).await;
    let exported = spans.take();
    let question = exported
        .iter()
        .find(|it| it.name == "elicitation/create")
        .unwrap();
    let id = question.span_context.span_id();
    assert_eq!(question.span_kind, SpanKind::Client);
    assert_eq!(sent["traceparent"], format!("00-{TRACE}-{id}-01"));
    assert_eq!(
        (&sent["tracestate"], &sent["baggage"]),
        (&json!(state), &json!("user=alice"))
    );
    let served = exported
        .iter()
        .find(|it| it.name == "tools/call greet")
        .unwrap();
    assert_eq!(served.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(served.parent_span_is_remote);
}

#[tokio::test]
async fn unsampled_trace_stays_unsampled_everywhere() {
    let spans = Spans::all();
    spans.take();
    let sent = asked("greet", json!({"traceparent": UNSAMPLED})).await;
    let sent = sent["traceparent"].as_str().unwrap();
    assert!(sent.contains(TRACE) && sent.ends_with("-00"), "{sent}");
    let all = spans.take();
    assert!(all.iter().all(|it| it.name == "initialize"), "{all:?}");
}

#[tokio::test]
async fn handler_baggage_is_propagated() {
    /// The baggage of a question during a call with baggage, whose handler has attached another one.
    async fn asked_in_step(spans: Spans) -> Vec<String> {
        let meta = json!({"traceparent": PARENT, "baggage": "user=alice,tenant=t"});
        let sent = asked("greet_in_step", meta).await;
        drop(spans);
        let sent = sent["baggage"].as_str().unwrap().split(',');
        let mut sent: Vec<_> = sent.map(str::to_owned).collect();
        sent.sort_unstable();
        sent
    }

    // It derives from the received baggage, so a member that is missing from it was removed on purpose,
    for spans in [Spans::all(), Spans::served()] {
        assert_eq!(asked_in_step(spans).await, ["step=2", "user=bob"]);
    }
    // unless the layer does not attach the received baggage to the thread.
    let spans = Spans::new(|_| true, false);
    assert_eq!(
        asked_in_step(spans).await,
        ["step=2", "tenant=t", "user=bob"]
    );
}

#[tokio::test]
async fn malformed_trace_context_begins_a_new_trace() {
    let spans = Spans::all();
    let (upper, zero) = (
        PARENT.to_uppercase(),
        PARENT.replace(TRACE, &"0".repeat(32)),
    );
    for parent in [
        json!("junk"),
        json!(upper),
        json!(zero),
        json!(7),
        json!({"a": 1}),
    ] {
        spans.take();
        let meta = json!({"traceparent": parent, "tracestate": "a=1", "baggage": "\r\nX: 1"});
        let sent = asked("greet", meta).await;
        assert_eq!(
            (&sent["tracestate"], &sent["baggage"]),
            (&Value::Null, &Value::Null)
        );
        let meta: Meta = serde_json::from_str(&sent.to_string()).unwrap();
        let sent = meta.traceparent().unwrap();
        assert!(!sent.contains(TRACE) && sent.ends_with("-01"), "{sent}");
        let tree = spans.tree();
        assert!(
            tree.contains(&"server tools/call greet".to_owned()),
            "{tree:?}"
        );
    }
}

#[tokio::test]
async fn each_batched_request_has_its_own_trace() {
    let spans = Spans::all();
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_03_26).await.unwrap();
    spans.take();
    let parent = |id: i64| format!("00-{TRACE}-{id:016x}-01");
    let calls = (1..=3).map(|id| call(id, "idle", json!({"traceparent": parent(id)})));
    let answers = peer.ask(calls.collect()).await.unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 3);
    let served = spans.take();
    assert_eq!(served.len(), 3);
    for span in served {
        let id = attribute(&span, "jsonrpc.request.id").unwrap();
        assert_eq!(span.parent_span_id.to_string(), format!("{id:0>16}"));
    }
}

/// The trace fields in the `_meta` of a call, by a client that sets this `_meta` itself.
async fn sent(own: Option<&str>) -> Meta {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let serve = async {
        loop {
            let request = peer.receive().await.unwrap();
            let result = json!({
                "resultType": "complete",
                "supportedVersions": [Revision::LATEST],
                "capabilities": {"tools": {}},
                "content": [],
            });
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            peer.send(answer).await.unwrap();
            if request["method"] == "tools/call" {
                return request["params"]["_meta"].clone();
            }
        }
    };
    let call = async {
        let session = client(Revision::LATEST).connect(transport).await.unwrap();
        let call = session.call_tool("idle", json!({}));
        let call = match own {
            Some(own) => call.meta(Meta::TRACEPARENT, own),
            None => call,
        };
        call.await.unwrap();
    };
    let (meta, ()) = tokio::join!(serve, call);
    serde_json::from_str(&meta.to_string()).unwrap()
}

#[tokio::test]
async fn client_sends_its_current_span() {
    let spans = Spans::all();
    let meta = sent(None).await;
    let exported = spans.take();
    let call = exported
        .iter()
        .find(|it| it.name == "tools/call idle")
        .unwrap();
    let (trace, id) = (call.span_context.trace_id(), call.span_context.span_id());
    assert_eq!(meta.traceparent(), Some(&*format!("00-{trace}-{id}-01")));
    assert_eq!(meta.get(Meta::TRACESTATE), None);
    assert_eq!(meta.get(Meta::BAGGAGE), None);
    assert_eq!(sent(Some(PARENT)).await.traceparent(), Some(PARENT));

    let within = Context::current().with_baggage([KeyValue::new("user", "alice")]);
    let meta = sent(None).with_context(within).await;
    assert_eq!(meta.baggage(), Some("user=alice"));
}

#[tokio::test]
async fn filtered_call_span_continues_the_enclosing_span() {
    let spans = Spans::served();
    let meta = sent(None).instrument(info_span!("user")).await;
    let user = spans.one();
    let id = user.span_context.span_id().to_string();
    assert!(meta.traceparent().unwrap().contains(&id));
    assert_eq!(sent(None).await.get(Meta::TRACEPARENT), None);
}

/// Serves a call of `idle` over HTTP, and returns its response.
async fn post(endpoint: &StreamableHttp, headers: &[(&str, &str)], meta: &[(&str, &str)]) -> Value {
    let mut said = ScriptedPeer::modern_meta();
    for (key, value) in meta {
        said[key] = json!(value);
    }
    let request = Request::post("http://localhost/mcp")
        .header("host", "localhost")
        .header(CONTENT_TYPE, "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "idle");
    let add = |request: http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    let request = headers.iter().fold(request, add);
    let body = Full::<Bytes>::from(call(1, "idle", said).to_string());
    let response = endpoint
        .clone()
        .oneshot(request.body(body).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

#[tokio::test]
async fn headers_are_the_parent_without_meta() {
    let spans = Spans::served();
    let endpoint = StreamableHttp::from(server());
    let other = PARENT.replace("b7ad", "0001");
    let (parent, other) = (("traceparent", PARENT), ("traceparent", &*other));
    for (headers, meta, expected) in [
        (&[parent][..], &[][..], "b7ad6b7169203331"),
        (&[other], &[parent], "b7ad6b7169203331"),
        (&[parent], &[("traceparent", "junk")], "b7ad6b7169203331"),
        (&[("traceparent", "junk")], &[], "0000000000000000"),
        // It is unknown which of them is meant.
        (&[parent, other], &[], "0000000000000000"),
    ] {
        post(&endpoint, headers, meta).await;
        let found = spans.one().parent_span_id.to_string();
        assert_eq!(found, expected, "{headers:?} {meta:?}");
    }
}

#[tokio::test]
async fn baggage_merges_meta_headers_and_enclosing_span() {
    let spans = Spans::served();
    let baggage = || async {
        let context = Span::current().context();
        let members = context.baggage().iter();
        let mut members: Vec<_> = members.map(|(key, it)| format!("{key}={}", it.0)).collect();
        members.sort();
        members.join(",")
    };
    let server = Server::new("s", "1").tool(Tool::new("idle", "Tells its baggage", baggage));
    let endpoint = StreamableHttp::from(server);
    let found = async |headers: &[(&str, &str)], meta: &[(&str, &str)]| {
        let answer = post(&endpoint, headers, meta).await;
        let text = answer.pointer("/result/content/0/text").cloned();
        text.unwrap_or_default()
    };
    let parent = ("traceparent", PARENT);
    for (headers, meta, expected) in [
        (&[("baggage", "a=1")][..], &[][..], "a=1"),
        (
            &[parent, ("baggage", "a=1")],
            &[("baggage", "b=2")],
            "a=1,b=2",
        ),
        (
            &[("baggage", "a=1,b=1")],
            &[parent, ("baggage", "b=2")],
            "a=1,b=2",
        ),
        (&[parent, ("baggage", "a=1")], &[parent], "a=1"),
    ] {
        assert_eq!(found(headers, meta).await, expected, "{headers:?} {meta:?}");
    }

    spans.take();
    let http = info_span!("http");
    let carrier = HashMap::from([("traceparent".to_owned(), PARENT.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    let around = ["a", "b", "c"].map(|key| KeyValue::new(key, "3"));
    http.set_parent(context.with_baggage(around)).unwrap();
    let headers = [parent, ("baggage", "a=1,b=1")];
    let found = found(&headers, &[("baggage", "b=2")])
        .instrument(http)
        .await;
    assert_eq!(found, "a=1,b=2,c=3");
    let [served, http] = spans.take().try_into().unwrap();
    assert_eq!(served.parent_span_id, http.span_context.span_id());
}

#[tokio::test]
async fn enclosing_span_is_parent_or_link() {
    let spans = Spans::served();
    let endpoint = StreamableHttp::from(server());
    let parent = [("traceparent", PARENT)];

    // A middleware that ignores the request's trace: the caller's context takes precedence over the middleware's span.
    for (headers, meta) in [(&[][..], &parent[..]), (&parent[..], &[][..])] {
        post(&endpoint, headers, meta)
            .instrument(info_span!("http"))
            .await;
        let [served, http] = spans.take().try_into().unwrap();
        assert_eq!(served.parent_span_id.to_string(), "b7ad6b7169203331");
        let links: Vec<_> = served
            .links
            .iter()
            .map(|link| link.span_context.span_id())
            .collect();
        assert_eq!(links, [http.span_context.span_id()]);
    }
    // A middleware that has continued the trace of the headers, and one without any other context.
    let http = info_span!("http");
    let carrier = HashMap::from([("traceparent".to_owned(), PARENT.to_owned())]);
    let parent_of_http = TraceContextPropagator::new().extract(&carrier);
    http.set_parent(parent_of_http).unwrap();
    for (http, headers) in [(http, &parent[..]), (info_span!("http"), &[][..])] {
        post(&endpoint, headers, &[]).instrument(http).await;
        let [served, http] = spans.take().try_into().unwrap();
        assert_eq!(served.parent_span_id, http.span_context.span_id());
        assert_eq!(served.links.len(), 0);
    }
}

#[tokio::test]
async fn failed_calls_record_their_error() {
    let spans = Spans::all();
    let connecting = testing::connect(&server()).revision(Revision::LATEST);
    let session = connecting.await.unwrap();
    for (tool, error_type, code) in [
        ("fail", "tool_error", None),
        ("none", "-32602", Some("-32602")),
    ] {
        spans.take();
        let result = session.call_tool(tool, json!({})).await;
        assert!(result.is_err_and(|_| tool == "none") || tool == "fail");
        let ended = spans.take();
        let kinds: Vec<_> = ended.iter().map(|span| span.span_kind.clone()).collect();
        assert_eq!(kinds, [SpanKind::Server, SpanKind::Client]);
        for span in ended {
            assert_eq!(
                attribute(&span, "error.type").as_deref(),
                Some(error_type),
                "{tool}"
            );
            assert_eq!(
                attribute(&span, "rpc.response.status_code").as_deref(),
                code,
                "{tool}"
            );
            assert_eq!(span.status, Status::error(""));
        }
    }
    session.call_tool("idle", json!({})).await.unwrap();
    for span in spans.take() {
        assert_eq!(attribute(&span, "error.type"), None);
        assert_eq!(span.status, Status::Unset);
    }
}

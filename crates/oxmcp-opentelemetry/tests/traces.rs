//! Traces that go on at the peer, as the SDK of OpenTelemetry exports them.

#![expect(clippy::unwrap_used, reason = "these are tests")]

use std::sync::LazyLock;

use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use opentelemetry::{
    Context, KeyValue,
    baggage::BaggageExt,
    trace::{SpanId, SpanKind, Status, TracerProvider},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use oxmcp::{
    Accept, Client, ClientSession, JsonSchema, RequestContext, Revision, Server, Tool, ToolError,
    http::{Endpoint, LegacySse, StreamableHttp},
    protocol::{ElicitFormParams, Meta},
    testing::{self, ScriptedPeer},
};
use serde_json::{Value, json};
use tower::ServiceExt;
use tracing::{
    Dispatch, Instrument, Metadata, info_span,
    subscriber::{DefaultGuard, NoSubscriber},
};
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
    let header = |cx: &RequestContext| {
        let value = cx.http_request()?.headers.get("traceparent")?;
        Some(value.to_str().unwrap().to_owned())
    };
    if let Some(header) = header(&cx) {
        assert_eq!(cx.meta().traceparent(), Some(&*header));
    }
    let name: Name = cx.ask("name", "What is your name?").await?;
    Ok(name.name)
}

fn server() -> Server {
    let fail = || async { Err::<(), _>(ToolError::new("no")) };
    Server::new("s", "1")
        .tool(Tool::new("greet", "Greet", greet))
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
    Client::new("c", "1").revisions([revision]).on_elicit(answer)
}

/// What this thread exports, from here on until it is dropped.
struct Spans {
    exporter: InMemorySpanExporter,
    _guard: DefaultGuard,
}

impl Spans {
    fn of(filter: fn(&Metadata<'_>) -> bool) -> Self {
        /// With more than one subscriber tracing asks each whether it wants to hear of a place.
        static OTHERS: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| [(); 2].map(|()| Dispatch::new(NoSubscriber::new())));
        static INSTALLED: LazyLock<()> = LazyLock::new(|| oxmcp_opentelemetry::install().unwrap());
        LazyLock::force(&OTHERS);
        LazyLock::force(&INSTALLED);
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
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
        Self::of(|_| true)
    }

    /// Of servers alone: nothing is sent by clients, then.
    fn served() -> Self {
        Self::of(|metadata| metadata.name() != "mcp.client.request")
    }

    fn take(&self) -> Vec<SpanData> {
        let spans = self.exporter.get_finished_spans().unwrap();
        self.exporter.reset();
        spans
    }

    /// Kind, name and parents of all spans, as a tree; and that they are of one trace each.
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
        // The client is told within the result what to ask, and calls again.
        true => [CALL, AGAIN, &CALL[1..]].concat(),
        false => [CALL, ASKED].concat(),
    }
}

#[tokio::test]
async fn a_call_and_what_it_asks_are_one_trace() {
    let spans = Spans::all();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::LATEST] {
        let connecting = testing::connect(&server()).client(&client(revision));
        let session = connecting.revision(revision).await.unwrap();
        assert_eq!(greeted(&session, &spans).await, expected(revision), "{revision}");
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn over_http_a_call_and_what_it_asks_are_one_trace() {
    let spans = Spans::all();
    let endpoint = StreamableHttp::from(server());
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::LATEST] {
        let url = format!("http://{}/mcp", serving.local_addr());
        let session = client(revision).connect(Endpoint::new(url)).await.unwrap();
        assert_eq!(greeted(&session, &spans).await, expected(revision), "{revision}");
        session.close().await.unwrap();
    }
    serving.close().await;
}

/// A call of a tool that does nothing, in a revision in which servers cannot ask.
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
    let serving = LegacySse::from(server()).serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", serving.local_addr());
    let session = client(Revision::V2024_11_05).connect(Endpoint::new(url)).await.unwrap();
    idled(&session, &spans).await;
    session.close().await.unwrap();
    let serving = StreamableHttp::from(server()).serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    let session = client(Revision::V2025_03_26).connect(Endpoint::new(url)).await.unwrap();
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

fn call(id: i64, tool: &str, meta: Value) -> Value {
    let params = json!({"name": tool, "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// Calls `greet`, and returns what its question says of the trace.
async fn asked(meta: Value) -> Value {
    let mut peer = script(&server(), json!({"elicitation": {}})).await;
    let question = peer.ask(call(1, "greet", meta)).await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    let greeted = peer.ask(answer).await.unwrap();
    assert_eq!(greeted.pointer("/result/content/0/text").unwrap(), "Ada");
    question["params"]["_meta"].clone()
}

#[tokio::test]
async fn what_arrives_goes_on() {
    let spans = Spans::all();
    let state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    let meta = json!({"traceparent": PARENT, "tracestate": state, "baggage": "user=alice"});
    let sent = asked(meta).await;
    let exported = spans.take();
    let question = exported.iter().find(|it| it.name == "elicitation/create").unwrap();
    let id = question.span_context.span_id();
    assert_eq!(question.span_kind, SpanKind::Client);
    assert_eq!(sent["traceparent"], format!("00-{TRACE}-{id}-01"));
    assert_eq!((&sent["tracestate"], &sent["baggage"]), (&json!(state), &json!("user=alice")));
    let served = exported.iter().find(|it| it.name == "tools/call greet").unwrap();
    assert_eq!(served.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(served.parent_span_is_remote);
}

#[tokio::test]
async fn what_is_not_sampled_is_not_sampled_anywhere() {
    let spans = Spans::all();
    spans.take();
    let sent = asked(json!({"traceparent": UNSAMPLED})).await;
    let sent = sent["traceparent"].as_str().unwrap();
    assert!(sent.contains(TRACE) && sent.ends_with("-00"), "{sent}");
    let all = spans.take();
    assert!(all.iter().all(|it| it.name == "initialize"), "{all:?}");
}

#[tokio::test]
async fn what_is_malformed_begins_a_new_trace() {
    let spans = Spans::all();
    let (upper, zero) = (PARENT.to_uppercase(), PARENT.replace(TRACE, &"0".repeat(32)));
    for parent in [json!("junk"), json!(upper), json!(zero), json!(7), json!({"a": 1})] {
        spans.take();
        let meta = json!({"traceparent": parent, "tracestate": "a=1", "baggage": "\r\nX: 1"});
        let sent = asked(meta).await;
        assert_eq!((&sent["tracestate"], &sent["baggage"]), (&Value::Null, &Value::Null));
        let meta: Meta = serde_json::from_value(sent).unwrap();
        let sent = meta.traceparent().unwrap();
        assert!(!sent.contains(TRACE) && sent.ends_with("-01"), "{sent}");
        let tree = spans.tree();
        assert!(tree.contains(&"server tools/call greet".to_owned()), "{tree:?}");
    }
}

#[tokio::test]
async fn each_request_of_a_batch_has_a_trace_of_its_own() {
    let spans = Spans::all();
    let (mut peer, transport) = ScriptedPeer::new().await;
    server().connect(transport).await.unwrap();
    peer.initialize(Revision::V2025_03_26).await.unwrap();
    spans.take();
    let parent = |id: i64| format!("00-{TRACE}-{id:016x}-01");
    let calls = (1..=3).map(|id| call(id, "idle", json!({"traceparent": parent(id)})));
    let answers = peer.ask(calls.collect()).await.unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 3);
    for span in spans.take() {
        let id = attribute(&span, "jsonrpc.request.id").unwrap();
        assert_eq!(span.parent_span_id.to_string(), format!("{id:0>16}"));
    }
}

/// What a server is sent by a client that connects to it within `span`, and calls a tool.
async fn sent(span: tracing::Span, meta: Option<&str>, baggage: Option<&'static str>) -> Value {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let client = Client::new("c", "1").revisions([Revision::LATEST]);
    let serve = async {
        loop {
            let request = peer.receive().await.unwrap();
            let result = json!({"content": [], "supportedVersions": [Revision::LATEST], "capabilities": {"tools": {}}});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            peer.send(answer).await.unwrap();
            if request["method"] == "tools/call" {
                return request["params"]["_meta"].clone();
            }
        }
    };
    let call = async {
        let session = client.connect(transport).await.unwrap();
        let mut call = session.call_tool("idle", json!({}));
        if let Some(own) = meta {
            call = call.meta(Meta::TRACEPARENT, own);
        }
        let within = baggage.map(|user| Context::current_with_baggage([KeyValue::new("user", user)]));
        let _attached = within.map(Context::attach);
        call.into_future().now_or_never_sent();
    };
    let (meta, ()) = tokio::join!(serve, call.instrument(span));
    meta
}

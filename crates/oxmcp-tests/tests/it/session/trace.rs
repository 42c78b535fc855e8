//! The spans of requests, on the client's and the server's side.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{
    JsonSchema, Prompt, Resource, Result, Revision, Server, Tool, ToolError,
    testing::{self, ScriptedPeer},
};
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::{script, subscribe};

type Fields = BTreeMap<String, String>;

/// A subscriber that records the name and the fields of every span of a request.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        self.0
            .insert(field.name().to_owned(), text.trim_matches('"').to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "oxmcp::session::trace::span"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        fields.insert("name".to_owned(), attributes.metadata().name().to_owned());
        attributes.record(&mut Into(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock().unwrap();
        let index = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Into(&mut spans[index]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Spans {
    fn take(&self) -> Vec<Fields> {
        self.0.lock().unwrap().clone()
    }

    /// The spans of one method. The tests compare the whole set of fields of each.
    fn of(&self, name: &str, method: &str) -> Vec<Fields> {
        let spans = self.take().into_iter();
        let is_meant = |span: &Fields| span["name"] == name && span["mcp.method.name"] == method;
        spans.filter(is_meant).collect()
    }
}

fn fields(fields: &[(&str, &str)]) -> Fields {
    let fields = fields.iter();
    fields
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    let wrong = |_: Nothing| async { Err::<(), _>(oxmcp::Error::invalid_params("no")) };
    let fail = || async { Err::<(), _>(ToolError::new("no")) };
    #[expect(unreachable_code, reason = "it needs a type")]
    let panic = || async {
        panic!("it is a bad tool");
        ""
    };
    Server::new("s", "1")
        .tool(Tool::new("wrong", "Fail", wrong))
        .tool(Tool::new("fail", "Fail", fail))
        .tool(Tool::new("panic", "Panic", panic))
        .tool(Tool::new("stuck", "Wait", || async {
            std::future::pending::<()>().await;
        }))
        .prompt(Prompt::new("haiku", "Write", || async { "" }))
        .resource(Resource::new("a://b", "b", || async { "" }))
}

#[tokio::test]
async fn request_spans_follow_conventions_on_both_sides() -> Result<()> {
    let spans = Spans::default();
    let _guard = subscribe(spans.clone());
    let t = testing::connect(&server())
        .revision(Revision::LATEST)
        .await?;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let wrong = t.call_tool("wrong", json!({})).meta("traceparent", trace);
    wrong.await.unwrap_err();
    t.get_prompt("haiku", ()).await?;
    t.read_resource("a://b").await?;
    t.tools().all().await?;
    t.close().await?;

    for (method, id, own) in [
        (
            "tools/call",
            "2",
            &[
                ("otel.name", "tools/call wrong"),
                ("gen_ai.tool.name", "wrong"),
                ("gen_ai.operation.name", "execute_tool"),
                ("error.type", "-32602"),
                ("rpc.response.status_code", "-32602"),
                ("otel.status_code", "ERROR"),
            ][..],
        ),
        (
            "prompts/get",
            "3",
            &[
                ("otel.name", "prompts/get haiku"),
                ("gen_ai.prompt.name", "haiku"),
            ],
        ),
        (
            "resources/read",
            "4",
            &[
                ("otel.name", "resources/read"),
                ("mcp.resource.uri", "a://b"),
            ],
        ),
        ("tools/list", "5", &[("otel.name", "tools/list")]),
    ] {
        for (name, kind) in [
            ("mcp.server.request", "server"),
            ("mcp.client.request", "client"),
        ] {
            let mut expected = fields(own);
            expected.extend(fields(&[
                ("name", name),
                ("otel.kind", kind),
                ("mcp.method.name", method),
                ("mcp.protocol.version", "2026-07-28"),
                ("jsonrpc.request.id", id),
            ]));
            if (method, kind) == ("tools/call", "server") {
                expected.extend(fields(&[("traceparent", trace)]));
            }
            assert_eq!(spans.of(name, method), [expected]);
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn failures_without_an_answer_are_recorded() -> Result<()> {
    let spans = Spans::default();
    let _guard = subscribe(spans.clone());
    let t = testing::connect(&server()).await?;
    t.call_tool("fail", ()).await?;
    t.call_tool("panic", ()).await.unwrap_err();
    t.call_tool("nowhere", ()).await.unwrap_err();
    let late = t.call_tool("stuck", ()).timeout(Duration::from_secs(1));
    assert!(late.await.unwrap_err().is_timeout());
    let dropped = tokio::time::timeout(
        Duration::from_secs(1),
        t.call_tool("stuck", ()).into_future(),
    );
    dropped.await.unwrap_err();
    // Cancelled handlers have their grace period.
    tokio::time::sleep(Duration::from_secs(10)).await;

    let ends = |name: &str| {
        let calls = spans.of(name, "tools/call").into_iter();
        let ends = calls.map(|span| {
            let field = |key: &str| span.get(key).cloned().unwrap_or_default();
            assert_eq!(field("otel.status_code"), "ERROR");
            (field("error.type"), field("rpc.response.status_code"))
        });
        ends.collect::<Vec<_>>()
    };
    let pair = |error: &str, code: &str| (error.to_owned(), code.to_owned());
    let first = [
        pair("tool_error", ""),
        pair("-32603", "-32603"),
        pair("-32602", "-32602"),
    ];
    let cancelled = pair("cancelled", "");
    let served = [&first[..], &[cancelled.clone(), cancelled.clone()]].concat();
    assert_eq!(ends("mcp.server.request"), served);
    let made = [&first[..], &[pair("timeout", ""), cancelled]].concat();
    assert_eq!(ends("mcp.client.request"), made);
    t.close().await
}

/// Without a propagator no trace context is sent, and a received one is ignored.
#[tokio::test]
async fn no_trace_context_is_sent_without_propagator() -> Result<()> {
    let spans = Spans::default();
    let _guard = subscribe(spans.clone());
    let (mut peer, transport) = ScriptedPeer::new().await;
    let asked = async {
        let asked = peer.receive().await.unwrap();
        peer.close().await.unwrap();
        asked
    };
    let client = oxmcp::Client::new("c", "1");
    let (asked, failed) = tokio::join!(asked, client.connect(transport));
    failed.unwrap_err();
    let meta = asked["params"]["_meta"].as_object().unwrap();
    assert!(
        !meta
            .keys()
            .any(|key| key.starts_with("trace") || key == "baggage"),
        "{asked}"
    );
    Ok(())
}

/// A peer's text may be as long as a message, and exporters would keep all of it.
#[tokio::test]
async fn long_peer_texts_are_truncated() {
    let spans = Spans::default();
    let _guard = subscribe(spans.clone());
    let mut peer = script(&server()).await;
    let long = "é".repeat(5_000);
    let requests = [
        ("tools/call", json!({"name": long, "arguments": {}})),
        ("prompts/get", json!({"name": long})),
        ("resources/read", json!({"uri": long})),
    ];
    for (method, mut params) in requests {
        params["_meta"] = ScriptedPeer::modern_meta();
        let request = json!({"jsonrpc": "2.0", "id": long, "method": method, "params": params});
        peer.ask(request).await.unwrap();
    }
    peer.ask(json!({"jsonrpc": "2.0", "id": 1, "method": long, "params": {"_meta": ScriptedPeer::modern_meta()}}))
        .await
        .unwrap();
    let cut = |length: usize| "é".repeat(length) + "…";
    assert_eq!(spans.of("mcp.server.request", &cut(256)).len(), 1);
    for (method, field, length) in [
        ("tools/call", "gen_ai.tool.name", 256),
        ("prompts/get", "gen_ai.prompt.name", 256),
        ("resources/read", "mcp.resource.uri", 1024),
    ] {
        let [span] = spans.of("mcp.server.request", method).try_into().unwrap();
        assert_eq!(span[field], cut(length), "{method}");
        assert_eq!(span["jsonrpc.request.id"], cut(64), "{method}");
        let name = span["otel.name"].chars().count();
        assert!(name <= method.len() + 1 + 257, "{method}: {name}");
    }
}

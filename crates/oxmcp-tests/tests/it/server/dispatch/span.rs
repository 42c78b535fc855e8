//! The tracing span of each request.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use oxmcp::{JsonSchema, Prompt, Result, Revision, Server, Tool, testing};
use serde_json::json;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::subscribe;

type Fields = BTreeMap<String, String>;

/// Keeps the fields of every span of a request.
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
        metadata.is_span() && metadata.name() == "mcp.server.request"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
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

fn fields(fields: &[(&str, &str)]) -> Fields {
    let fields = fields.iter();
    fields
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[derive(serde::Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_request_has_a_span_by_the_conventions() -> Result<()> {
    let spans = Spans::default();
    let _guard = subscribe(spans.clone());
    let fail = |_: Nothing| async { Err::<(), _>(oxmcp::Error::invalid_params("no")) };
    let server = Server::new("s", "1")
        .tool(Tool::new("fail", "Fail", fail))
        .prompt(Prompt::new("haiku", "Write", || async { "" }));
    let t = testing::connect(&server).revision(Revision::LATEST).await?;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    t.call_tool("fail", json!({}))
        .meta("traceparent", trace)
        .await
        .unwrap_err();
    t.get_prompt("haiku", ()).await?;
    t.close().await?;

    let call = [
        ("error.type", "-32602"),
        ("gen_ai.tool.name", "fail"),
        ("jsonrpc.request.id", "2"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2026-07-28"),
        ("otel.kind", "server"),
        ("otel.name", "tools/call fail"),
        ("traceparent", trace),
    ];
    let prompt = [
        ("gen_ai.prompt.name", "haiku"),
        ("jsonrpc.request.id", "3"),
        ("mcp.method.name", "prompts/get"),
        ("mcp.protocol.version", "2026-07-28"),
        ("otel.kind", "server"),
        ("otel.name", "prompts/get haiku"),
    ];
    assert_eq!(*spans.0.lock().unwrap(), [fields(&call), fields(&prompt)]);
    Ok(())
}

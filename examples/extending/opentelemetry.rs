//! One OpenTelemetry trace across two processes: a client, the server that it starts, and the server's question to the user. This
//! program prints spans as they end; a real one would export them (crate `opentelemetry-otlp`).
//!
//! `cargo run --example opentelemetry --features opentelemetry`
#![expect(clippy::print_stderr, reason = "a program for the terminal")]

use std::env;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use oxmcp::{
    Accept, Client, Command, JsonSchema, RequestContext, Result, Revision, Server, ToolError,
    protocol::ElicitFormParams, stdio, transport::Stderr,
};
use serde_json::json;
use tracing::{Instrument, info_span};
use tracing_subscriber::{
    Layer, filter::LevelFilter, layer::SubscriberExt, util::SubscriberInitExt,
};

/// Prints each span with its id, its parent's id, and the trace's id.
#[derive(Debug)]
struct Print(&'static str);

impl SpanExporter for Print {
    async fn export(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        for span in spans {
            let line = format!(
                "{} {:?} {}: span {} of {} in trace {}\n",
                self.0,
                span.span_kind,
                span.name,
                span.span_context.span_id(),
                span.parent_span_id,
                span.span_context.trace_id(),
            );
            // Printed in one piece, because the other process prints to the same terminal.
            eprint!("{line}");
        }
        Ok(())
    }
}

fn trace(process: &'static str) -> Result<()> {
    let exporter = Print(process);
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter)
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(process));
    tracing_subscriber::registry()
        .with(layer.with_filter(LevelFilter::INFO))
        .init();
    // From now on, traces continue at the peer, whether this process is the client or the server.
    oxmcp_opentelemetry::install()
}

#[derive(serde::Deserialize, serde::Serialize, JsonSchema)]
struct Table {
    number: u32,
}

/// Order a cup of tea
#[oxmcp::tool]
async fn order(cx: RequestContext, tea: String) -> Result<String, ToolError> {
    let table: Table = cx.ask("table", "At which table?").await?;
    // Spans within the handler belong to the trace, too.
    brew(&tea).instrument(info_span!("brew")).await;
    Ok(format!("{tea} for table {}", table.number))
}

async fn brew(_tea: &str) {}

#[tokio::main]
async fn main() -> Result<()> {
    if env::args().nth(1).as_deref() == Some("server") {
        trace("server")?;
        let server = Server::new("teahouse", "1.0.0").tool(order::tool());
        return server.run(stdio()).await;
    }
    trace("client")?;
    let client = Client::new("my-app", "1.0.0")
        .on_elicit(|_: ElicitFormParams| async { Accept(Table { number: 7 }) });
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = Command::new(env::current_exe()?).arg("server");
        let server = server.stderr(Stderr::inherit());
        let client = client.clone().revisions([revision]);
        let evening = async {
            let session = client.connect(server).await?;
            session.call_tool("order", json!({"tea": "oolong"})).await?;
            session.close().await
        };
        evening.instrument(info_span!("evening")).await?;
    }
    Ok(())
}

//! The `tracing` span of a request, named by OpenTelemetry's
//! [conventions for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

use tracing::{Instrument, Level, Span, field::Empty};

use crate::{
    json::Text,
    protocol::RequestParams,
    session::{ContextParts, Work},
};

/// Makes the work happen in a span of its own, if anybody listens.
pub(super) fn traced(
    work: Work,
    context: &ContextParts,
    method: &str,
    params: &RequestParams<'_>,
) -> Work {
    if !tracing::enabled!(Level::INFO) {
        return work;
    }
    let span = span(context, method, params);
    let Work {
        future,
        pace,
        begun,
    } = work;
    let future = Box::pin(
        async {
            let result = future.await;
            if let Err(error) = &result {
                Span::current().record("error.type", error.code().value());
            }
            result
        }
        .instrument(span),
    );
    Work {
        future,
        pace,
        begun,
    }
}

fn span(context: &ContextParts, method: &str, params: &RequestParams<'_>) -> Span {
    let name = params.name.and_then(Text::as_str);
    let id = context.id.as_ref().map(ToString::to_string);
    let span = tracing::info_span!(
        "mcp.server.request",
        otel.name = Empty,
        otel.kind = "server",
        mcp.method.name = method,
        mcp.protocol.version = context.peer.revision.as_str(),
        jsonrpc.request.id = id,
        gen_ai.tool.name = name.as_deref(),
        traceparent = params.meta.traceparent().as_deref(),
        error.type = Empty,
    );
    match &name {
        Some(name) => span.record("otel.name", format!("{method} {name}")),
        None => span.record("otel.name", method),
    };
    span
}

//! The OpenTelemetry trace in which our client and our server take part.

use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::{
    Layer, filter::LevelFilter, layer::SubscriberExt, util::SubscriberInitExt,
};

/// Propagates traces to the peer.
///
/// # Errors
/// If propagation was installed before.
pub fn install() -> oxmcp::Result<()> {
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("interop"));
    tracing_subscriber::registry()
        .with(layer.with_filter(LevelFilter::INFO))
        .init();
    oxmcp_opentelemetry::install()
}

/// The id of the trace of the current span.
#[must_use]
pub fn current_id() -> String {
    let context = Span::current().context();
    context.span().span_context().trace_id().to_string()
}

//! OpenTelemetry for MCP clients and servers: traces that continue at the peer, by [`install`], and [`Metrics`].
//!
//! ```
//! use opentelemetry::trace::TracerProvider;
//! use opentelemetry_sdk::trace::SdkTracerProvider;
//! use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
//!
//! # fn main() -> oxmcp::Result<()> {
//! let provider = SdkTracerProvider::builder().build(); // with the exporter of your choice
//! let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("my-server"));
//! tracing_subscriber::registry().with(layer).init();
//!
//! oxmcp_opentelemetry::install() // no changes to servers and clients
//! # }
//! ```
//!
//! [`oxmcp::trace`] describes the spans, and the context that is sent. The spans have the level `info`: a filter in front of
//! the layer must let the target `oxmcp` pass. Otherwise the peer continues the trace from the span around the call.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod metrics;

pub use metrics::{Metrics, SessionTimer};

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use opentelemetry::{
    Context,
    baggage::{Baggage, BaggageExt},
    global,
    propagation::{Extractor, TextMapCompositePropagator, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use oxmcp::trace::{Propagator, TraceContext};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The propagation formats of the protocol.
static W3C: LazyLock<TextMapCompositePropagator> = LazyLock::new(|| {
    TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ])
});

/// Propagates traces to and from peers, for all clients and servers of this process. See the [crate](self).
///
/// # Errors
/// If the process already has a propagator; see [`set_propagator`](oxmcp::trace::set_propagator).
pub fn install() -> oxmcp::Result<()> {
    oxmcp::trace::set_propagator(OpenTelemetry)
}

struct OpenTelemetry;

impl Propagator for OpenTelemetry {
    fn inject(&self, span: &Span) -> TraceContext {
        let context = context_of(span);
        let mut fields = HashMap::new();
        with_propagator(|it| it.inject_context(&context, &mut fields));
        TraceContext::read(|name| fields.get(name).map(|value| Cow::Borrowed(&**value)))
    }

    fn extract(&self, context: &TraceContext, span: &Span) {
        let around = context_of(&Span::current());
        let parent = with_propagator(|it| it.extract_with_context(&around, &Fields(context)));
        let parent = parent.with_baggage(joined(parent.baggage(), around.baggage()));
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "could not continue the trace of a request");
        }
    }
}

/// The context of a span, or of the thread if the span has none, as in programs that create spans without `tracing`.
///
/// While a span is entered, the layer attaches its context to the thread, so contexts that were attached or detached since then
/// count. If the layer is configured not to attach it, the baggage of the thread is merged with the baggage of the span.
fn context_of(span: &Span) -> Context {
    let of_thread = Context::current();
    let context = span.context();
    let is_attached = of_thread.span().span_context() == context.span().span_context();
    if is_attached || !context.has_active_span() {
        of_thread
    } else {
        context.with_baggage(joined(of_thread.baggage(), context.baggage()))
    }
}

/// The members of the first baggage, and those of the second whose names are not among them.
fn joined(first: &Baggage, then: &Baggage) -> Baggage {
    let mut joined = Baggage::new();
    for (key, (value, metadata)) in first.iter().chain(then) {
        if joined.get(key).is_none() {
            joined.insert_with_metadata(key.clone(), value.clone(), metadata.as_str());
        }
    }
    joined
}

/// Calls `f` with the propagator of the program, or with the W3C propagators if the program has none.
fn with_propagator<T>(mut f: impl FnMut(&dyn TextMapPropagator) -> T) -> T {
    global::get_text_map_propagator(|propagator| match propagator.fields().next() {
        Some(_) => f(propagator),
        None => f(&*W3C),
    })
}

/// The trace context of a request, as fields.
struct Fields<'a>(&'a TraceContext);

impl Extractor for Fields<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.fields();
        fields.find_map(|(it, value)| it.eq_ignore_ascii_case(name).then_some(value))
    }

    fn keys(&self) -> Vec<&str> {
        self.0.fields().map(|(name, _)| name).collect()
    }
}

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

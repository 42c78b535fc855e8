//! `tracing` span of a request, named by OpenTelemetry's
//! [conventions for MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::{
    Method,
    internal::RequestParams,
    method::{CallTool, GetPrompt},
};
use tracing::{Instrument, Span, field::Empty};

use crate::session::{connection::ContextParts, inbound::run::Work};

#[cfg(feature = "tracing-subscriber")]
pub(in crate::server) use layer::{install_layer, request_of_new_span};

/// The name of the span.
pub(in crate::server) const NAME: &str = "mcp.server.request";
/// Its target.
pub(in crate::server) const TARGET: &str = module_path!();

/// Runs the work in a span of its own, if a subscriber wants it.
pub(super) fn traced(
    mut work: Work,
    context: &Arc<ContextParts>,
    method: &str,
    params: &RequestParams<'_>,
) -> Work {
    #[cfg(feature = "tracing-subscriber")]
    let span = layer::hand_over(context, || span(context, method, params));
    #[cfg(not(feature = "tracing-subscriber"))]
    let span = span(context, method, params);
    if !span.is_disabled() {
        let future = work.future;
        let recorded_in = span.clone();
        let recorded = async move {
            let result = future.await;
            if let Err(error) = &result {
                recorded_in.record("error.type", error.code().value());
            }
            result
        };
        work.future = Box::pin(recorded.instrument(span));
    }
    work
}

/// A span that no subscriber wants costs nothing: the fields are not computed then.
fn span(context: &ContextParts, method: &str, params: &RequestParams<'_>) -> Span {
    let name_if = |is_named: bool| params.name.filter(|_| is_named).and_then(Text::as_str);
    tracing::info_span!(
        target: TARGET,
        NAME,
        otel.name = span_name(method, params),
        otel.kind = "server",
        mcp.method.name = method,
        mcp.protocol.version = context.peer.revision.as_str(),
        jsonrpc.request.id = context.id.as_ref().map(ToString::to_string),
        gen_ai.tool.name = name_if(method == CallTool::NAME).as_deref(),
        gen_ai.prompt.name = name_if(method == GetPrompt::NAME).as_deref(),
        traceparent = params.meta.traceparent().as_deref(),
        error.type = Empty,
    )
}

fn span_name(method: &str, params: &RequestParams<'_>) -> String {
    match params.name.and_then(Text::as_str) {
        Some(name) => format!("{method} {name}"),
        None => method.to_owned(),
    }
}

/// The way of a request to the layer of [`logging`](crate::server::logging), which learns of a span while it is made. A span
/// cannot carry more than text.
#[cfg(feature = "tracing-subscriber")]
mod layer {
    use std::{
        cell::RefCell,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use crate::session::connection::{ContextParts, RequestContext};

    static INSTALLED: AtomicBool = AtomicBool::new(false);

    thread_local! {
        /// The request whose span is being made on this thread.
        static REQUEST: RefCell<Option<RequestContext>> = const { RefCell::new(None) };
    }

    /// A layer wants to know the requests of spans from now on.
    pub(in crate::server) fn install_layer() {
        INSTALLED.store(true, Ordering::Relaxed);
    }

    /// Makes a span while its request can be asked for.
    pub(super) fn hand_over<T>(context: &Arc<ContextParts>, make: impl FnOnce() -> T) -> T {
        if !INSTALLED.load(Ordering::Relaxed) {
            return make();
        }
        REQUEST.set(Some(RequestContext::new(Arc::clone(context))));
        let made = make();
        REQUEST.take();
        made
    }

    pub(in crate::server) fn request_of_new_span() -> Option<RequestContext> {
        REQUEST.with_borrow(Clone::clone)
    }
}

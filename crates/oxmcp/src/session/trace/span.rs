//! The spans of requests, outgoing and incoming, by OpenTelemetry's [conventions for
//! MCP](https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/).

use std::{borrow::Cow, cell::LazyCell, sync::Arc, thread};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorObject, Method, Revision,
    internal::{RequestParams, project_error},
    method::{CallTool, GetPrompt, ReadResource, Subscribe, Unsubscribe},
};
use tracing::{Instrument, Span, field::Empty};

use crate::{
    error::Error,
    logged::cut,
    session::{
        connection::ContextParts,
        inbound::{body::Body, run::Work},
        trace::propagator,
    },
};

#[cfg(all(feature = "server", feature = "tracing-subscriber"))]
pub(crate) use layer::{install_layer, request_of_new_span};

/// The name of the span of an incoming request.
pub(crate) const INBOUND: &str = "mcp.server.request";
/// The name of the span of an outgoing request.
const OUTBOUND: &str = "mcp.client.request";
/// The target of both spans.
pub(crate) const TARGET: &str = module_path!();

/// The maximum number of characters of a name or method, of a URI and of a request ID in a span: longer values are not meant to
/// be read.
const MAX_NAME: usize = 256;
const MAX_URI: usize = 1024;
const MAX_ID: usize = 64;

/// Creates a span with the fields of both directions. Fields that are not known yet are recorded later.
macro_rules! request_span {
    ($name:expr, $kind:literal, $method:expr, $subject:expr, $($field:tt)*) => {
        tracing::info_span!(
            target: TARGET,
            $name,
            otel.name = $subject.span_name($method),
            otel.kind = $kind,
            otel.status_code = Empty,
            mcp.method.name = $method,
            mcp.resource.uri = $subject.uri.as_deref(),
            gen_ai.operation.name = ($method == CallTool::NAME).then_some("execute_tool"),
            gen_ai.tool.name = $subject.tool.as_deref(),
            gen_ai.prompt.name = $subject.prompt.as_deref(),
            error.type = Empty,
            rpc.response.status_code = Empty,
            $($field)*
        )
    };
}

/// The target of a request: a tool, a prompt or a URI.
#[derive(Default)]
struct Subject<'a> {
    tool: Option<Cow<'a, str>>,
    prompt: Option<Cow<'a, str>>,
    uri: Option<Cow<'a, str>>,
}

impl<'a> Subject<'a> {
    fn of(method: &str, params: &RequestParams<'a>) -> Self {
        let name = || Some(cut(params.name.and_then(Text::as_str)?, MAX_NAME));
        let mut subject = Self::default();
        match method {
            CallTool::NAME => subject.tool = name(),
            GetPrompt::NAME => subject.prompt = name(),
            ReadResource::NAME | Subscribe::NAME | Unsubscribe::NAME => {
                let uri = params.first_member("uri").and_then(Text::as_str);
                subject.uri = uri.map(|uri| cut(uri, MAX_URI));
            }
            _ => {}
        }
        subject
    }

    fn span_name(&self, method: &str) -> String {
        match self.tool.as_ref().or(self.prompt.as_ref()) {
            Some(name) => format!("{method} {name}"),
            None => method.to_owned(),
        }
    }
}

/// The span of an incoming request, which continues the trace of its caller. If no subscriber wants the span, its fields are
/// not computed, and it costs nothing.
pub(crate) fn inbound(
    context: &Arc<ContextParts>,
    method: &str,
    params: &RequestParams<'_>,
) -> InboundSpan {
    let subject = LazyCell::new(|| Subject::of(method, params));
    let make = || {
        let method = LazyCell::new(|| cut(method, MAX_NAME));
        request_span!(
            INBOUND,
            "server",
            &**method,
            subject,
            mcp.protocol.version = context.peer.revision.as_str(),
            jsonrpc.request.id = context
                .id
                .as_ref()
                .map(|id| cut(id.to_string(), MAX_ID))
                .as_deref(),
            traceparent = params
                .meta
                .trace_context()
                .traceparent()
                .map(|it| cut(it, MAX_NAME))
                .as_deref(),
        )
    };
    #[cfg(feature = "tracing-subscriber")]
    let span = layer::hand_over(context, make);
    #[cfg(not(feature = "tracing-subscriber"))]
    let span = make();
    let said = || params.meta.trace_context();
    propagator::extract(&span, said, context.connection.caller().trace.as_deref());
    InboundSpan {
        span,
        revision: context.peer.revision,
        is_call: method == CallTool::NAME,
        is_finished: false,
    }
}

/// The span of an incoming request. If it is dropped before the request is [finished](Self::finish), it records a cancellation.
pub(crate) struct InboundSpan {
    span: Span,
    revision: Revision,
    is_call: bool,
    is_finished: bool,
}

impl InboundSpan {
    /// Calls `f` in the span.
    pub(crate) fn in_scope<T>(&self, f: impl FnOnce() -> T) -> T {
        self.span.in_scope(f)
    }

    /// Runs the work in the span, if a subscriber wants it.
    pub(crate) fn around(self, mut work: Work) -> Work {
        if !self.span.is_disabled() {
            let future = work.future;
            let span = self.span.clone();
            let recorded = async move {
                let span = self;
                let result = future.await;
                span.finish(result.as_ref());
                result
            };
            work.future = Box::pin(recorded.instrument(span));
        }
        work
    }

    /// Records the outcome of the request.
    pub(crate) fn finish(mut self, result: Result<&Body, &Error>) {
        self.is_finished = true;
        if self.span.is_disabled() {
            return;
        }
        match result {
            Ok(body) if self.is_call && is_tool_error(body) => fail(&self.span, "tool_error"),
            Ok(_) => {}
            // No response is sent.
            Err(error) if error.is_cancelled() => fail(&self.span, "cancelled"),
            Err(error) => {
                let mut object = ErrorObject::from(error);
                project_error(&mut object, self.revision);
                fail_with_code(&self.span, object.code.value());
            }
        }
    }
}

impl Drop for InboundSpan {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if thread::panicking() {
            let code = oxmcp_protocol::ErrorCode::INTERNAL_ERROR;
            fail_with_code(&self.span, code.value());
        } else {
            fail(&self.span, "cancelled");
        }
    }
}

/// The span of an outgoing request.
pub(crate) fn outbound(revision: Option<Revision>, method: &str, params: &[u8]) -> OutboundSpan {
    let text = LazyCell::new(|| std::str::from_utf8(params).unwrap_or("{}"));
    let subject = LazyCell::new(|| {
        let params = RequestParams::of(Text::checked(*text));
        Subject::of(method, &params)
    });
    let span = request_span!(
        OUTBOUND,
        "client",
        method,
        subject,
        mcp.protocol.version = revision.map(Revision::as_str),
        jsonrpc.request.id = Empty,
    );
    OutboundSpan {
        span,
        is_call: method == CallTool::NAME,
    }
}

/// The span of an outgoing request. It is never entered, because the peer does the work in it.
pub(crate) struct OutboundSpan {
    pub(crate) span: Span,
    is_call: bool,
}

impl OutboundSpan {
    /// Records the ID that was assigned to the request.
    pub(crate) fn begin(&self, id: i64) {
        if !self.span.is_disabled() {
            self.span.record("jsonrpc.request.id", id.to_string());
        }
    }

    /// Records the response: a result, as JSON, or an error.
    pub(crate) fn finish(&self, result: Result<&str, &Error>) {
        if self.span.is_disabled() {
            return;
        }
        match result {
            Ok(json) if self.is_call && says_tool_error(json) => fail(&self.span, "tool_error"),
            Ok(_) => {}
            Err(error) if error.is_protocol() => fail_with_code(&self.span, error.code().value()),
            Err(error) => fail(&self.span, error_type(error)),
        }
    }

    /// Records that no response will arrive.
    pub(crate) fn fail(&self, error_type: &'static str) {
        fail(&self.span, error_type);
    }
}

/// The `error.type` of an error that the peer has not sent.
fn error_type(error: &Error) -> &'static str {
    match error {
        _ if error.is_timeout() => "timeout",
        _ if error.is_cancelled() => "cancelled",
        _ if error.is_closed() => "closed",
        _ if error.is_network() => "network",
        _ => "_OTHER",
    }
}

fn fail(span: &Span, error_type: &str) {
    span.record("error.type", error_type);
    span.record("otel.status_code", "ERROR");
}

fn fail_with_code(span: &Span, code: i64) {
    let code = code.to_string();
    fail(span, &code);
    span.record("rpc.response.status_code", code);
}

fn is_tool_error(body: &Body) -> bool {
    match body {
        Body::Tool(result) => result.is_error,
        Body::Json(json) => says_tool_error(json),
        Body::Shared(_) | Body::Other(_) => false,
    }
}

fn says_tool_error(json: &str) -> bool {
    let mut members = Text::checked(json).members();
    members.any(|(key, value)| key.is_str("isError") && value.get() == "true")
}

/// The handover of a request to the layer for `tracing-subscriber`, which is notified of a span while it is created. A span
/// itself can contain only text.
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
        /// The request whose span is being created on this thread.
        static REQUEST: RefCell<Option<RequestContext>> = const { RefCell::new(None) };
    }

    /// Records that a layer needs the requests of spans from now on.
    pub(crate) fn install_layer() {
        INSTALLED.store(true, Ordering::Relaxed);
    }

    /// Creates a span while its request can be queried.
    pub(crate) fn hand_over<T>(context: &Arc<ContextParts>, make: impl FnOnce() -> T) -> T {
        if !INSTALLED.load(Ordering::Relaxed) {
            return make();
        }
        REQUEST.set(Some(RequestContext::new(Arc::clone(context))));
        let made = make();
        REQUEST.take();
        made
    }

    pub(crate) fn request_of_new_span() -> Option<RequestContext> {
        REQUEST.with_borrow(Clone::clone)
    }
}

//! The propagator of the process, which carries traces from spans into messages and back.

use std::sync::OnceLock;

use oxmcp_protocol::TraceContext;
use tracing::Span;

use crate::{
    error::{Error, Result},
    logged::Logged,
    session::panics,
};

static PROPAGATOR: OnceLock<Box<dyn Propagator>> = OnceLock::new();

/// Carries traces from [`tracing`] spans into messages and back. See the [module](super).
///
/// Its methods are called for each request, and must not block.
pub trait Propagator: Send + Sync + 'static {
    /// Returns the context of a span's trace, which is sent with a request that is made within the span.
    fn inject(&self, span: &Span) -> TraceContext;

    /// Makes a received context the parent of a span that was just created and not entered yet. The current span is the one
    /// around it.
    fn extract(&self, context: &TraceContext, span: &Span);
}

/// Sets the propagator of this process, for all its clients and servers.
///
/// ```
/// use oxmcp::trace::{self, Propagator, TraceContext};
/// use tracing::Span;
///
/// /// All requests belong to the trace in which this process was started.
/// struct OfProcess(TraceContext);
///
/// impl Propagator for OfProcess {
///     fn inject(&self, _: &Span) -> TraceContext {
///         self.0.clone()
///     }
///
///     fn extract(&self, _: &TraceContext, _: &Span) {}
/// }
///
/// # fn main() -> oxmcp::Result<()> {
/// let parent = std::env::var("TRACEPARENT").unwrap_or_default();
/// trace::set_propagator(OfProcess([("traceparent", &*parent)].into_iter().collect()))
/// # }
/// ```
///
/// # Errors
/// If a propagator is already set.
pub fn set_propagator(propagator: impl Propagator) -> Result<()> {
    let set = PROPAGATOR.set(Box::new(propagator));
    set.map_err(|_| Error::misuse("this process already has a trace propagator"))
}

/// Whether a propagator is set.
#[cfg(feature = "http-server")]
pub(crate) fn is_set() -> bool {
    PROPAGATOR.get().is_some()
}

/// The context to send with a request that is made in a span. If the span is disabled, the caller's current span counts.
pub(crate) fn inject(span: &Span) -> Option<TraceContext> {
    let propagator = PROPAGATOR.get()?;
    let inject = || match span.is_disabled() {
        true => propagator.inject(&Span::current()),
        false => propagator.inject(span),
    };
    logged(panics::catch_sync(inject)).filter(|context| !context.is_empty())
}

/// Makes the span of a request, which was not entered yet, continue the trace of its caller: by the context in the request
/// (`said`), and for missing members by the context of the transport (`brought`).
pub(crate) fn extract(
    span: &Span,
    said: impl FnOnce() -> TraceContext,
    brought: Option<&TraceContext>,
) {
    let Some(propagator) = PROPAGATOR.get() else {
        return;
    };
    if span.is_disabled() {
        return;
    }
    logged(panics::catch_sync(|| {
        let around = Span::current();
        let said = said();
        let says_parent = said.traceparent().is_some();
        let context = match brought {
            Some(brought) if !says_parent && is_within(&**propagator, &around, brought) => {
                said.or(&brought.clone().without_parent())
            }
            Some(brought) => said.or(brought),
            None => said,
        };
        if context.is_empty() {
            return;
        }
        propagator.extract(&context, span);
        if context.traceparent().is_some() && !around.is_none() {
            span.follows_from(&around);
        }
    }));
}

/// Whether a span belongs to the trace of the transport: then a middleware in front of the endpoint has continued it.
fn is_within(propagator: &dyn Propagator, span: &Span, brought: &TraceContext) -> bool {
    let trace_id = brought.trace_id();
    trace_id.is_some() && propagator.inject(span).trace_id() == trace_id
}

/// The result of a propagator call. A panic is logged, because it must not end the connection.
fn logged<T>(called: std::result::Result<T, panics::Panic>) -> Option<T> {
    let panicked = |panic: &panics::Panic| {
        tracing::error!(panic = %Logged(panic.text()), "trace propagator panicked");
    };
    called.inspect_err(panicked).ok()
}

//! What is asked for by its name, with arguments: tools and prompts.

use std::sync::Arc;

use crate::{
    Error, Result,
    json::Text,
    protocol::Method,
    server::{
        ask::{self, Asks, Target},
        methods::{Call, Served, unknown},
        registry::Feature,
    },
    session::{RequestContext, Work},
};

/// A feature with a handler, which a request names.
pub(crate) trait Named: Feature {
    /// The request.
    type Request: Method;
    /// What it is, in errors.
    const KIND: &'static str;

    /// Whether the handler can ask.
    fn asks(&self) -> Asks;

    /// The work of one request. It may be begun again, with the same arguments.
    fn work(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work;
}

/// See [calling tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools) and
/// [getting a prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt).
pub(super) fn call_by_name<T: Named>(call: Call<'_>) -> Result<Served> {
    let method = T::Request::NAME;
    let registry = T::registry(call.features);
    if !registry.is_declared() {
        return Err(Error::method_not_found(method));
    }
    let name = call.params.name.and_then(Text::as_str);
    let name = name.ok_or_else(|| {
        Error::invalid_params(format!(
            "the params of {method} do not fit: \"name\" must be a string"
        ))
    })?;
    let unknown = || Error::invalid_params(unknown(T::KIND, registry, &call.cx, &name));
    let feature = registry.get(&name, &call.cx).ok_or_else(unknown)?;
    call.peer.undoubted()?;
    let arguments = call
        .params
        .arguments
        .filter(|arguments| !arguments.is_null());
    let arguments = arguments.unwrap_or(Text::EMPTY);
    let asks = feature.asks();
    if !ask::is_wanted(&call, asks) {
        return Ok(Served::Later(feature.work(call.cx, arguments)));
    }
    let target = Target {
        method,
        name: &name,
        arguments,
    };
    let feature = Arc::clone(feature);
    let begin = move |cx, arguments: Text<'_>| feature.work(cx, arguments);
    ask::serve(&call, target, asks, begin).map(Served::Later)
}

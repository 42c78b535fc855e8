//! Table of the methods of a server.

use std::sync::Arc;

use oxmcp_protocol::{EmptyResult, Method, internal::RequestParams, method};

use crate::{
    error::{Error, Result},
    extension::handlers::ServedMethod,
    server::{
        dispatch::{
            Call, Served, ServerRole, call_by_name, complete, list, list_resources, read_resource,
        },
        features::Features,
        logging,
        prompt::RegisteredPrompt,
        resource::RegisteredTemplate,
        subscriptions::{listen, subscribe, unsubscribe},
        tool::RegisteredTool,
    },
    session::{
        connection::RequestContext,
        inbound::{body::Body, run::Work},
    },
};

type Handler = fn(&Call<'_>) -> Result<Served>;

/// The methods that this server serves. The revisions of each are in [`method::REQUESTS_TO_SERVER`].
const METHODS: &[(&str, Handler)] = &[
    (method::CallTool::NAME, call_by_name::<RegisteredTool>),
    (method::ListTools::NAME, list::<RegisteredTool>),
    (method::ReadResource::NAME, read_resource),
    (method::ListResources::NAME, list_resources),
    (
        method::ListResourceTemplates::NAME,
        list::<RegisteredTemplate>,
    ),
    (method::Subscribe::NAME, subscribe),
    (method::Unsubscribe::NAME, unsubscribe),
    (method::GetPrompt::NAME, call_by_name::<RegisteredPrompt>),
    (method::ListPrompts::NAME, list::<RegisteredPrompt>),
    (method::Complete::NAME, complete),
    (method::Ping::NAME, ping),
    (method::Initialize::NAME, initialize),
    (method::Discover::NAME, discover),
    (method::Listen::NAME, listen),
    (method::SetLevel::NAME, logging::set_level),
    (method::GetTask::NAME, serve_by_extension::<method::GetTask>),
    (
        method::GetTaskPayload::NAME,
        serve_by_extension::<method::GetTaskPayload>,
    ),
    (
        method::CancelTask::NAME,
        serve_by_extension::<method::CancelTask>,
    ),
    (
        method::ListTasks::NAME,
        serve_by_extension::<method::ListTasks>,
    ),
];

/// Serves one request of a known client.
///
/// # Errors
/// If the request is refused before its handler is called.
pub(crate) fn serve(
    role: &ServerRole,
    features: &Features,
    cx: RequestContext,
    name: &str,
    params: &RequestParams<'_>,
) -> Result<Served> {
    let row = METHODS.iter().find(|(method, _)| *method == name);
    if let Some((_, handler)) = row
        && method::is_in(method::REQUESTS_TO_SERVER, name, cx.revision())
    {
        return handler(&Call {
            role,
            features,
            cx,
            params,
        });
    }
    let method = features.extensions.method(&cx, name)?;
    begin(method, cx, params)
}

fn begin(method: &ServedMethod, cx: RequestContext, params: &RequestParams<'_>) -> Result<Served> {
    Ok(Served::Pending(Work {
        future: method.begin(cx, params.raw)?,
        inline: Some(Arc::clone(method.inline_execution())),
    }))
}

/// Serves a method of the protocol that only an extension provides.
fn serve_by_extension<M: Method>(call: &Call<'_>) -> Result<Served> {
    let extensions = &call.features.extensions;
    let method = extensions.core_method(M::NAME, call.cx.revision());
    let method = method.ok_or_else(|| Error::method_not_found(M::NAME))?;
    begin(method, call.cx.clone(), call.params)
}

/// Opens a legacy session; a second one is refused by [`ServerRole::open_session`](super::ServerRole::open_session).
/// See [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).
fn initialize(call: &Call<'_>) -> Result<Served> {
    let (negotiated, result) = call
        .features
        .initialize(call.params.raw, call.cx.principal().is_some())?;
    call.role.open_session(negotiated)?;
    Ok(Served::Ready(Body::Shared(result)))
}

/// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
fn ping(call: &Call<'_>) -> Result<Served> {
    call.answer(EmptyResult::default())
}

/// See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
fn discover(call: &Call<'_>) -> Result<Served> {
    let result = call.features.discover(call.cx.revision())?;
    Ok(Served::Ready(Body::Shared(result)))
}

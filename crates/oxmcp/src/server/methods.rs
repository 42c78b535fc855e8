//! What a server does for each method: one row a method.

#![expect(
    clippy::needless_pass_by_value,
    reason = "all rows of the table have one signature"
)]

use std::{mem, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Error, Result,
    json::Text,
    protocol::{
        EmptyResult, HasMeta, ListenParams, Method, PaginatedParams, Project, RequestParams,
        encode_result, into_text, method,
    },
    server::{
        by_name::call_by_name,
        completion::complete,
        features::Features,
        listen,
        lists::{ListPage, page},
        logging,
        peer::ServerPeer,
        prompt::RegisteredPrompt,
        registry::{Feature, Registry},
        resource::{RegisteredResource, RegisteredTemplate, read_resource},
        subscription::{subscribe, unsubscribe},
        tool::RegisteredTool,
    },
    session::{Body, RequestContext, Work},
};

/// How far serving a request has come.
pub(super) enum Served {
    Now(Body),
    Later(Work),
}

/// All there is to know for serving a request.
pub(super) struct Call<'a> {
    pub(super) peer: &'a ServerPeer,
    pub(super) features: &'a Features,
    pub(super) cx: RequestContext,
    pub(super) params: &'a RequestParams<'a>,
}

type Handler = fn(Call<'_>) -> Result<Served>;

/// The methods that this server serves. Which revisions have them is written in [`method::REQUESTS_TO_SERVER`].
const METHODS: &[(&str, Handler)] = &[
    (method::CallTool::NAME, call_by_name::<RegisteredTool>),
    (method::ListTools::NAME, list::<RegisteredTool>),
    (method::ReadResource::NAME, read_resource),
    (method::ListResources::NAME, list::<RegisteredResource>),
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
];

/// Serves one request, whose sender is known.
pub(super) fn serve(
    peer: &ServerPeer,
    features: &Features,
    cx: RequestContext,
    name: &str,
    params: &RequestParams<'_>,
) -> Result<Served> {
    let handler = METHODS.iter().find(|(method, _)| *method == name);
    match handler {
        Some((_, handler)) if method::is_in(method::REQUESTS_TO_SERVER, name, cx.revision()) => {
            handler(Call {
                peer,
                features,
                cx,
                params,
            })
        }
        _ => extension(features, cx, name, params.whole),
    }
}

/// Serves a method of an extension.
fn extension(
    features: &Features,
    cx: RequestContext,
    name: &str,
    params: Text<'_>,
) -> Result<Served> {
    let method = features.extensions.method(&cx, name)?;
    Ok(Served::Later(Work {
        future: method.begin(cx, params)?,
        pace: Some(Arc::clone(method.pace())),
        begun: None,
    }))
}

impl Call<'_> {
    /// The params as a type.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.params.whole.parse().map_err(|error| {
            Error::invalid_params(format!("the params of {name} do not fit: {error}"))
        })
    }

    /// Answers with a result that is there already.
    pub(super) fn answer<R: Serialize + Project + HasMeta>(&self, mut result: R) -> Result<Served> {
        let mut out = Vec::new();
        let stamp = Some(&*self.features.stamp);
        encode_result(&mut out, &mut result, self.cx.revision(), stamp)?;
        into_text(out).map(|json| Served::Now(Body::Json(json)))
    }
}

/// Opens a legacy session.
/// See [lifecycle](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle).
fn initialize(call: Call<'_>) -> Result<Served> {
    let (opening, result) = call.features.opening(call.params.whole)?;
    call.peer.callers().open(opening)?;
    Ok(Served::Now(Body::Shared(result)))
}

/// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
fn ping(call: Call<'_>) -> Result<Served> {
    call.answer(EmptyResult::default())
}

/// See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
fn discover(call: Call<'_>) -> Result<Served> {
    let result = call.features.discovered(call.cx.revision())?;
    Ok(Served::Now(Body::Shared(result)))
}

/// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
fn listen(call: Call<'_>) -> Result<Served> {
    let params: ListenParams = call.read(method::Listen::NAME)?;
    let features = call.features;
    let mut wanted = params.notifications;
    let others = mem::take(&mut wanted.other);
    wanted = wanted.narrowed(&features.capabilities());
    wanted.other = features.extensions.granted(&call.cx, others)?;
    let asked = Box::new(listen::Asked {
        wanted,
        subscribing: features.subscribing.clone(),
    });
    Ok(Served::Later(Work {
        future: Box::pin(listen::serve(call.cx, asked)),
        // Its first poll only registers and acknowledges; it must be done before what the client sends next.
        pace: None,
        begun: None,
    }))
}

/// Lists features of one kind.
fn list<T: Feature>(call: Call<'_>) -> Result<Served> {
    let name = <T::Page as ListPage<T::Definition>>::Method::NAME;
    if !T::registry(call.features).is_declared() {
        return Err(Error::method_not_found(name));
    }
    let params: PaginatedParams = call.read(name)?;
    page::<T>(call.features, &call.cx, params.cursor.as_ref()).map(Served::Now)
}

/// Says that there is no feature of that name. The names of a few that there are help more than the bare fact.
pub(super) fn unknown<T: Feature>(
    what: &str,
    registry: &Registry<T>,
    cx: &RequestContext,
    name: &str,
) -> String {
    /// More names than that would be noise.
    const SHOWN: usize = 20;
    let mut known = registry.visible(cx).map(|feature| feature.id());
    let names: Vec<_> = known.by_ref().take(SHOWN).collect();
    let shown: String = name.chars().take(128).collect();
    if names.is_empty() {
        return format!("Unknown {what}: {shown} (there are none)");
    }
    let more = if known.next().is_some() { ", …" } else { "" };
    format!(
        "Unknown {what}: {shown} (there are: {}{more})",
        names.join(", ")
    )
}

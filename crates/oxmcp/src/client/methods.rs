//! The methods that a client serves, one row for each, and the checks of the declared capabilities.

#![expect(
    clippy::needless_pass_by_value,
    reason = "all rows of the table have one signature"
)]

use std::future::ready;

use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, CreateMessageParams, ElicitParams, EmptyResult, ListRootsResult, Method,
    Payload, Revision,
    internal::into_text,
    method::{self, CreateMessage, Elicit, ListRoots, Ping},
};

use crate::{
    client::{features::Features, handlers::elicitation::fill_form},
    error::{Error, Result},
    session::{
        connection::RequestContext,
        inbound::body::Body,
        middleware::{Request, request::Handle},
        task::BoxFuture,
    },
};

/// The future of a response body.
type BodyFuture = BoxFuture<Result<Body>>;

/// A request of a server, sent as a separate message or within the result of a call.
struct ServerRequest<'a> {
    features: &'a Features,
    cx: RequestContext,
    params: Text<'a>,
}

type Serve = fn(ServerRequest<'_>) -> Result<BodyFuture>;

/// The methods of the specification. The revisions of each method are listed in [`method::REQUESTS_TO_CLIENT`] and
/// [`method::INPUT_REQUESTS`].
const METHODS: &[(&str, Serve)] = &[
    (Ping::NAME, ping),
    (Elicit::NAME, elicit),
    (CreateMessage::NAME, create_message),
    (ListRoots::NAME, list_roots),
];

/// Whether a method is served by a handler of the user or of an extension, and not by the client itself.
pub(crate) fn has_handler(name: &str) -> bool {
    !matches!(name, Ping::NAME | ListRoots::NAME)
}

/// Begins to serve a request, through the incoming middleware if there is any, which ends in `handle`.
pub(crate) fn begin(
    features: &Features,
    (cx, handle): (RequestContext, Handle),
    name: &str,
    params: Text<'_>,
) -> Result<BodyFuture> {
    let Some(next) = features.incoming.next().cloned() else {
        return serve(features, cx, name, params);
    };
    let request = Request::incoming(cx, handle, name, Some(params));
    Ok(Box::pin(async move {
        let response = next.run(request).await?;
        Ok(Body::Json(response.into_text()))
    }))
}

/// Begins to serve a request, by the row of its method or by an extension.
pub(crate) fn serve(
    features: &Features,
    cx: RequestContext,
    name: &str,
    params: Text<'_>,
) -> Result<BodyFuture> {
    let Some((_, serve)) = METHODS.iter().find(|(method, _)| *method == name) else {
        let method = features.extensions.method(&cx, name)?;
        return method.begin(cx, params);
    };
    check(cx.client_capabilities(), cx.revision(), name, params)?;
    serve(ServerRequest {
        features,
        cx,
        params,
    })
}

/// Checks that a server may make this request, by the capabilities that the client has declared.
///
/// # Errors
/// If the revision does not have the method, or the client did not declare the capability, which the error names.
pub(crate) fn check(
    declared: &ClientCapabilities,
    revision: Revision,
    name: &str,
    params: Text<'_>,
) -> Result<()> {
    let tables = [method::REQUESTS_TO_CLIENT, method::INPUT_REQUESTS];
    if !tables
        .iter()
        .any(|table| method::is_in(table, name, revision))
    {
        return Err(Error::method_not_found(name));
    }
    let lacks = |capability: &str| {
        let text = format!("{name}: this client did not declare the capability {capability}");
        Err(Error::protocol(
            oxmcp_protocol::ErrorCode::METHOD_NOT_FOUND,
            text,
        ))
    };
    let lacks_part = |part: &str| {
        let text = format!("{name}: this client did not declare the capability {part}");
        Err(Error::invalid_params(text))
    };
    let member = |key: &str| params.members().find(|(name, _)| name.is_str(key));
    match name {
        Elicit::NAME => match (&declared.elicitation, member("mode")) {
            (None, _) => lacks("elicitation"),
            (Some(it), Some((_, mode))) if mode.is_str("url") && !it.has_url() => {
                lacks_part("elicitation.url")
            }
            (Some(_), Some((_, mode))) if mode.is_str("url") => Ok(()),
            (Some(it), _) if !it.has_form() => lacks_part("elicitation.form"),
            _ => Ok(()),
        },
        CreateMessage::NAME => match &declared.sampling {
            None => lacks("sampling"),
            Some(it) if it.tools.is_none() && member("tools").is_some() => {
                lacks_part("sampling.tools")
            }
            Some(_) => Ok(()),
        },
        ListRoots::NAME if declared.roots.is_none() => lacks("roots"),
        _ => Ok(()),
    }
}

impl ServerRequest<'_> {
    fn read<M: Method>(&self) -> Result<M::Params> {
        let connection = &self.cx.parts().connection;
        connection
            .read(M::NAME, self.params.get())
            .map_err(|error| {
                Error::invalid_params(format!("invalid params of {}: {error}", M::NAME))
            })
    }
}

/// Writes the response in the form of the server's revision. Modern servers receive it within params, so nothing is added
/// to it.
fn write<R: Payload>(mut answer: R, revision: Revision) -> Result<Body> {
    answer.fit(revision);
    let mut json = Vec::new();
    answer.append_json(&mut json).map_err(|error| {
        Error::internal(format!("could not serialize the response: {error}")).with_source(error)
    })?;
    Ok(Body::Json(into_text(json)?))
}

/// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
fn ping(request: ServerRequest<'_>) -> Result<BodyFuture> {
    let answer = write(EmptyResult::default(), request.cx.revision());
    Ok(Box::pin(ready(answer)))
}

/// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#listing-roots).
fn list_roots(request: ServerRequest<'_>) -> Result<BodyFuture> {
    let roots = request.features.roots.clone().unwrap_or_default();
    let answer = write(ListRootsResult::new(roots), request.cx.revision());
    Ok(Box::pin(ready(answer)))
}

/// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
fn elicit(request: ServerRequest<'_>) -> Result<BodyFuture> {
    let params: ElicitParams = request.read::<Elicit>()?;
    let revision = request.cx.revision();
    let features = request.features;
    let cx = request.cx;
    let future: BodyFuture = match (params, &features.on_elicit, &features.on_elicit_url) {
        (ElicitParams::Form(form), Some(handler), _) => {
            let answer = fill_form(handler.clone(), form, cx);
            Box::pin(async move { write(answer.await?, revision) })
        }
        (ElicitParams::Url(url), _, Some(handler)) => {
            url.check_url().map_err(|wrong| {
                Error::invalid_params(format!("elicitation/create: rejected URL: {wrong}"))
            })?;
            if let (Some(session), Some(id)) = (cx.client_session(), &url.elicitation_id) {
                session.state().url_elicitations.insert(id);
            }
            let answer = handler(url, cx);
            Box::pin(async move {
                let mut answer = answer.await?;
                // URL mode has no content.
                answer.content = None;
                write(answer, revision)
            })
        }
        _ => {
            return Err(Error::invalid_params(
                "elicitation/create: unsupported `mode`; expected \"form\" or \"url\", as far as this client declared them",
            ));
        }
    };
    Ok(future)
}

/// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
fn create_message(request: ServerRequest<'_>) -> Result<BodyFuture> {
    let params: CreateMessageParams = request.read::<CreateMessage>()?;
    params.check_tool_results().map_err(Error::invalid_params)?;
    let revision = request.cx.revision();
    let handler = request.features.on_sample.clone();
    let handler = handler.ok_or_else(|| Error::method_not_found(CreateMessage::NAME))?;
    let answer = handler(params, request.cx);
    Ok(Box::pin(async move { write(answer.await?, revision) }))
}

//! What a client does for each method: one row a method.

#![expect(
    clippy::needless_pass_by_value,
    reason = "all rows of the table have one signature"
)]

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    client::{
        features::Features,
        handlers::elicitation::{fill_form, visit_url},
    },
    codec::uri::check_page,
    error::{Error, Result},
    json::Text,
    protocol::{
        ClientCapabilities, CreateMessageParams, ElicitParams, EmptyResult, ListRootsResult,
        Method, Project, Revision, check_tool_results,
        method::{self, CreateMessage, Elicit, ListRoots, Ping},
    },
    session::{Body, BoxFuture, RequestContext},
};

/// How far serving a request has come.
pub(crate) enum Served {
    Now(Body),
    /// A user's handler is to run, and takes its time.
    Later(BoxFuture<Result<Body>>),
}

impl Served {
    /// Serves it to the end.
    pub(crate) async fn body(self) -> Result<Body> {
        match self {
            Self::Now(body) => Ok(body),
            Self::Later(future) => future.await,
        }
    }
}

/// All there is to know for answering.
struct Asked<'a> {
    features: &'a Features,
    cx: RequestContext,
    params: Text<'a>,
}

type Handler = fn(Asked<'_>) -> Result<Served>;

/// What this client answers. Which revisions have it is written in [`method::REQUESTS_TO_CLIENT`] and
/// [`method::INPUT_REQUESTS`].
const METHODS: &[(&str, Handler)] = &[
    (Ping::NAME, ping),
    (Elicit::NAME, elicit),
    (CreateMessage::NAME, create_message),
    (ListRoots::NAME, list_roots),
];

/// Answers what a server asks: by a request, or within the result of one.
pub(crate) fn serve(
    features: &Features,
    cx: RequestContext,
    name: &str,
    params: Text<'_>,
) -> Result<Served> {
    let Some((_, handler)) = METHODS.iter().find(|(method, _)| *method == name) else {
        let method = features.extensions.method(&cx, name)?;
        return method.begin(cx, params).map(Served::Later);
    };
    check(cx.client_capabilities(), cx.revision(), name, params)?;
    handler(Asked {
        features,
        cx,
        params,
    })
}

/// Whether a server may ask this, by what it was told that the client can do.
///
/// # Errors
/// Says what the client did not declare.
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
        Err(Error::protocol(crate::ErrorCode::METHOD_NOT_FOUND, text))
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

impl Asked<'_> {
    fn read<M: Method>(&self) -> Result<M::Params> {
        read(M::NAME, self.params)
    }
}

fn read<T: DeserializeOwned>(name: &str, params: Text<'_>) -> Result<T> {
    params
        .parse()
        .map_err(|error| Error::invalid_params(format!("the params of {name} do not fit: {error}")))
}

/// The answer as the server's revision has it. Modern servers get it within params, so nothing is added to it.
fn write<R: Project + Serialize>(mut answer: R, revision: Revision) -> Result<Body> {
    answer.project(revision);
    let json = serde_json::to_string(&answer).map_err(|error| {
        Error::internal(format!("the answer cannot be JSON: {error}")).with_source(error)
    })?;
    Ok(Body::Json(json.into()))
}

/// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
fn ping(asked: Asked<'_>) -> Result<Served> {
    write(EmptyResult::default(), asked.cx.revision()).map(Served::Now)
}

/// See [roots](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#listing-roots).
fn list_roots(asked: Asked<'_>) -> Result<Served> {
    let roots = asked.features.roots.clone().unwrap_or_default();
    write(ListRootsResult::new(roots), asked.cx.revision()).map(Served::Now)
}

/// See [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation).
fn elicit(asked: Asked<'_>) -> Result<Served> {
    let params: ElicitParams = asked.read::<Elicit>()?;
    let revision = asked.cx.revision();
    let features = asked.features;
    let cx = asked.cx;
    let future: BoxFuture<Result<Body>> = match (
        params,
        &features.on_elicit,
        &features.on_elicit_url,
    ) {
        (ElicitParams::Form(form), Some(handler), _) => {
            let answer = fill_form(handler.clone(), form, cx);
            Box::pin(async move { write(answer.await?, revision) })
        }
        (ElicitParams::Url(url), _, Some(handler)) => {
            check_page(&url.url).map_err(|wrong| {
                Error::invalid_params(format!(
                    "elicitation/create: the user is not sent to this URL: {wrong}"
                ))
            })?;
            if let (Some(session), Some(id)) = (cx.client_session(), &url.elicitation_id) {
                session.peer().visits().begin(id);
            }
            let answer = visit_url(handler.clone(), url, cx);
            Box::pin(async move { write(answer.await?, revision) })
        }
        _ => {
            return Err(Error::invalid_params(
                "elicitation/create: this client knows the modes \"form\" and \"url\", as far as it declared them",
            ));
        }
    };
    Ok(Served::Later(future))
}

/// See [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling).
fn create_message(asked: Asked<'_>) -> Result<Served> {
    let params: CreateMessageParams = asked.read::<CreateMessage>()?;
    check_tool_results(&params.messages).map_err(Error::invalid_params)?;
    let revision = asked.cx.revision();
    let handler = asked.features.on_sample.clone();
    let handler = handler.ok_or_else(|| Error::method_not_found(CreateMessage::NAME))?;
    let answer = handler(params, asked.cx);
    Ok(Served::Later(Box::pin(async move {
        write(answer.await?, revision)
    })))
}

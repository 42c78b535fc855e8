//! Routes a request: to a stateless answer, to its session, or to the 2024-11-05 transport.

use std::{
    convert::Infallible,
    error::Error as StdError,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use http::{
    HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, request::Parts,
};
use http_body::Body;
use oxmcp_json::Text;
use oxmcp_protocol::{
    Method, Revision,
    framing::after_byte_order_mark,
    internal::{Envelope, Era, Params, RequestParams},
    lenient::{Leniency, Tolerated},
    method::Initialize,
};
use tower_service::Service;

use crate::{
    http::{
        names::{PROTOCOL_VERSION, SESSION_ID},
        server::{
            cluster,
            endpoint::{EndpointRequest, StreamableHttp},
            response::{self, Refused, ResponseBody},
            response_finisher::ResponseFinisher,
            sessions::{self, Posted, Session},
            sse_2024::names_session,
            stateless,
            validation::{self, Accepted},
        },
    },
    server::Features,
    session::{connection::Connection, tolerance::Tolerance},
    transport::{principal::Principal, traits::Frame},
};
#[cfg(feature = "auth")]
use crate::{
    http::{protection::Protection, server::caller::caller},
    server::ServerRole,
};

impl<B> Service<Request<B>> for StreamableHttp
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Some(check) = self.health_check(request.uri().path()) {
            return Box::pin(check.respond().map(Ok));
        }
        let (parts, body) = request.into_parts();
        let settings = &self.settings;
        let finish = match ResponseFinisher::of(
            &parts,
            &settings.policy,
            &settings.limits,
            &self.state.budget,
        ) {
            Ok(finish) => finish,
            Err(preflight) => return Box::pin(ready(Ok(*preflight))),
        };
        let state = Arc::clone(&self.state);
        let finished = move |answer| finish.response(answer, state.closing.is_set());
        #[cfg(feature = "auth")]
        if let Some(protection) = &settings.protection {
            let answer = protected(self.clone(), protection.clone(), parts, body);
            return Box::pin(answer.map(finished));
        }
        if self.has_sse() && is_2024(&parts) {
            return Box::pin(self.sse().respond(parts, body).map(finished));
        }
        // An async block would store the arguments twice.
        Box::pin(respond(self.clone(), Arc::new(parts), body).map(finished))
    }
}

/// Answers a request that needs a token.
///
/// # Errors
/// The response that refuses the request.
#[cfg(feature = "auth")]
async fn protected<B>(
    endpoint: StreamableHttp,
    protection: Protection,
    mut parts: Parts,
    body: B,
) -> Result<Response<ResponseBody>, Refused>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
{
    let policy = &endpoint.settings.policy;
    if let Err(refused) = validation::admit(&protection, policy, &mut parts).await {
        validation::discard_body(&parts, body);
        return Err(refused);
    }
    if endpoint.has_sse() && is_2024(&parts) {
        return Box::pin(endpoint.sse().respond(parts, body)).await;
    }
    // A modern subscription gets its deadline when its message is parsed.
    let listens = parts.method == HttpMethod::GET;
    let deadline = listens
        .then(|| protection.stream_deadline(&parts))
        .flatten();
    let response = respond(endpoint, Arc::new(parts), body).await?;
    Ok(response.map(|body| body.until(deadline.as_ref())))
}

/// Answers a request.
///
/// # Errors
/// The response that refuses the request.
async fn respond<B>(
    endpoint: StreamableHttp,
    parts: Arc<Parts>,
    body: B,
) -> Result<Response<ResponseBody>, Refused>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
{
    // Closing waits for this token.
    let _open = endpoint.state.open.token();
    let request = match begin(endpoint, &parts).await {
        Ok(request) => request,
        Err(refused) => {
            validation::discard_body(&parts, body);
            return Err(refused);
        }
    };
    match request.parts.method {
        HttpMethod::GET => Box::pin(sessions::get(request)).await,
        HttpMethod::DELETE => Box::pin(sessions::delete(request)).await,
        _ => {
            let limit = request.endpoint.settings.limits.http.max_body_bytes;
            let budget = &request.endpoint.state.budget;
            let (body, charge) = validation::read_body(body, limit, budget).await?;
            let tolerance = &request.server.features().tolerance;
            let unmarked = after_byte_order_mark(&body)
                .filter(|_| tolerates(tolerance, Leniency::ByteOrderMark));
            let accepts_json = request.accepted.json;
            let answer = post(request, unmarked.unwrap_or(&body))?;
            drop((body, charge));
            let answer = answer.await;
            Ok(match accepts_json {
                true => answer,
                false => response::as_event(answer),
            })
        }
    }
}

/// Validates the head of a request, and finds its session and server.
///
/// # Errors
/// The response that refuses the request.
async fn begin(endpoint: StreamableHttp, parts: &Arc<Parts>) -> Result<EndpointRequest, Refused> {
    let accepted = validate_head(&endpoint, parts)?;
    let mut session = find(&endpoint, parts);
    let shared = session.as_ref().and_then(|it| it.shared()).map(Arc::clone);
    if let Some(kept) = shared.and_then(|it| it.keep(parts)) {
        // Another node may have ended the session.
        let _ = kept.await;
        session = find(&endpoint, parts);
    }
    // Boxed, because few requests need this future.
    if session.is_none() && endpoint.settings.sessions.is_some() {
        session = Box::pin(cluster::restore(&endpoint, parts)).await?;
    }
    let server = match &session {
        Some(session) => session.peer().server().clone(),
        None => endpoint.choose(parts)?,
    };
    if let Err(refusal) = validation::check_accept(parts, accepted)
        && !tolerates(&server.features().tolerance, Leniency::AcceptHeader)
    {
        return Err(refusal.into());
    }
    Ok(EndpointRequest {
        server,
        endpoint,
        names_session: session.is_some() || parts.headers.contains_key(SESSION_ID),
        session,
        parts: Arc::clone(parts),
        accepted,
    })
}

/// Validates the head of a request, and returns the types of responses that its client accepts. If the endpoint is protected, access
/// has been checked already.
///
/// # Errors
/// The response that refuses the request.
fn validate_head(endpoint: &StreamableHttp, parts: &Parts) -> Result<Accepted, Refused> {
    if !endpoint.is_protected() {
        let policy = &endpoint.settings.policy;
        policy
            .check()
            .map_err(|error| response::misconfigured(&error))?;
        validation::check_target(policy, parts)?;
    }
    let limit = endpoint.settings.limits.http.max_body_bytes;
    Ok(validation::check_head(limit, parts)?)
}

/// Starts to serve a posted body. Returns the response.
///
/// # Errors
/// The response that refuses the request.
fn post(
    request: EndpointRequest,
    body: &[u8],
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    if body.trim_ascii_start().first() == Some(&b'[') {
        return batch(request, body);
    }
    let mut params = RequestParams::UNREAD;
    match Envelope::parse(body, &mut params) {
        Ok(message) => post_message(request, message, body),
        Err(malformed) => {
            let tolerance = Arc::clone(&request.server.features().tolerance);
            let mended = tolerance.mend(|| None, body);
            let mut params = RequestParams::UNREAD;
            if let Some(body) = &mended
                && let Ok(message) = Envelope::parse(body, &mut params)
            {
                return post_message(request, message, body);
            }
            let refusal = validation::Refusal::malformed(&malformed);
            Err(refusal.response(malformed.id.as_ref()))
        }
    }
}

/// Starts to serve a posted message. Returns the response.
///
/// # Errors
/// The response that refuses the request.
fn post_message(
    mut request: EndpointRequest,
    message: Envelope<'_, RequestParams<'_>>,
    body: &[u8],
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    let (id, method, params) = match &message {
        Envelope::Request(it) => (Some(it.id.clone()), &*it.method, it.params),
        Envelope::Notification(it) => (None, &*it.method, it.params),
        Envelope::Response(_) => (None, "", None),
    };
    let unchecked = validation::Message::new(&request.parts.headers, &message);
    // A modern client has no session, even if it names one. The checks below need the server that serves the message.
    if request.session.is_some() && unchecked.is_modern() {
        request.session = None;
        request.server = request.endpoint.choose(&request.parts)?;
    }
    let features = request.server.features().clone();
    let validated = validation::check_message(&features, unchecked)
        .map_err(|refusal| refusal.response(id.as_ref()))?;
    #[cfg(feature = "auth")]
    {
        let is_modern = matches!(validated.era, Era::Modern(_));
        let connection = || similar_connection(&request, is_modern);
        serving(&request, &features, &connection, is_modern).check_scopes(&message)?;
    }
    if let Era::Modern(_) = validated.era {
        return stateless::begin(request, message, validated.mismatch);
    }
    if request.endpoint.settings.stateless {
        let opens = id.is_some() && method == Initialize::NAME;
        let revision = (!opens).then(|| legacy_revision(&features, &request.parts.headers));
        let take = |connection: &Arc<Connection>| connection.take_envelope(message);
        return stateless::begin_legacy(request, revision.flatten(), id.is_some(), take);
    }
    // An `initialize` without an ID is a notification, which would never be answered. Some clients name an ended session in
    // `initialize`: they can only want a new one.
    if request.session.is_none()
        && id.is_some()
        && method == Initialize::NAME
        && (!request.names_session || tolerates(&features.tolerance, Leniency::StaleSession))
    {
        let initialize = params.map_or(Text::EMPTY, |it| it.raw);
        features
            .check_initialize(initialize)
            .map_err(|why| response::refuse(StatusCode::BAD_REQUEST, id.as_ref(), &why))?;
        let initialize = initialize.get();
        return sessions::open(request, initialize, |connection| {
            connection.take_envelope(message);
        });
    }
    let shared = request.session.as_ref().and_then(|it| it.shared());
    if let Some(relayed) = shared.and_then(|it| it.relay(&message, body)) {
        return Ok(relayed);
    }
    let posted = Posted {
        id: id.as_ref(),
        batch: None,
        is_answered: id.is_some(),
        changes_session: cluster::changes(method),
    };
    sessions::post(request, posted, |connection| {
        connection.take_envelope(message);
    })
}

/// Whether a deviation is tolerated while the peer is still unknown.
fn tolerates(tolerance: &Tolerance, leniency: Leniency) -> bool {
    tolerance.tolerate(None, "", Tolerated::new(leniency, ""))
}

/// Starts to serve a batch. A batch belongs to a session, which knows whether its revision has batches.
///
/// # Errors
/// The response that refuses the request.
fn batch(
    request: EndpointRequest,
    body: &[u8],
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    validation::check_batch(&request.parts.headers, body)?;
    #[cfg(feature = "auth")]
    {
        let features = request.server.features().clone();
        let connection = || similar_connection(&request, false);
        serving(&request, &features, &connection, false).check_scopes_of_body(body)?;
    }
    if request.endpoint.settings.stateless {
        let features = request.server.features().clone();
        let revision = legacy_revision(&features, &request.parts.headers);
        let take = |connection: &Arc<Connection>| connection.take(Frame::Message(body));
        return stateless::begin_legacy(request, revision, true, take);
    }
    let shared = request.session.as_ref().and_then(|it| it.shared());
    let relayed = shared.and_then(|it| it.relay_batch(body));
    let posted = Posted {
        id: None,
        batch: Some(body),
        is_answered: true,
        changes_session: true,
    };
    let answer = sessions::post(request, posted, |connection| {
        connection.take(Frame::Message(body));
    })?;
    Ok(match relayed {
        Some(relayed) => Box::pin(async move {
            relayed.await;
            answer.await
        }),
        None => answer,
    })
}

/// The context for checking the token of a request.
#[cfg(feature = "auth")]
fn serving<'a>(
    request: &'a EndpointRequest,
    features: &'a Features,
    connection: &'a dyn Fn() -> Option<Arc<Connection>>,
    is_modern: bool,
) -> validation::ScopeCheck<'a> {
    validation::ScopeCheck {
        protection: request.endpoint.settings.protection.as_ref(),
        features,
        caller: request.parts.extensions.get(),
        connection,
        is_modern,
        parts: &request.parts,
    }
}

/// A connection like the one that will receive the message, to decide what the caller may see. `None` if no session will receive
/// it.
#[cfg(feature = "auth")]
fn similar_connection(request: &EndpointRequest, is_modern: bool) -> Option<Arc<Connection>> {
    let caller = caller(Arc::clone(&request.parts));
    let server = request.server.clone();
    let role = if is_modern {
        ServerRole::stateless(server, None)
    } else if request.endpoint.settings.stateless {
        let features = server.features().clone();
        let revision = legacy_revision(&features, &request.parts.headers);
        ServerRole::sessionless(server, revision)
    } else {
        return Some(request.session.as_ref()?.branch(caller));
    };
    let limits = Arc::clone(&role.server().features().limits);
    Some(Connection::of(role, limits, caller))
}

/// The revision of a legacy request without a session: the one that its header names, else the last revision without this header,
/// else the newest legacy revision that is served. `None` if no legacy revision is served.
///
/// See [the header](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#protocol-version-header).
fn legacy_revision(features: &Features, headers: &HeaderMap) -> Option<Revision> {
    let named = validation::single(headers, &PROTOCOL_VERSION).and_then(|name| name.parse().ok());
    let served = features.revisions.iter().copied();
    let mut legacy = served.filter(|it| !it.is_modern());
    // The last revision without the header is the only one with batches.
    let is_named = |it: &Revision| Some(*it) == named;
    let unnamed = || legacy.clone().find(|it| it.has_batches());
    let found = legacy.clone().find(is_named).or_else(unnamed);
    found.or_else(|| legacy.next())
}

/// The session that a request names, if it belongs to its principal.
fn find(endpoint: &StreamableHttp, parts: &Parts) -> Option<Arc<Session>> {
    let id = validation::single(&parts.headers, &SESSION_ID)?;
    let principal = parts.extensions.get().map(Principal::as_str);
    endpoint.state.sessions.find(id, principal)
}

/// Whether a request uses the 2024-11-05 transport. A GET opens a session if it does not name one and explicitly accepts events; a
/// POST names its session in its URI.
fn is_2024(parts: &Parts) -> bool {
    let headers = &parts.headers;
    match parts.method {
        HttpMethod::GET => {
            let version = headers.get(PROTOCOL_VERSION);
            let is_legacy = |version: &HeaderValue| {
                let revision = version.to_str().unwrap_or_default().parse();
                revision.is_ok_and(|revision: Revision| !revision.is_modern())
            };
            !headers.contains_key(SESSION_ID)
                && version.is_none_or(is_legacy)
                && validation::asks_for_events(headers)
        }
        HttpMethod::POST => names_session(parts.uri.query()),
        _ => false,
    }
}

//! What comes to an endpoint, up to who answers it.

use std::{
    convert::Infallible,
    error::Error as StdError,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version,
    request::Parts,
};
use http_body::Body;

use crate::{
    Error, Revision, Server,
    http::{
        names::{PROTOCOL_VERSION, SESSION_ID},
        server::{
            Principal, ResponseBody, StreamableHttp,
            answer::{self, Answer},
            body,
            detached::Detached,
            get, ladder, post,
            restore::restore,
            session::Session,
            sse_2024::is_message,
        },
    },
    session::{Origin, guarded},
};

impl StreamableHttp {
    /// The server for a request that is not of a session.
    pub(super) fn choose(&self, parts: &Parts) -> Result<Server, Box<Response<ResponseBody>>> {
        let refuse = |status, why: &Error| Err(Box::new(answer::refuse(status, None, why)));
        // Other requests may come over the same connection, which must not panic.
        let chosen = guarded(|| Ok((self.settings.choose)(parts)));
        let Some(server) = chosen.map_err(|error| Box::new(failed(&error)))? else {
            let why = Error::invalid_request("nothing is served here for this request");
            return refuse(StatusCode::BAD_REQUEST, &why);
        };
        if let Err(error) = server.check() {
            return Err(Box::new(failed(&error)));
        }
        Ok(server)
    }

    /// The server for a request: that of its session, where it has one.
    fn server(
        &self,
        parts: &Parts,
        session: Option<&Arc<Session>>,
    ) -> Result<Server, Box<Response<ResponseBody>>> {
        match session {
            Some(session) => Ok(session.peer().server().clone()),
            None => self.choose(parts),
        }
    }

    /// Answers a request. What its head says is looked at now: so nothing has to be kept of it, and moved about, but what the
    /// answer needs. What only few requests need is in boxes of its own.
    pub(super) fn respond<B>(&self, request: Request<B>) -> Responding
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        if is_2024(&request) {
            let responding = self.sse().respond(request);
            return Box::pin(
                async move { Ok(responding.await.unwrap_or_else(|refused| *refused)) },
            );
        }
        let (parts, body) = request.into_parts();
        let parts = Arc::new(parts);
        if let Some(refused) = self.refuse(&parts) {
            return Box::pin(ready(Ok(refused)));
        }
        let session = find(self, &parts);
        if session.is_none() && self.settings.sessions.is_some() {
            let endpoint = self.clone();
            return Box::pin(async move {
                let asked = match restore(&endpoint, &parts).await {
                    Ok(session) => endpoint.asked(parts, session),
                    Err(response) => Err(response),
                };
                match asked {
                    Ok(asked) => answered(asked, body).await,
                    Err(response) => Ok(*response),
                }
            });
        }
        match self.asked(parts, session) {
            Ok(asked) => Box::pin(answered(asked, body)),
            Err(response) => Box::pin(ready(Ok(*response))),
        }
    }

    /// How a request is refused before its session is looked for, if it is.
    fn refuse(&self, parts: &Parts) -> Option<Response<ResponseBody>> {
        let policy = &self.settings.policy;
        if let Err(error) = policy.check() {
            return Some(failed(&error));
        }
        if let Err(refusal) = ladder::head(policy, self.settings.limits.max_http_body_bytes, parts)
        {
            return Some(refusal.response(None));
        }
        self.state.closing.is_set().then(answer::closing)
    }

    fn asked(
        &self,
        parts: Arc<Parts>,
        session: Option<Arc<Session>>,
    ) -> Result<Asked, Box<Response<ResponseBody>>> {
        Ok(Asked {
            server: self.server(&parts, session.as_ref())?,
            endpoint: self.clone(),
            names_session: session.is_some() || parts.headers.contains_key(SESSION_ID),
            session,
            parts,
        })
    }
}

/// The response to a request.
pub(super) type Responding =
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

/// Answers a request whose head has been looked at.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn has its arguments in it twice"
)]
fn answered<B>(
    asked: Asked,
    body: B,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send,
{
    async move {
        let limit = asked.endpoint.settings.limits.max_http_body_bytes;
        Ok(match asked.parts.method {
            Method::GET => Box::pin(get::get(asked)).await,
            Method::DELETE => Box::pin(get::delete(asked)).await,
            _ => match body::read(body, limit).await {
                // A body may take long, and what is begun now would not be waited for.
                Ok(_) if asked.endpoint.state.closing.is_set() => answer::closing(),
                Ok(body) => {
                    let parts = Arc::clone(&asked.parts);
                    match post::take(asked, &body) {
                        Answer::Plain(plain) => plain.response_in(emptied(parts)),
                        Answer::Now(response) => response,
                        Answer::Later(response) => {
                            drop((parts, body));
                            response.await
                        }
                    }
                }
                Err(response) => *response,
            },
        })
    }
}

/// The room of the headers of a request that nobody needs any more.
fn emptied(parts: Arc<Parts>) -> HeaderMap {
    /// Hyper keeps it for as long as the connection lasts, and most requests need no more.
    const KEPT: usize = 12;

    match Arc::into_inner(parts) {
        Some(mut parts) if parts.headers.capacity() <= KEPT => {
            parts.headers.clear();
            parts.headers
        }
        _ => HeaderMap::new(),
    }
}

/// What went wrong on this side is told to its log.
fn failed(error: &Error) -> Response<ResponseBody> {
    tracing::error!(%error, "the server or its endpoint was put together wrongly");
    let why = Error::internal("the server was put together wrongly; its log says how");
    answer::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
}

/// A request whose head has been looked at.
pub(super) struct Asked {
    pub(super) endpoint: StreamableHttp,
    pub(super) server: Server,
    /// The session that it names, if it belongs to whom the request comes from.
    pub(super) session: Option<Arc<Session>>,
    /// Whether it names a session, be there one or not.
    pub(super) names_session: bool,
    pub(super) parts: Arc<Parts>,
}

impl Asked {
    /// Whether there are sessions for whom it says that it is.
    pub(super) fn has_sessions(&self) -> Result<(), ladder::Refusal> {
        ladder::session(&self.server.features(), &self.parts.headers)
    }
}

/// The session that a request names, if it belongs to whom it comes from.
fn find(endpoint: &StreamableHttp, parts: &Parts) -> Option<Arc<Session>> {
    let id = only(parts, &SESSION_ID)?;
    let principal = parts.extensions.get().map(Principal::as_str);
    endpoint.state.sessions.find(id, principal)
}

/// The text of a header that stands there once. Who names two things names none: what is in front of the endpoint may have
/// gone by the other.
pub(super) fn only<'p>(parts: &'p Parts, name: &HeaderName) -> Option<&'p str> {
    let mut values = parts.headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value?.to_str().ok()
}

/// Whether a request is of the transport of 2024-11-05: a GET that names no session opens one, and a POST names it in its URI.
fn is_2024<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    match *request.method() {
        Method::GET => {
            let version = headers.get(PROTOCOL_VERSION);
            let is_legacy = |version: &HeaderValue| {
                let revision = version.to_str().unwrap_or_default().parse();
                revision.is_ok_and(|revision: Revision| !revision.is_modern())
            };
            !headers.contains_key(SESSION_ID)
                && version.is_none_or(is_legacy)
                && ladder::accepts(headers, "text", "event-stream")
        }
        Method::POST => is_message(request.uri().query()),
        _ => false,
    }
}

/// What a transport knows of who sends a request.
pub(super) fn origin(parts: Arc<Parts>) -> Origin {
    let principal = parts.extensions.get().map(Principal::shared);
    Origin {
        principal,
        is_alone: parts.version < Version::HTTP_2,
        request: Some(parts),
    }
}

/// The same of a request that is kept for as long as what it begins lasts.
pub(super) fn lasting_origin(parts: &Parts) -> Origin {
    Origin {
        principal: parts.extensions.get().map(Principal::shared),
        is_alone: parts.version < Version::HTTP_2,
        request: Some(Arc::new(Detached::from(parts))),
    }
}

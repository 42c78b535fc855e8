//! What comes to an endpoint, up to who answers it.

use std::{convert::Infallible, error::Error as StdError, sync::Arc};

use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, request::Parts,
};
use http_body::Body;

use crate::{
    Error, Revision, Server,
    http::{
        names::{PROTOCOL_VERSION, SESSION_ID},
        server::{
            Principal, ResponseBody, StreamableHttp, answer, body, detached::Detached, get, ladder,
            post, restore::restore, session::Session, sse_2024::is_message,
        },
    },
    session::Origin,
};

impl StreamableHttp {
    /// The server for a request that is not of a session.
    pub(super) fn choose(&self, parts: &Parts) -> Result<Server, Box<Response<ResponseBody>>> {
        let refuse = |status, why: &Error| Err(Box::new(answer::refuse(status, None, why)));
        let Some(server) = (self.settings.choose)(parts) else {
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

    /// Answers a request. What only few requests need is boxed, so that the future of the others stays small: it is moved
    /// about for each of them.
    pub(super) async fn respond<B>(
        self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, Infallible>
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send,
    {
        if is_2024(&request) {
            let response = Box::pin(self.sse().respond(request)).await;
            return Ok(response.unwrap_or_else(|refused| *refused));
        }
        let (parts, body) = request.into_parts();
        let parts = Arc::new(parts);
        let limit = self.settings.limits.max_http_body_bytes;
        let policy = &self.settings.policy;
        if let Err(error) = policy.check() {
            return Ok(failed(&error));
        }
        if let Err(refusal) = ladder::head(policy, limit, &parts) {
            return Ok(refusal.response(None));
        }
        if self.state.closing.is_set() {
            return Ok(answer::closing());
        }
        let session = match find(&self, &parts) {
            Some(session) => Some(session),
            None if self.settings.sessions.is_none() => None,
            None => match Box::pin(restore(&self, &parts)).await {
                Ok(session) => session,
                Err(response) => return Ok(*response),
            },
        };
        let server = match self.server(&parts, session.as_ref()) {
            Ok(server) => server,
            Err(response) => return Ok(*response),
        };
        let asked = Asked {
            endpoint: self,
            server,
            session,
            parts,
        };
        Ok(match asked.parts.method {
            Method::GET => Box::pin(get::get(asked)).await,
            Method::DELETE => Box::pin(get::delete(asked)).await,
            _ => match body::read(body, limit).await {
                // A body may take long, and what is begun now would not be waited for.
                Ok(_) if asked.endpoint.state.closing.is_set() => answer::closing(),
                Ok(body) => post::post(asked, body).await,
                Err(response) => *response,
            },
        })
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
    pub(super) parts: Arc<Parts>,
}

impl Asked {
    /// Whether there are sessions for whom it says that it is.
    pub(super) fn has_sessions(&self) -> Result<(), ladder::Refusal> {
        ladder::session(&self.server.features(), &self.parts.headers)
    }

    /// Whether it names a session, be there one or not.
    pub(super) fn names_session(&self) -> bool {
        self.parts.headers.contains_key(SESSION_ID)
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

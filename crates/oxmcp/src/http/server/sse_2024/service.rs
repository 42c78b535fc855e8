//! The service of the 2024-11-05 transport, for any number of sessions.
//!
//! Of the checks in `validation`, it makes only those of `Host` and `Origin`: its GET and POST have their own rules.

use std::{
    convert::Infallible,
    error::Error as StdError,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::join_all;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Body;
#[cfg(feature = "auth")]
use oxmcp_auth::{Secret, server::Refusal};
use tokio::{join, net::ToSocketAddrs, time::timeout};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::{
    sessions::{OpenSession, Sessions},
    transport::{SseInbox, SseTransport},
};
#[cfg(feature = "auth")]
use crate::http::protection::{ProtectedResource, StreamDeadline};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    http::server::{
        caller::caller,
        response::{self, Refused, ResponseBody},
        response_finisher::ResponseFinisher,
        serve::{CLOSE_GRACE, ServerHandle, listen, serve},
        sessions::new_id,
        settings::Settings,
        validation,
    },
    limits::Limits,
    server::{Server, ServerSession},
    session::{connection::Caller, driver::budget::Budget, panics::catch_panic, task::spawn},
    transport::principal::Principal,
};

/// The query parameter that names the session.
const SESSION_ID: &str = "sessionId";

/// The two endpoints of the 2024-11-05 transport (HTTP with SSE), for clients that support only this transport.
///
/// A GET opens a session. Its response is an event stream that lasts as long as the session, and starts with the URI to post
/// messages to. A POST to that URI gets 202, and the response to its message goes into the stream. Clients of later revisions that
/// fall back to this transport are served in their revision, up to 2025-11-25: later revisions do not support it.
///
/// It is a [`tower_service::Service`] that you mount in axum, hyper or any other tower framework. Without a framework, call
/// [`serve`](Self::serve). Cloning is cheap, and all clones are the same service. It ignores paths: by default clients post to the
/// URI of the stream.
///
/// By default it accepts only requests whose `Host` is a loopback name, and rejects cross-origin requests: otherwise any web page
/// in a browser on this machine could call it. To keep out other machines, listen on a loopback address. Sessions belong to the
/// [`Principal`] that opened them.
///
/// ```
/// use oxmcp::{JsonSchema, Server, Tool, http::LegacySse};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pair { a: f64, b: f64 }
///
/// let server = Server::new("calculator", "1.0.0")
///     .tool(Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b }));
/// let sse = LegacySse::new(move |_request| server.clone()).messages("/messages");
/// let app = axum::Router::new()
///     .route_service("/sse", sse.clone())
///     .route_service("/messages", sse);
/// # let _: axum::Router = app;
/// ```
///
/// See [HTTP with SSE](https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse).
#[derive(Clone)]
pub struct LegacySse {
    settings: Arc<Settings>,
    /// The URI to which clients post messages. Empty if it is that of the stream.
    messages: Arc<str>,
    sessions: Arc<Sessions>,
    budget: Arc<Budget>,
}

impl LegacySse {
    /// Creates a service whose sessions are served by the [`Server`] that `choose` returns. If `choose` returns `None`, the
    /// response is 400. `choose` is called once for each session. Usually it returns a clone of one server. It can also select a
    /// server by the request, for example one per customer.
    pub fn new<S: Into<Option<Server>>>(
        choose: impl Fn(&Parts) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Arc::new(Settings::new(choose)),
            messages: Arc::default(),
            sessions: Arc::default(),
            budget: Budget::new(Limits::default().http.max_bytes),
        }
    }

    /// Creates the service as part of an endpoint that also has other transports.
    pub(crate) fn within(
        settings: &Arc<Settings>,
        sessions: &Arc<Sessions>,
        budget: &Arc<Budget>,
    ) -> Self {
        Self {
            settings: Arc::clone(settings),
            messages: Arc::default(),
            sessions: Arc::clone(sessions),
            budget: Arc::clone(budget),
        }
    }

    /// Sets the hosts that requests may name in `Host`, instead of the loopback names. See
    /// [`StreamableHttp::allowed_hosts`](crate::http::StreamableHttp::allowed_hosts).
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_hosts(hosts);
        self
    }

    /// Sets the origins whose web pages may call the service, instead of loopback origins. See
    /// [`StreamableHttp::allowed_origins`](crate::http::StreamableHttp::allowed_origins).
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_origins(origins);
        self
    }

    /// Sets the URI to which clients post messages, as a path or a URL as clients see it. The default is the URI of the stream.
    #[must_use]
    pub fn messages(mut self, uri: impl Into<String>) -> Self {
        self.messages = uri.into().into();
        self
    }

    /// Sets the limits of the service, for bodies and sessions. The limits within a session are those of the
    /// [server](Server::limits).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.budget.set_limit(limits.http.max_bytes);
        self.set().limits = limits;
        self
    }

    /// Requires access tokens. See [`StreamableHttp::protect`](crate::http::StreamableHttp::protect).
    ///
    /// Tokens that are bound to a key ([`ProtectedResource::dpop`]) come with proofs for the URL of the resource, so clients must
    /// open the stream at that URL and post their messages there.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn protect(mut self, resource: ProtectedResource) -> Self {
        self.set().protect(resource);
        self
    }

    /// Requires your own bearer tokens. See [`StreamableHttp::authenticate`](crate::http::StreamableHttp::authenticate).
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn authenticate<F, Fut>(mut self, authenticate: F) -> Self
    where
        F: Fn(Secret) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Principal, Refusal>> + Send + 'static,
    {
        self.set().authenticate(authenticate);
        self
    }

    /// Checks the protection of the service.
    ///
    /// # Errors
    /// If a setting is wrong.
    #[cfg(feature = "auth")]
    fn check_protection(&self) -> Result<()> {
        let Some(protection) = &self.settings.protection else {
            return Ok(());
        };
        protection.check()?;
        let resource = protection.resource();
        resource.map_or(Ok(()), |it| it.check_messages(&self.messages))
    }

    fn set(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }

    /// Listens on an address and serves under any path, until the returned handle is closed or dropped.
    ///
    /// ```no_run
    /// use oxmcp::{Server, http::LegacySse};
    ///
    /// # async fn run(server: Server) -> oxmcp::Result<()> {
    /// let serving = LegacySse::from(server).serve("127.0.0.1:8080").await?;
    /// println!("http://{}/sse", serving.local_addr());
    /// serving.await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it cannot listen on the address, a setting is invalid, or the server that the service was made [from](Self::from) is
    /// misconfigured.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing is left behind.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> Result<ServerHandle> {
        self.settings.check()?;
        #[cfg(feature = "auth")]
        self.check_protection()?;
        let listener = listen(address).await?;
        self.settings.begin_serving();
        let service = self.clone();
        let on_close = |served| async move { service.close_once(&served).await };
        serve(listener, self.clone(), &self.settings.limits, on_close)
    }

    /// Closes the sessions. Each ends when nothing is in flight in it, or when [`Limits::drain`] is over, which cancels requests
    /// that are still running. Requests that arrive in the meantime are served, with `Connection: close` over HTTP/1. May be called
    /// repeatedly and concurrently.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing continues.
    pub async fn close(&self) {
        let served = CancellationToken::new();
        served.cancel();
        let service = self.clone();
        // A runtime that shuts down aborts the task.
        let _ = spawn(async move { service.close_once(&served).await }).await;
    }

    /// Closes the service. `served` is cancelled when its connections have ended; sessions that were opened in the meantime end
    /// then.
    pub(crate) async fn close_once(&self, served: &CancellationToken) {
        let drain = self.settings.limits.drain;
        let closed = async {
            let open = self.sessions.close();
            let ending = join_all(open.iter().map(|session| end(session, drain)));
            let _ = join!(ending, timeout(drain, served.cancelled()));
            let opened_since = self.sessions.close();
            join_all(opened_since.iter().map(|it| end(it, Duration::ZERO))).await;
        };
        let bound = drain.saturating_add(CLOSE_GRACE);
        if timeout(bound, closed).await.is_err() {
            tracing::warn!("closed an SSE service with sessions still running");
        }
    }

    /// Answers a request, if its token is valid or none is required.
    async fn admit<B>(
        self,
        #[cfg_attr(
            not(feature = "auth"),
            expect(unused_mut, reason = "the principal is stored in it")
        )]
        mut parts: Parts,
        body: B,
    ) -> Result<Response<ResponseBody>, Refused>
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        #[cfg(feature = "auth")]
        if let Some(protection) = &self.settings.protection {
            self.check_protection().map_err(|error| failed(&error))?;
            let admitted = validation::admit(protection, &self.settings.policy, &mut parts).await;
            if let Err(refused) = admitted {
                validation::discard_body(&parts, body);
                return Err(refused);
            }
        }
        self.respond(parts, body).await
    }

    pub(crate) async fn respond<B>(
        self,
        parts: Parts,
        body: B,
    ) -> Result<Response<ResponseBody>, Refused>
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        let policy = &self.settings.policy;
        policy.check().map_err(|error| failed(&error))?;
        if let Err(refused) = validation::check_target(policy, &parts) {
            validation::discard_body(&parts, body);
            return Err(refused);
        }
        match parts.method {
            Method::GET if !validation::asks_for_events(&parts.headers) => Err(refuse(
                StatusCode::NOT_ACCEPTABLE,
                "this is an MCP endpoint: GET opens an event stream and needs `Accept: text/event-stream`",
            )),
            Method::GET => self.open(parts).await,
            Method::POST => self.post(&parts, body).await,
            _ => Err(not_allowed()),
        }
    }

    /// Passes a message to its session.
    async fn post<B>(&self, parts: &Parts, body: B) -> Result<Response<ResponseBody>, Refused>
    where
        B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send + 'static,
    {
        let (inbox, session) = match self.inbox(parts) {
            Ok(found) => found,
            Err(refused) => {
                validation::discard_body(parts, body);
                return Err(refused);
            }
        };
        let limit = self.settings.limits.http.max_body_bytes;
        let (message, charge) = validation::read_body(body, limit, &self.budget).await?;
        if message.trim_ascii().is_empty() {
            return Err(refuse(
                StatusCode::BAD_REQUEST,
                "missing message: the request body is empty",
            ));
        }
        let principal = parts.extensions.get::<Principal>();
        #[cfg(feature = "auth")]
        {
            let features = session.server().features().clone();
            let connection = session.connection();
            let serving = validation::ScopeCheck {
                protection: self.settings.protection.as_ref(),
                features: &features,
                caller: principal,
                connection: &|| Some(Arc::clone(connection)),
                is_modern: false,
                parts,
            };
            serving.check_scopes_of_body(&message)?;
        }
        drop(session);
        // The token of the message may differ from that of the stream.
        let posted = inbox.post_from(charge.with(message), principal.cloned());
        match posted.await {
            Ok(()) => Ok(response::empty(StatusCode::ACCEPTED)),
            Err(_) => Err(unknown()),
        }
    }

    /// The deadline of the stream that a request opens, or keeps open.
    #[cfg(feature = "auth")]
    fn stream_deadline(&self, parts: &Parts) -> Option<StreamDeadline> {
        self.settings.protection.as_ref()?.stream_deadline(parts)
    }

    /// Finds the session of a message by the head of its request.
    fn inbox(&self, parts: &Parts) -> Result<(SseInbox, ServerSession), Refused> {
        let id = session_id(parts.uri.query())?;
        let principal = parts.extensions.get::<Principal>();
        let found = self.sessions.find(id, principal);
        let found = found.ok_or_else(unknown)?;
        #[cfg(feature = "auth")]
        if let Some(newer) = self.stream_deadline(parts) {
            self.sessions.extend(id, &newer);
        }
        if validation::is_json(&parts.headers) {
            return Ok(found);
        }
        Err(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported content type: send `Content-Type: application/json`",
        ))
    }

    /// Opens a session.
    async fn open(&self, parts: Parts) -> Result<Response<ResponseBody>, Refused> {
        let limits = &self.settings.limits;
        let principal = parts.extensions.get::<Principal>().cloned();
        let permit = self.sessions.acquire(principal.as_ref(), limits);
        let permit = permit.map_err(|exceeded| {
            let (status, why) = exceeded.why(limits);
            refuse(status, &why)
        })?;
        let chosen = catch_panic(|| Ok((self.settings.choose)(&parts)));
        let chosen = chosen.map_err(|error| failed(&error))?;
        let server = chosen.ok_or_else(|| {
            refuse(
                StatusCode::BAD_REQUEST,
                "no server is configured for this request",
            )
        })?;
        let revisions = &server.features().revisions;
        if revisions.iter().all(|revision| revision.is_modern()) {
            return Err(validation::Refusal::no_stream().into());
        }
        #[cfg(feature = "auth")]
        let deadline = self.stream_deadline(&parts);
        let id = new_id().map_err(|error| failed(&error))?;
        let endpoint = endpoint(&self.messages, &id);
        let (transport, inbox, response) = SseTransport::open_in(&endpoint, Some(&self.budget));
        // Handlers get the head of the request that opened the session. Messages come in other requests, all on this connection.
        let caller = Caller {
            is_alone: false,
            trace: None,
            ..caller(Arc::new(parts))
        };
        let session = server.connect_to(transport, caller).await;
        let session = session.map_err(|error| failed(&error))?;
        session.connection().outbox.count_in(&self.budget, false);
        let session = OpenSession {
            inbox,
            session,
            principal,
            #[cfg(feature = "auth")]
            deadline: deadline.clone(),
            _permit: permit,
        };
        #[cfg(feature = "auth")]
        if let Some(deadline) = &deadline {
            // The responses to calls in flight can only be sent on this stream.
            let connection = Arc::clone(session.session.connection());
            let busy = move || !connection.in_flight().is_empty() || connection.outbox.unsent() > 0;
            deadline.put_off_while(busy);
        }
        #[cfg(feature = "auth")]
        let response = response.map(|body| body.until(deadline.as_ref()));
        self.sessions.keep(&id, session);
        Ok(response)
    }
}

impl<B> Service<Request<B>> for LegacySse
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
        let (parts, body) = request.into_parts();
        let settings = &self.settings;
        let finish =
            match ResponseFinisher::of(&parts, &settings.policy, &settings.limits, &self.budget) {
                Ok(finish) => finish,
                Err(preflight) => return Box::pin(ready(Ok(*preflight))),
            };
        let service = self.clone();
        Box::pin(async move {
            let sessions = Arc::clone(&service.sessions);
            let answer = service.admit(parts, body).await;
            finish.response(answer, sessions.is_closing())
        })
    }
}

impl From<Server> for LegacySse {
    /// Creates a service for one server.
    fn from(server: Server) -> Self {
        server.begin_serving();
        let only = server.clone();
        let mut service = Self::new(move |_| server.clone());
        service.set().server = Some(only);
        service
    }
}

opaque_debug!(LegacySse, |it| {
    sessions: it.sessions.quota(),
    closing: it.sessions.is_closing(),
});

/// Ends a session when nothing is in flight in it, or after this time.
async fn end(session: &ServerSession, drain: Duration) {
    let connection = session.connection();
    if timeout(drain, connection.in_flight().settled())
        .await
        .is_err()
    {
        connection.end_drain();
    }
    let _ = session.close().await;
}

/// The URI to post to, which contains the session ID.
fn endpoint(messages: &str, session: &str) -> String {
    let joint = if messages.contains('?') { '&' } else { '?' };
    format!("{messages}{joint}{SESSION_ID}={session}")
}

/// Whether the query of a URI names a session, so that the request belongs to this transport.
pub(crate) fn names_session(query: Option<&str>) -> bool {
    query.is_some_and(|query| session_id(Some(query)).is_ok())
}

/// The session ID in the query of a URI.
fn session_id(query: Option<&str>) -> Result<&str, Refused> {
    let mut named = query.unwrap_or_default().split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (name == SESSION_ID).then_some(value)
    });
    match (named.next(), named.next()) {
        (Some(session), None) => Ok(session),
        (None, _) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "missing `sessionId`: post to the URI from the stream's `endpoint` event",
        )),
        (Some(_), Some(_)) => Err(refuse(StatusCode::BAD_REQUEST, "duplicate `sessionId`")),
    }
}

/// Rejects a request with a reason that the client can act on.
fn refuse(status: StatusCode, why: impl Into<String>) -> Refused {
    let mut response = Response::new(ResponseBody::full(why.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    Box::new(response)
}

/// Rejects a request whose session does not exist or belongs to another principal. The response does not reveal which.
fn unknown() -> Refused {
    refuse(
        StatusCode::NOT_FOUND,
        "session not found; open a new one with GET",
    )
}

/// Rejects another HTTP method.
fn not_allowed() -> Refused {
    let mut refused = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "HTTP method is not allowed: GET opens an event stream, and POST sends a message to its session",
    );
    let allowed = HeaderValue::from_static("GET, POST");
    refused.headers_mut().insert(header::ALLOW, allowed);
    refused
}

/// Rejects a request after an internal error, whose details are only logged.
fn failed(error: &Error) -> Refused {
    tracing::error!(%error, "failed to serve an SSE request");
    refuse(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error; see the server's log",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_id_is_in_the_query() {
        assert_eq!(endpoint("", "7"), "?sessionId=7");
        assert_eq!(endpoint("/messages", "7"), "/messages?sessionId=7");
        assert_eq!(endpoint("/m?key=1", "7"), "/m?key=1&sessionId=7");
        for query in ["sessionId=7", "a=b&sessionId=7", "sessionId=7&a"] {
            assert_eq!(session_id(Some(query)).unwrap(), "7", "{query}");
        }
        assert_eq!(session_id(Some("sessionId=")).unwrap(), "");
    }

    // Attack: input that two readers read differently.
    #[test]
    fn duplicate_session_id_is_refused() {
        let wrong = [None, Some(""), Some("sessionId"), Some("sessionid=7")];
        let twice = [
            Some("sessionId=7&sessionId=8"),
            Some("sessionId=7&sessionId=7"),
        ];
        for query in wrong.into_iter().chain(twice) {
            let status = session_id(query).unwrap_err().status();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{query:?}");
        }
    }
}

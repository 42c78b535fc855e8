//! Endpoint: one URL for every revision, its settings, and its state.

use std::{fmt, sync::Arc};

use http::{StatusCode, request::Parts};
use tokio::{
    net::{TcpListener, ToSocketAddrs},
    time::timeout,
};
use tokio_util::task::TaskTracker;

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    http::server::{
        response::{self, Refused},
        serve::{CLOSE_GRACE, Serving, serve},
        sessions::{Session, Sessions},
        sse_2024::{Choose, LegacySse, SseSessions},
        validation::{self, Policy},
    },
    limits::Limits,
    server::Server,
    session::{panics::catch_panic, task::Latch},
    store::{AnyEventStore, AnySessionStore, EventStore, MemoryEventStore, SessionStore},
};

/// One URL for clients of every revision: sessions and stateless requests side by side.
///
/// It is a [`tower_service::Service`], which mounts in axum, hyper and all that speaks tower, whatever the path; or it serves
/// an address by itself. It is a cheap handle: clones are the same endpoint.
///
/// - A modern request (2026-07-28) is answered on its own, as JSON, or as a stream of events where the handler sends
///   something before it returns. A client that goes away cancels it.
/// - `initialize` opens a session, which lasts until the client ends it, is idle for too long, or the endpoint closes. What a
///   handler sends goes into the stream of its request, everything else into the stream that the client gets by GET.
///   Streams that break are resumed.
/// - A GET without a session opens one of the transport of 2024-11-05, as [`LegacySse`] does at an address of its own.
///
/// Who may come near it is decided by `Host` and `Origin`: by default nobody but programs on this machine, since a web page
/// in somebody's browser reaches whatever listens on it. See [`allowed_hosts`](Self::allowed_hosts) for deployment.
///
/// ```
/// use oxmcp::{JsonSchema, Server, Tool, http::StreamableHttp};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pair { a: f64, b: f64 }
///
/// let server = Server::new("calculator", "1.0.0")
///     .tool(Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b }));
/// let app = axum::Router::new()
///     .route("/health", axum::routing::get(|| async { "ok" }))
///     .route_service("/mcp", StreamableHttp::new(move |_request| server.clone()));
/// # let _: axum::Router = app;
/// ```
///
/// See [Streamable HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http).
#[derive(Clone)]
pub struct StreamableHttp {
    pub(super) settings: Arc<Settings>,
    pub(super) state: Arc<State>,
}

/// The settings, fixed before the first request.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) choose: Choose,
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    pub(super) events: Option<Arc<dyn AnyEventStore>>,
    pub(super) sessions: Option<Arc<dyn AnySessionStore>>,
}

/// The state that all clones share.
#[derive(Default)]
pub(super) struct State {
    pub(super) sessions: Sessions,
    /// Those of clients that know no transport but that of 2024-11-05.
    pub(super) sse: Arc<SseSessions>,
    /// The streams that clients got by GET.
    pub(super) streams: TaskTracker,
    /// The requests that are being answered.
    pub(super) open: TaskTracker,
    pub(super) closing: Latch,
}

impl StreamableHttp {
    /// An endpoint that serves what `choose` returns: a [`Server`], or with `None` nothing, which is answered with 400.
    ///
    /// It is asked for each modern request, and once for each session. Most return a clone of one server; one may look at the
    /// request to serve another to each customer. Then requests of one client must be given the same server, since what
    /// changes is told by the server that it changes in.
    pub fn new<S: Into<Option<Server>>>(
        choose: impl Fn(&Parts) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Arc::new(Settings {
                choose: Arc::new(move |parts| choose(parts).into()),
                policy: Policy::default(),
                limits: Limits::default(),
                events: Some(Arc::new(MemoryEventStore::new())),
                sessions: None,
            }),
            state: Arc::default(),
        }
    }

    /// The bounds of the endpoint: of bodies, sessions and streams. Those of what goes on in a session are the
    /// [server's](Server::limits).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.set().limits = limits;
        self
    }

    /// The hosts under which clients may reach the endpoint, in place of the loopback ones: `example.com` for any port,
    /// `example.com:8443`, or `*` for any, where what is in front of the endpoint has checked them. Requests with another `Host`
    /// are refused with 403.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_hosts(hosts);
        self
    }

    /// The origins of the web pages that may use the endpoint, in place of those on this machine: `https://example.com`, or `*`
    /// for any. Requests with another `Origin` are refused with 403; those without one come from no web page.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_origins(origins);
        self
    }

    /// Where the events of sessions are kept, so that a stream that broke can be resumed. By default that is in memory, and
    /// bounded.
    #[must_use]
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.set().events = Some(Arc::new(store));
        self
    }

    /// Streams that break are not resumed, and nothing is kept for it.
    #[must_use]
    pub fn without_event_store(mut self) -> Self {
        self.set().events = None;
        self
    }

    /// Where is kept what sessions are made of, so that other nodes can go on with them, and this one after a restart: with a
    /// store of events that they share, too, a client notices nothing. By default that is nowhere, and sessions end with the
    /// endpoint.
    #[must_use]
    pub fn session_store(mut self, store: impl SessionStore) -> Self {
        self.set().sessions = Some(Arc::new(store));
        self
    }

    fn set(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }

    /// Serves an address by itself, over HTTP/1 and HTTP/2, whatever the path: for those without a web framework. It is served
    /// from now on, in the background, until what comes back is closed or dropped; so keep it, or await it. It also says the
    /// port that was found for port 0.
    ///
    /// ```no_run
    /// use oxmcp::{Server, http::StreamableHttp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let server = Server::new("calculator", "1.0.0");
    /// StreamableHttp::from(server).serve("127.0.0.1:8080").await?.await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where the address cannot be listened on, or a setting is wrong.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> Result<Serving> {
        let failed = |error: std::io::Error| {
            Error::closed(format!("the address cannot be listened on: {error}")).with_source(error)
        };
        self.settings.policy.check()?;
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let endpoint = self.clone();
        let close = async move { endpoint.close().await };
        serve(listener, self.clone(), &self.settings.limits, close).map_err(failed)
    }

    /// Serves nothing more: what runs may finish within [`Limits::drain`], then it is cancelled; sessions and streams end.
    /// What comes meanwhile is answered with 503. It may be called again, and by several at once.
    ///
    /// Who mounts the endpoint in a framework closes it before the framework's own server, which else waits for streams that
    /// do not end by themselves.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) {
        self.state.closing.set();
        self.state.sessions.close_all();
        let ended = async {
            self.sse().close().await;
            self.state.sessions.all_gone().await;
            self.state.open.close();
            self.state.open.wait().await;
        };
        let bound = self.settings.limits.drain.saturating_add(CLOSE_GRACE);
        if timeout(bound, ended).await.is_err() {
            tracing::warn!("an endpoint was closed while something in it still ran");
        }
    }

    /// The part of it for clients that know no transport but that of 2024-11-05.
    pub(super) fn sse(&self) -> LegacySse {
        let Settings {
            choose,
            policy,
            limits,
            ..
        } = &*self.settings;
        LegacySse::within(choose, policy, limits, &self.state.sse)
    }

    /// The server for a request that is not of a session.
    ///
    /// # Errors
    /// How the request is refused.
    pub(super) fn choose(&self, parts: &Parts) -> Result<Server, Refused> {
        // Other requests may come over the same connection, which must not panic.
        let chosen = catch_panic(|| Ok((self.settings.choose)(parts)));
        let Some(server) = chosen.map_err(|error| misconfigured(&error))? else {
            let why = Error::invalid_request("nothing is served here for this request");
            return Err(response::refuse(StatusCode::BAD_REQUEST, None, &why));
        };
        server.check().map_err(|error| misconfigured(&error))?;
        Ok(server)
    }
}

/// A request whose head was validated.
pub(super) struct EndpointRequest {
    pub(super) endpoint: StreamableHttp,
    pub(super) server: Server,
    /// The session that it names, if it belongs to the request's principal.
    pub(super) session: Option<Arc<Session>>,
    /// Whether it names a session, be there one or not.
    pub(super) names_session: bool,
    pub(super) parts: Arc<Parts>,
}

impl EndpointRequest {
    /// Checks that there are sessions in the revision that it names.
    ///
    /// # Errors
    /// How it is refused.
    pub(super) fn check_sessions(&self) -> Result<(), Refused> {
        let features = self.server.features();
        Ok(validation::check_session(&features, &self.parts.headers)?)
    }
}

/// The refusal of all requests to a misconfigured endpoint. Its log says what is wrong.
pub(super) fn misconfigured(error: &Error) -> Refused {
    tracing::error!(%error, "the server or its endpoint was put together wrongly");
    let why = Error::internal("the server was put together wrongly; its log says how");
    response::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
}

impl From<Server> for StreamableHttp {
    /// An endpoint that serves one server.
    fn from(server: Server) -> Self {
        Self::new(move |_| server.clone())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("sessions", &self.sessions)
            .field("sse", &self.sse)
            .field("streams", &self.streams.len())
            .field("open", &self.open.len())
            .field("closing", &self.closing)
            .finish()
    }
}

opaque_debug!(StreamableHttp, |it| { state: it.state });

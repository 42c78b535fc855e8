//! The Streamable HTTP endpoint: one URL for every revision, its settings and its state.

use std::{
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{StatusCode, request::Parts};
#[cfg(feature = "auth")]
use oxmcp_auth::{Secret, server::Refusal};
use tokio::{
    join,
    net::ToSocketAddrs,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    http::server::{
        cluster::{AnyCluster, Cluster, SessionBus},
        response::{self, Refused},
        serve::{
            CLOSE_GRACE, HealthCheck, HealthState, Readiness, ServerHandle, Stores, listen, serve,
        },
        sessions::{Session, Sessions, is_id, new_id},
        settings::Settings,
        sse_2024::{LegacySse, SseSessions},
        validation::{self, Accepted},
    },
    limits::Limits,
    server::{ChangeBus, Server},
    session::{
        driver::budget::Budget,
        panics::catch_panic,
        task::{Latch, after, spawn},
    },
    store::{
        AnyBus, Bus, EventStore, MemoryEventStore, SessionStore, any_bus, any_event_store,
        any_session_store,
    },
    tasks::Tasks,
};
#[cfg(feature = "auth")]
use crate::{http::protection::ProtectedResource, transport::principal::Principal};

/// A Streamable HTTP endpoint: serves clients of every revision under one URL, with sessions and without.
///
/// It is a [`tower_service::Service`] that you mount in axum, hyper or any other tower framework, under any path. Without a
/// framework, call [`serve`](Self::serve). Cloning is cheap, and all clones are the same endpoint.
///
/// - A modern request (2026-07-28) is stateless. The response is JSON, or an event stream if the handler sends a message before it
///   returns. Disconnecting cancels the request.
/// - `initialize` opens a session, which lasts until the client ends it, it exceeds its idle timeout, or the endpoint closes.
///   Messages that a handler sends go into the stream of its request, all others into the stream that the client opens with GET.
///   Clients can resume broken streams.
/// - A GET without a session whose `Accept` names `text/event-stream` opens a session of the 2024-11-05 transport, like a separate
///   [`LegacySse`] endpoint. Browsers, probes and health checks, which accept anything, get 405.
///
/// By default it accepts only requests whose `Host` is a loopback name, and rejects cross-origin requests: otherwise any web page
/// in a browser on this machine could call it. To keep out other machines, listen on a loopback address. For deployment, set
/// [`allowed_hosts`](Self::allowed_hosts).
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
    pub(crate) settings: Arc<Settings>,
    pub(crate) state: Arc<State>,
}

/// The state that all clones share.
pub(crate) struct State {
    /// The budget for bytes buffered for clients.
    pub(crate) budget: Arc<Budget>,
    pub(crate) sessions: Sessions,
    /// The sessions of clients that support only the 2024-11-05 transport.
    pub(crate) sse: Arc<SseSessions>,
    /// The streams that clients opened with GET.
    pub(crate) streams: TaskTracker,
    /// The requests in flight.
    pub(crate) open: TaskTracker,
    /// The messages between the nodes of a cluster about sessions.
    pub(crate) session_bus: Arc<SessionBus>,
    /// Set when the endpoint starts to close. Requests are served as before, but connections and streams end.
    pub(crate) closing: Latch,
    /// The deadline of requests that were in flight when the endpoint started to close.
    drain_ends: OnceLock<Instant>,
    /// Set when the drain is over and sessions end immediately.
    pub(crate) drained: Latch,
    health: Arc<HealthState>,
}

impl StreamableHttp {
    /// Creates an endpoint that serves the [`Server`] that `choose` returns. If `choose` returns `None`, the response is 400.
    ///
    /// `choose` is called for each modern request, and once for each session. Usually it returns a clone of one server. It can also
    /// select a server by the request, for example one per customer. It must then return the same server for all requests of a
    /// client, because a server notifies only its own clients of changes.
    ///
    /// If the server is misconfigured, every request fails with 500. Call [`Server::check`] to find errors before you serve.
    pub fn new<S: Into<Option<Server>>>(
        choose: impl Fn(&Parts) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Arc::new(Settings {
                events: Some(any_event_store(MemoryEventStore::new())),
                ..Settings::new(choose)
            }),
            state: State::new(Budget::new(Limits::default().http.max_bytes)),
        }
    }

    /// Sets the limits of the endpoint, for bodies, sessions and streams. The limits within a session are those of the
    /// [server](Server::limits).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.state.budget.set_limit(limits.http.max_bytes);
        self.set().limits = limits;
        self
    }

    /// Sets the hosts that requests may name in `Host`, instead of the loopback names: `example.com` for any port,
    /// `example.com:8443`, or `*` for any host. Use `*` only behind a proxy that checks `Host`. Requests with another `Host` get
    /// 403.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_hosts(hosts);
        self
    }

    /// Sets the origins whose web pages may call the endpoint, instead of loopback origins: `https://example.com`, or `*` for any
    /// origin. Requests with another `Origin` get 403. Requests without `Origin` do not come from a web page, and are accepted.
    ///
    /// For [CORS](https://fetch.spec.whatwg.org/#http-cors-protocol), the endpoint answers preflight requests, and lets pages of
    /// the listed origins read responses, including `Mcp-Session-Id` and `WWW-Authenticate`. `*` does not list any origin: to let
    /// pages of any origin read responses, add the CORS headers in front of the endpoint. Authentication in front of the endpoint
    /// must let `OPTIONS` through, because a preflight request has no token.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_origins(origins);
        self
    }

    /// Sets the store for the events of sessions, from which broken streams are resumed. The default is a bounded store in memory.
    #[must_use]
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.set().events = Some(any_event_store(store));
        self
    }

    /// Disables the event store: broken streams cannot be resumed.
    #[must_use]
    pub fn without_event_store(mut self) -> Self {
        self.set().events = None;
        self
    }

    /// Sets the store for session state, from which other nodes, or this node after a restart, continue sessions. If the nodes also
    /// share an event store, clients do not notice that they changed nodes: their streams continue on any node, and end with an
    /// error if the node that writes them is gone. By default sessions are not stored, and end with the endpoint.
    #[must_use]
    pub fn session_store(mut self, store: impl SessionStore) -> Self {
        self.set().sessions = Some(any_session_store(store));
        self
    }

    /// Sets the bus between the nodes.
    ///
    /// - Changes: when a list or a resource changes on one node, the clients of all nodes are notified, in every revision and over
    ///   every transport of the servers that are served here. This calls [`Server::bus`] for each of them.
    /// - Sessions, if nodes share a [session store](Self::session_store): nodes learn that a session ended or changed, or that its
    ///   client cancelled a call on another node. Without a bus, a node detects only the first two, and later: it checks at
    ///   intervals of 1/64 of [`HttpLimits::session_idle`](crate::HttpLimits).
    #[must_use]
    pub fn bus(self, bus: impl Bus) -> Self {
        self.with_bus(any_bus(bus))
    }

    fn with_bus(mut self, bus: Arc<dyn AnyBus>) -> Self {
        let changes = ChangeBus::new(Arc::clone(&bus));
        if let Some(server) = &self.settings.server {
            server.join(&changes);
        }
        let settings = self.set();
        let choose = Arc::clone(&settings.choose);
        settings.choose =
            Arc::new(move |parts| choose(parts).inspect(|server| server.join(&changes)));
        settings.bus = Some(bus);
        self
    }

    /// Makes the endpoint a node of a cluster, whose nodes share sessions, the events of their streams, tasks, a bus and keys.
    /// Clients can then use any node. This combines [`session_store`](Self::session_store), [`event_store`](Self::event_store) and
    /// [`bus`](Self::bus); stores that are set later take precedence.
    ///
    /// The server uses the cluster's keys for `requestState`, unless [its own keys](Server::state_keys) are set, and the cluster's
    /// store for its tasks, if they are [in memory](crate::tasks::Tasks::in_memory). DPoP nonces are made with the keys, unless
    /// nonce keys other than [random](crate::auth::dpop::NonceKeys::random) ones are set. A server with another name cannot use the
    /// same prefix and keys: [`serve`](Self::serve) fails, and requests to a mounted endpoint get 500. A warning is logged if
    /// another node [protects](Self::protect) the server under another URL or for other audiences. All nodes also need the same
    /// tools and limits, which are not compared.
    ///
    /// Without keys, [`serve`](Self::serve) fails, and its error explains how to make a key.
    #[must_use]
    pub fn cluster(mut self, cluster: impl Cluster) -> Self {
        let settings = self.set();
        let name = settings.server.as_ref();
        let name = name.map(|server| server.features().info.name.clone());
        let (cluster, parts) = AnyCluster::new(cluster, name.as_deref());
        settings.sessions = Some(parts.sessions);
        settings.events = Some(parts.events);
        settings.cluster = Some(Arc::clone(&cluster));
        #[cfg(feature = "auth")]
        settings.share_nonces();
        let choose = Arc::clone(&settings.choose);
        settings.choose = Arc::new(move |parts| {
            let server = choose(parts)?;
            cluster.join(&server);
            Some(server)
        });
        self.with_bus(parts.bus)
    }

    /// Answers each request with a single JSON message instead of a stream, for proxies that cannot stream. GET is answered with
    /// 405, and subscriptions are rejected.
    ///
    /// Messages that handlers send before they return (progress, log messages) are dropped. Handlers cannot send requests to
    /// clients of sessions, which would need a stream: such clients are served as if they had no capabilities. Modern clients still
    /// receive requests, as part of results.
    #[must_use]
    pub fn json_only(mut self) -> Self {
        self.set().json_only = true;
        self
    }

    /// Serves legacy clients without sessions: each request by itself, on any node, in the revision that `MCP-Protocol-Version`
    /// names. The response to `initialize` has no session ID, and GET and DELETE get 405.
    ///
    /// The server then knows only the client's revision. Handlers cannot send requests to the client, and state that outlives a
    /// request (resource subscriptions, the log level) has no effect. Disconnecting cancels the request.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.set().stateless = true;
        self
    }

    /// Sets the function that makes session IDs, instead of random ones, so that a load balancer can route requests by the ID.
    /// `make` is called with the `initialize` request that opens the session. An ID has 1 to 200 visible ASCII characters, and must
    /// be unique and impossible to guess: if a session is not bound to a [`Principal`], its ID is enough to use it. If `make`
    /// returns an invalid ID, `initialize` fails with 500.
    /// ```
    /// use oxmcp::{Server, http::StreamableHttp};
    ///
    /// # fn random() -> u128 { 7 }
    /// let node = "eu-1";
    /// let endpoint = StreamableHttp::from(Server::new("calculator", "1.0.0"))
    ///     .session_ids(move |_request| format!("{node}.{:032x}", random()));
    /// ```
    #[must_use]
    pub fn session_ids(mut self, make: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.set().session_ids = Some(Arc::new(make));
        self
    }

    /// Requires access tokens. Requests without a token that the resource accepts are rejected, except CORS preflight requests and
    /// requests for the resource's metadata. `Host` and `Origin` are checked first.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn protect(mut self, resource: ProtectedResource) -> Self {
        self.set().protect(resource);
        self
    }

    /// Requires your own bearer tokens, such as API keys. `authenticate` returns the caller for the token of each request; results
    /// are not cached. For access tokens of an authorization server, use [`protect`](Self::protect). An endpoint has one or the
    /// other.
    ///
    /// A request without a valid token gets 401 with the challenge `Bearer`, and no metadata: clients must get their tokens
    /// elsewhere. Items that need scopes, such as a tool with [`Tool::scopes`](crate::Tool::scopes), require a caller with these
    /// [`Principal::scopes`]; other callers get 403, which names the missing scopes. Sessions, request states and tasks belong to
    /// the principal. Streams that clients listen to end after 10 minutes, so that clients reopen them and the token is checked
    /// again.
    ///
    /// ```
    /// use oxmcp::{Principal, Server, auth::{AuthError, Secret}, http::StreamableHttp};
    ///
    /// let endpoint = StreamableHttp::from(Server::new("files", "1.0.0"))
    ///     .authenticate(|token: Secret| async move {
    ///         match token.expose() {
    ///             "key-of-ann" => Ok(Principal::new("ann").scopes(["files:read"])),
    ///             _ => Err(AuthError::invalid_token("unknown API key").into()),
    ///         }
    ///     });
    /// # let _ = endpoint;
    /// ```
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

    /// Returns a liveness check to mount: it reports that the process responds, and never fails.
    #[must_use]
    pub fn liveness(&self) -> HealthCheck {
        HealthCheck::of_liveness()
    }

    /// Returns a readiness check to mount: it reports whether requests should be routed here.
    ///
    /// | `status` in the body | HTTP | |
    /// |---|---|---|
    /// | `starting` | 503 | a store or the bus has not responded yet |
    /// | `ready` | 200 | |
    /// | `degraded` | 200 | the last request to a store or the bus failed; requests are served as well as possible |
    /// | `draining` | 503 | [`announce_close`](Self::announce_close) or [`close`](Self::close) was called |
    ///
    /// `stores` in the body reports each store as `up` or `down`. The [task](crate::tasks) store is included if it comes from a
    /// [cluster](Self::cluster), or was passed to [`Tasks::new`](crate::tasks::Tasks::new) of the only server of the endpoint.
    #[must_use]
    pub fn readiness(&self) -> HealthCheck {
        let settings = &self.settings;
        let shared = settings.cluster.as_ref().map(|it| it.tasks());
        let tasks = match &settings.server {
            Some(server) => Tasks::store_of(server, shared),
            None => shared.map(Arc::clone),
        };
        HealthCheck::of_readiness(Readiness {
            state: Arc::clone(&self.state.health),
            stores: Stores {
                sessions: settings.sessions.clone(),
                events: settings.events.clone(),
                bus: settings.bus.clone(),
                tasks: tasks.map(|store| self.state.health.probed_tasks(store)),
            },
            is_strict: settings.strict_readiness,
        })
    }

    /// Answers [liveness](Self::liveness) checks at this path, for programs without a web framework.
    #[must_use]
    pub fn liveness_path(mut self, path: impl Into<String>) -> Self {
        self.set().liveness_path = Some(path.into());
        self
    }

    /// Answers [readiness](Self::readiness) checks at this path, for programs without a web framework.
    #[must_use]
    pub fn readiness_path(mut self, path: impl Into<String>) -> Self {
        self.set().readiness_path = Some(path.into());
        self
    }

    /// Also reports [not ready](Self::readiness) while a store or the bus fails. A shared store fails for all nodes at the same
    /// time. With this setting no client is served then; by default nodes continue to serve the sessions they know.
    #[must_use]
    pub fn strict_readiness(mut self) -> Self {
        self.set().strict_readiness = true;
        self
    }

    /// The health check at a path.
    pub(crate) fn health_check(&self, path: &str) -> Option<HealthCheck> {
        let is = |it: &Option<String>| it.as_deref() == Some(path);
        if is(&self.settings.readiness_path) {
            return Some(self.readiness());
        }
        is(&self.settings.liveness_path).then(|| self.liveness())
    }

    /// Reports [not ready](Self::readiness) from now on, while requests are served as before. Load balancers that check readiness
    /// then route requests elsewhere before the endpoint is [closed](Self::close). Those that do not, like nginx, do not need this.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oxmcp::{Server, http::StreamableHttp};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let endpoint = StreamableHttp::from(Server::new("calculator", "1.0.0"));
    /// # let seconds = Duration::ZERO;
    /// endpoint.announce_close();
    /// // Longer than two readiness checks take to fail.
    /// tokio::time::sleep(seconds).await;
    /// endpoint.close().await;
    /// # }
    /// ```
    pub fn announce_close(&self) {
        self.state.health.set_draining();
    }

    fn set(&mut self) -> &mut Settings {
        Arc::make_mut(&mut self.settings)
    }

    /// Listens on an address and serves HTTP/1 and HTTP/2 under any path, for programs without a web framework. Serving continues
    /// in the background until the returned [`ServerHandle`] is closed or dropped, so keep or await the handle. It also reports the
    /// actual port if you asked for port 0.
    ///
    /// ```no_run
    /// use oxmcp::{Server, http::StreamableHttp};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let server = Server::new("calculator", "1.0.0");
    /// StreamableHttp::from(server).serve("127.0.0.1:8080").await?.ended().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it cannot listen on the address, a setting is invalid, or the server that the endpoint was made [from](Self::from) is
    /// misconfigured.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> Result<ServerHandle> {
        self.settings.check()?;
        if let Some(cluster) = &self.settings.cluster {
            cluster.check()?;
            cluster.compare(self.settings.facts(None)).await?;
        }
        let listener = listen(address).await?;
        self.settings.begin_serving();
        let endpoint = self.clone();
        let close = |served| async move { endpoint.close_once(served).await };
        serve(listener, self.clone(), &self.settings.limits, close)
    }

    /// Shuts the endpoint down gracefully, without losing a request. Requests are served as before, with `Connection: close` over
    /// HTTP/1. Streams that do not belong to a request end, and running tasks are handed over to other processes with the same task
    /// store. When nothing is in flight, or [`Limits::drain`] is over, sessions end, and requests that are still running are
    /// cancelled and answered with an error. May be called repeatedly and concurrently.
    ///
    /// Later requests are also served until the process ends: modern requests, requests of sessions in a
    /// [store](Self::session_store), which are restored, and messages for other nodes. No request is rejected because the endpoint
    /// is closing: most clients would not retry it.
    ///
    /// An endpoint that [chooses](Self::new) among servers does not know them all. In that case, await
    /// [`hand_over`](crate::tasks::TaskControl::hand_over) of each server.
    ///
    /// If the endpoint is mounted in a framework, the framework owns the listener and the connections. Tell the framework to stop
    /// listening first, and call this while it shuts down: its shutdown waits for streams that do not end by themselves. For
    /// [`serve`](Self::serve), [`ServerHandle::close`] does both.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing continues.
    pub async fn close(&self) {
        let served = CancellationToken::new();
        served.cancel();
        let endpoint = self.clone();
        // A runtime that shuts down aborts the task.
        let _ = spawn(async move { endpoint.close_once(served).await }).await;
    }

    /// Closes the endpoint. `served` is cancelled when its connections have ended.
    async fn close_once(&self, served: CancellationToken) {
        let drain = self.settings.limits.drain;
        let shut_down = self.shut_down();
        self.state.begin_close(drain);
        let (state, sse) = (&*self.state, self.sse());
        state.open.close();
        let settled = async {
            join!(
                served.cancelled(),
                state.sessions.settle(),
                state.open.wait()
            );
        };
        let sessions = async {
            // Requests that have not ended by then are cancelled.
            let _ = timeout(drain, settled).await;
            state.drained.set();
            state.sessions.close_all();
            state.sessions.all_gone().await;
            state.open.wait().await;
        };
        let ended = async { join!(sse.close_once(&served), sessions, shut_down) };
        let bound = drain.saturating_add(CLOSE_GRACE);
        if timeout(bound, ended).await.is_err() {
            tracing::warn!("closed an endpoint with work still running");
        }
    }

    /// The deadline of a request that is in flight while the endpoint closes. Requests that arrive after the drain get the full
    /// drain time again, since something still accepts connections.
    pub(crate) fn cut_at(&self) -> Instant {
        let now = Instant::now();
        let drain_ends = self.state.drain_ends.get().filter(|it| **it > now);
        drain_ends.map_or_else(|| after(now, self.settings.limits.drain), |it| *it)
    }

    /// Shuts down the endpoint's only server, unless the server has other clients or was shut down already. The shutdown continues
    /// if the future is dropped.
    fn shut_down(&self) -> impl Future<Output = ()> + use<> {
        let is_first = !self.state.closing.is_set();
        let server = self.settings.server.clone().filter(|server| {
            let own = self.state.sessions.open() + self.state.sse.count();
            is_first && server.sessions().count() <= own
        });
        let shutting_down = server.map(|server| spawn(async move { server.shut_down().await }));
        async move {
            if let Some(shutting_down) = shutting_down {
                // A runtime that shuts down aborts the task.
                let _ = shutting_down.await;
            }
        }
    }

    /// The part of the endpoint for clients that support only the 2024-11-05 transport.
    pub(crate) fn sse(&self) -> LegacySse {
        LegacySse::within(&self.settings, &self.state.sse, &self.state.budget)
    }

    /// Whether requests need a token.
    pub(crate) fn is_protected(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.settings.protection.is_some();
        #[cfg(not(feature = "auth"))]
        return false;
    }

    /// Makes the ID of the session that a request opens.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn new_session_id(&self, parts: &Parts) -> Result<Arc<str>, Refused> {
        let Some(make) = &self.settings.session_ids else {
            return new_id().map_err(|error| response::misconfigured(&error));
        };
        let id =
            catch_panic(|| Ok(make(parts))).map_err(|error| response::misconfigured(&error))?;
        if is_visible(&id) {
            return Ok(id.into());
        }
        Err(response::misconfigured(&Error::misuse(format!(
            "invalid session ID {id:?}: expected 1 to {MAX_SESSION_ID} visible ASCII characters"
        ))))
    }

    /// Whether a text has the form of this endpoint's session IDs. Other texts are never looked up in a store.
    pub(crate) fn is_session_id(&self, text: &str) -> bool {
        match &self.settings.session_ids {
            Some(_) => is_visible(text),
            None => is_id(text),
        }
    }

    /// Whether the endpoint has the 2024-11-05 transport, which needs a session and a stream.
    pub(crate) fn has_sse(&self) -> bool {
        !self.settings.json_only && !self.settings.stateless
    }

    /// The server for a request outside a session.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn choose(&self, parts: &Parts) -> Result<Server, Refused> {
        // A panic must not end the connection, which may carry other requests.
        let chosen = catch_panic(|| Ok((self.settings.choose)(parts)));
        let Some(server) = chosen.map_err(|error| response::misconfigured(&error))? else {
            let why = Error::invalid_request("no server is configured for this request");
            return Err(response::refuse(StatusCode::BAD_REQUEST, None, &why));
        };
        server
            .check_built()
            .map_err(|error| response::misconfigured(&error))?;
        server.note_endpoint();
        server.begin_serving();
        if let Some(cluster) = &self.settings.cluster {
            cluster
                .check()
                .map_err(|error| response::misconfigured(&error))?;
            if cluster.must_compare() {
                let (cluster, facts) = (Arc::clone(cluster), self.settings.facts(Some(&server)));
                // Requests are rejected if the comparison has failed.
                drop(spawn(async move { cluster.compare(facts).await }));
            }
        }
        Ok(server)
    }
}

impl State {
    /// Starts to end connections and streams.
    pub(crate) fn begin_close(&self, drain: Duration) {
        self.health.set_draining();
        self.drain_ends.get_or_init(|| after(Instant::now(), drain));
        self.closing.set();
    }

    /// Creates a state without sessions, whose bytes count against this budget.
    pub(crate) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            sessions: Sessions::default(),
            sse: Arc::default(),
            streams: TaskTracker::new(),
            open: TaskTracker::new(),
            session_bus: Arc::default(),
            closing: Latch::default(),
            drain_ends: OnceLock::new(),
            drained: Latch::default(),
            health: Arc::default(),
        })
    }
}

/// The maximum length of a session ID from the user's function.
const MAX_SESSION_ID: usize = 200;

/// Whether the specification allows a text as a session ID.
fn is_visible(id: &str) -> bool {
    (1..=MAX_SESSION_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A request whose head was validated.
pub(crate) struct EndpointRequest {
    pub(crate) endpoint: StreamableHttp,
    pub(crate) server: Server,
    /// The session that the request names, if it belongs to the request's principal.
    pub(crate) session: Option<Arc<Session>>,
    /// Whether the request names a session, existing or not.
    pub(crate) names_session: bool,
    pub(crate) parts: Arc<Parts>,
    pub(crate) accepted: Accepted,
}

impl EndpointRequest {
    /// Checks that the revision that the request names has sessions.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(crate) fn check_sessions(&self) -> Result<(), Refused> {
        if self.endpoint.settings.stateless {
            return Err(validation::Refusal::no_sessions().into());
        }
        let features = self.server.features();
        Ok(validation::check_session(&features, &self.parts.headers)?)
    }
}

impl From<Server> for StreamableHttp {
    /// Creates an endpoint that serves one server.
    fn from(server: Server) -> Self {
        server.begin_serving();
        let only = server.clone();
        only.note_endpoint();
        let mut endpoint = Self::new(move |_| server.clone());
        endpoint.set().server = Some(only);
        endpoint
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("bytes", &self.budget.used())
            .field("sessions", &self.sessions)
            .field("sse", &self.sse)
            .field("streams", &self.streams.len())
            .field("open", &self.open.len())
            .field("closing", &self.closing)
            .finish()
    }
}

opaque_debug!(StreamableHttp, |it| { state: it.state });

//! Streamable HTTP endpoint: one URL for every revision, with its settings and its state.

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
    http::{
        cluster::{AnyCluster, Cluster, NAME, SharedSetting},
        server::{
            response::{self, Refused},
            serve::{
                CLOSE_GRACE, HealthCheck, HealthState, Readiness, ServerHandle, Stores, listen,
                serve,
            },
            sessions::{Session, Sessions, Undelivered, is_id, new_id},
            sse_2024::{Choose, LegacySse, SseSessions},
            validation::{self, Policy},
        },
    },
    limits::Limits,
    server::{ChangeBus, Server},
    session::{
        driver::budget::Budget,
        panics::catch_panic,
        task::{Latch, after, spawn},
    },
    store::{
        AnyBus, AnyEventStore, AnySessionStore, Bus, EventStore, MemoryEventStore, SessionStore,
        any_bus, any_event_store, any_session_store,
    },
    tasks::Tasks,
};
#[cfg(feature = "auth")]
use crate::{
    http::protection::{ProtectedResource, Protection, TokenAuthentication},
    transport::principal::Principal,
};

/// An endpoint that serves clients of every revision under one URL: sessions and stateless requests side by side.
///
/// It is a [`tower_service::Service`], which mounts in axum, hyper and everything that supports tower, under any path; or it serves
/// an address by itself. It is a cheap handle: clones are the same endpoint.
///
/// - A modern request (2026-07-28) is answered on its own, as JSON, or as a stream of events if the handler sends a message before
///   it returns. A client that disconnects cancels the request.
/// - `initialize` opens a session, which lasts until the client ends it, the session is idle for too long, or the endpoint closes.
///   Messages of a handler go into the stream of its request, all other messages into the stream that the client opens with GET.
///   Broken streams are resumed.
/// - A GET without a session whose `Accept` names `text/event-stream` opens a session of the transport of 2024-11-05, as
///   [`LegacySse`] does at an address of its own. Browsers, probes and health checks, which accept anything, get 405.
///
/// By default it answers only requests whose `Host` is a name of this machine, and refuses pages from elsewhere, because any web
/// page in a browser on this machine can reach its local ports. Programs elsewhere are kept out by the address that the endpoint
/// listens on. See [`allowed_hosts`](Self::allowed_hosts) for deployment.
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

/// The settings, which are fixed before the first request.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) choose: Choose,
    /// The server that is always chosen, if it is known.
    pub(super) server: Option<Server>,
    pub(super) policy: Policy,
    pub(super) limits: Limits,
    pub(super) events: Option<Arc<dyn AnyEventStore>>,
    pub(super) sessions: Option<Arc<dyn AnySessionStore>>,
    pub(super) bus: Option<Arc<dyn AnyBus>>,
    /// The cluster that the endpoint belongs to.
    pub(super) cluster: Option<Arc<AnyCluster>>,
    /// The function that makes the ids of sessions; `None` if the ids are random.
    pub(super) session_ids: Option<SessionIds>,
    /// Whether each answer is one message, and there are no streams.
    pub(super) json_only: bool,
    /// Whether there are no sessions, and each legacy request is served by itself.
    pub(super) stateless: bool,
    /// The paths of the health checks.
    pub(super) liveness_path: Option<String>,
    pub(super) readiness_path: Option<String>,
    /// Whether the endpoint is not ready while a store fails.
    strict_readiness: bool,
    /// The tokens that the endpoint demands.
    #[cfg(feature = "auth")]
    pub(super) protection: Option<Protection>,
}

type SessionIds = Arc<dyn Fn(&Parts) -> String + Send + Sync>;

/// The state that all clones share.
pub(super) struct State {
    /// The budget of the bytes that are held for clients.
    pub(super) budget: Arc<Budget>,
    pub(super) sessions: Sessions,
    /// The sessions of clients that support only the transport of 2024-11-05.
    pub(super) sse: Arc<SseSessions>,
    /// The streams that clients have opened with GET.
    pub(super) streams: TaskTracker,
    /// The requests in flight.
    pub(super) open: TaskTracker,
    /// Messages of clients that other nodes wait for.
    pub(super) undelivered: Undelivered,
    /// Set once the endpoint closes. Requests are served as before, but connections and streams end.
    pub(super) closing: Latch,
    /// The deadline of requests that were in flight when the endpoint began to close.
    drain_ends: OnceLock<Instant>,
    /// Set once the drain is over, and sessions end at once.
    pub(super) drained: Latch,
    health: Arc<HealthState>,
}

impl StreamableHttp {
    /// Creates an endpoint that serves the [`Server`] that `choose` returns. If it returns `None`, the request is answered with
    /// 400.
    ///
    /// `choose` is called for each modern request, and once for each session. Most return a clone of one server; `choose` may also
    /// look at the request to serve another server to each customer. Then all requests of a client must be given the same server,
    /// because a server notifies only its own clients of changes.
    ///
    /// A misconfigured server answers no request; [`Server::check`] reports errors before requests are served.
    pub fn new<S: Into<Option<Server>>>(
        choose: impl Fn(&Parts) -> S + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Arc::new(Settings {
                choose: Arc::new(move |parts| choose(parts).into()),
                server: None,
                policy: Policy::default(),
                limits: Limits::default(),
                events: Some(any_event_store(MemoryEventStore::new())),
                sessions: None,
                bus: None,
                cluster: None,
                session_ids: None,
                json_only: false,
                stateless: false,
                liveness_path: None,
                readiness_path: None,
                strict_readiness: false,
                #[cfg(feature = "auth")]
                protection: None,
            }),
            state: State::new(Budget::new(Limits::default().http.max_bytes)),
        }
    }

    /// The limits of the endpoint: of bodies, sessions and streams. The limits within a session are those of the
    /// [server](Server::limits).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.state.budget.set_limit(limits.http.max_bytes);
        self.set().limits = limits;
        self
    }

    /// The hosts under which clients may reach the endpoint, in place of the loopback ones: `example.com` for any port,
    /// `example.com:8443`, or `*` for any host, if a proxy in front of the endpoint has checked it. Requests with another `Host`
    /// are refused with 403.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_hosts(hosts);
        self
    }

    /// The origins of the web pages that may use the endpoint, in place of those on this machine: `https://example.com`, or `*` for
    /// any origin. Requests with another `Origin` are refused with 403; those without `Origin` come from no web page.
    ///
    /// Browsers are told about the origins ([CORS](https://fetch.spec.whatwg.org/#http-cors-protocol)): the endpoint answers their
    /// preflight requests, and only pages of the origins that are listed here may read responses, with `Mcp-Session-Id` and
    /// `WWW-Authenticate`. `*` lists no origin: to let pages of any origin read responses, set the headers in front of the
    /// endpoint. Authentication in front of the endpoint must let `OPTIONS` through, since a preflight request has no token.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set().policy.allow_origins(origins);
        self
    }

    /// The store of the events of sessions, so that a broken stream can be resumed. By default events are stored in memory, within
    /// a bound.
    #[must_use]
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.set().events = Some(any_event_store(store));
        self
    }

    /// Stores no events: broken streams are not resumed.
    #[must_use]
    pub fn without_event_store(mut self) -> Self {
        self.set().events = None;
        self
    }

    /// The store of the sessions' state, so that other nodes can continue them, and this node after a restart. If the nodes also
    /// share an event store, the change of nodes is invisible to a client: its streams go on at any node, and end with an error if
    /// the node that writes them is gone. By default sessions are not stored, and end with the endpoint.
    #[must_use]
    pub fn session_store(mut self, store: impl SessionStore) -> Self {
        self.set().sessions = Some(any_session_store(store));
        self
    }

    /// The bus between the nodes.
    ///
    /// - Changes: if a list or a resource changes on one node, the clients of all nodes are notified, in every revision and over
    ///   every transport of the servers that are served here. See [`Server::bus`], which this calls for each of them.
    /// - Sessions, if nodes share a [session store](Self::session_store): that a session has ended or changed, or that its client
    ///   has cancelled a call on another node. Without a bus a node detects the first two by itself, but late: it checks at
    ///   intervals of a 64th of [`HttpLimits::session_idle`](crate::HttpLimits).
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

    /// Makes the endpoint one of several nodes, which share the contents of the cluster: sessions, the events of their streams,
    /// tasks, a bus, and keys. A client can then go on at any node. This is [`session_store`](Self::session_store),
    /// [`event_store`](Self::event_store) and [`bus`](Self::bus) in one; stores that are set afterwards take precedence.
    ///
    /// The server gets the keys for `requestState`, unless it has [keys of its own](Server::state_keys), and the store for its
    /// tasks, if they are [in memory](crate::tasks::Tasks::in_memory); and nonces of DPoP are made with the keys if they would be
    /// [random](crate::auth::dpop::NonceKeys::random) otherwise. A server of another name cannot use the same prefix and keys:
    /// [`serve`](Self::serve) fails, and requests to a mounted endpoint are answered with 500. The log warns if the server is [protected](Self::protect) on
    /// another node under another URL or for other audiences. All nodes also need the same tools and limits, which are not compared.
    ///
    /// Without keys the endpoint serves nothing, and the error of [`serve`](Self::serve) says how to make one.
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

    /// Answers each request with one message, as JSON, and opens no streams: for proxies that do not pass on streams. GET is
    /// answered with 405, and subscriptions are refused.
    ///
    /// Messages that handlers send before they return (progress, log messages) are dropped. Handlers cannot send requests to
    /// clients of sessions, which would need a stream: such clients are served as if they had no capabilities. Requests to modern
    /// clients are sent in results.
    #[must_use]
    pub fn json_only(mut self) -> Self {
        self.set().json_only = true;
        self
    }

    /// Serves legacy clients without sessions, like modern ones: each request by itself, in the revision that
    /// `MCP-Protocol-Version` names, on any node. `initialize` is answered without a session id, and GET and DELETE with 405.
    ///
    /// Only the revision of the client is known then: handlers cannot send requests to the client, and state that lasts beyond a
    /// request (subscriptions to resources, the level of log messages) has no effect. A client that disconnects cancels its
    /// request.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.set().stateless = true;
        self
    }

    /// Makes the ids of new sessions, in place of random ones: `make` is called with the `initialize` request that opens a session,
    /// so that a load balancer in front of the endpoint can route requests by the id. An id has 1 to 200 visible ASCII characters,
    /// is unique, and must be impossible to guess: if a session is not bound to a [`Principal`], knowing
    /// its id is enough to use it. An `initialize` request for which `make` returns an invalid id is answered with 500.
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

    /// Demands access tokens. Requests without a token that the resource accepts are refused, except preflight requests of
    /// browsers, and requests for the resource's metadata; requests with other hosts and origins are refused before.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn protect(mut self, resource: ProtectedResource) -> Self {
        let settings = self.set();
        Protection::Resource(resource).set(&mut settings.protection);
        settings.share_nonces();
        self
    }

    /// Demands bearer tokens of your own, such as API keys: `authenticate` finds the caller of the token of each request, and does
    /// its own caching. For access tokens of an authorization server, use [`protect`](Self::protect); an endpoint has one of the
    /// two.
    ///
    /// A request without a token, or with one that is refused, is answered with 401 and the challenge `Bearer`, without metadata:
    /// clients must be given their tokens. What needs scopes, as by [`Tool::scopes`](crate::Tool::scopes), is for callers that have
    /// them by [`Principal::scopes`]; for others the answer is 403, which names the missing scopes. Sessions, states of requests
    /// and tasks belong to the principal. Streams that clients listen to end after 10 minutes, and clients open them again, so that
    /// the token is checked again.
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
        let tokens = Protection::Tokens(TokenAuthentication::new(authenticate));
        tokens.set(&mut self.set().protection);
        self
    }

    /// A liveness check, as a service to mount: whether the process answers. It never fails.
    #[must_use]
    pub fn liveness(&self) -> HealthCheck {
        HealthCheck::of_liveness()
    }

    /// A readiness check, as a service to mount: whether requests should be routed here.
    ///
    /// | `status` in the body | HTTP | |
    /// |---|---|---|
    /// | `starting` | 503 | a store or the bus has not answered yet |
    /// | `ready` | 200 | |
    /// | `degraded` | 200 | the last request to a store or the bus has failed; requests are served as well as possible |
    /// | `draining` | 503 | since [`announce_close`](Self::announce_close) or [`close`](Self::close) |
    ///
    /// `stores` in the body says of each whether it is `up` or `down`. The store of [tasks](crate::tasks) is among them if it is
    /// that of a [cluster](Self::cluster), or was given to [`Tasks::new`](crate::tasks::Tasks::new) of the one server that is
    /// served.
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

    /// Is not [ready](Self::readiness) while a store or the bus fails, either. A shared store fails for all nodes at once: with
    /// this setting no client is served then, while by default sessions that a node knows go on.
    #[must_use]
    pub fn strict_readiness(mut self) -> Self {
        self.set().strict_readiness = true;
        self
    }

    /// The health check at a path.
    pub(super) fn health_check(&self, path: &str) -> Option<HealthCheck> {
        let is = |it: &Option<String>| it.as_deref() == Some(path);
        if is(&self.settings.readiness_path) {
            return Some(self.readiness());
        }
        is(&self.settings.liveness_path).then(|| self.liveness())
    }

    /// Is not [ready](Self::readiness) from now on, though requests are served as before: so that load balancers that check it route
    /// requests elsewhere before the endpoint is [closed](Self::close). Others, like nginx, need no announcement.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oxmcp::{Server, http::StreamableHttp};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let endpoint = StreamableHttp::from(Server::new("calculator", "1.0.0"));
    /// # let seconds = Duration::ZERO;
    /// endpoint.announce_close();
    /// // Longer than it takes for two checks to fail.
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

    /// Serves an address by itself, over HTTP/1 and HTTP/2, under any path: for programs without a web framework. The address is
    /// served from now on, in the background, until the returned [`ServerHandle`] is closed or dropped; so keep it, or await it. It also
    /// has the port that was chosen for port 0.
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
    /// If it cannot listen on the address, or a setting is wrong, or the one server that the endpoint was made [from](Self::from)
    /// is misconfigured.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> Result<ServerHandle> {
        self.settings.policy.check()?;
        #[cfg(feature = "auth")]
        self.settings
            .protection
            .as_ref()
            .map_or(Ok(()), Protection::check)?;
        self.settings
            .server
            .as_ref()
            .map_or(Ok(()), Server::check_built)?;
        if let Some(cluster) = &self.settings.cluster {
            cluster.check()?;
            cluster.compare(self.settings.facts(None)).await?;
        }
        let listener = listen(address).await?;
        if let Some(server) = &self.settings.server {
            #[cfg(feature = "auth")]
            Protection::warn_of_scopes(self.settings.protection.as_ref(), &server.features());
            if let Some(cluster) = &self.settings.cluster {
                cluster.join(server);
            }
            server.begin_serving();
        }
        let endpoint = self.clone();
        let close = |served| async move { endpoint.close_once(served).await };
        let serving = serve(listener, self.clone(), &self.settings.limits, close);
        serving.map_err(|error| Error::closed(error.to_string()).with_source(error))
    }

    /// Prepares the end of the process without losing a request. Requests are served as before, with `Connection: close` over HTTP/1,
    /// while streams that belong to no request end, and tasks that run here are handed over to other processes that have their
    /// store. Once nothing is in flight, or [`Limits::drain`] is over, sessions end, and requests that still run are cancelled and
    /// answered with an error. It may be called repeatedly and concurrently.
    ///
    /// Later requests are served, too, until the process ends: modern ones, those of sessions in a [store](Self::session_store), which
    /// are restored, and messages for other nodes. No request is refused because the endpoint closes: most clients would not repeat
    /// it.
    ///
    /// An endpoint that [chooses](Self::new) among servers does not know them all: in that case, await
    /// [`hand_over`](crate::tasks::TaskControl::hand_over) of each.
    ///
    /// If the endpoint is mounted in a framework, the framework owns the listener and the connections: see
    /// [`ServerHandle::close`], which does both for [`serve`](Self::serve). Let the framework stop listening first, and call this
    /// meanwhile: its own shutdown waits for streams that do not end by themselves.
    ///
    /// # Cancel safety
    /// If the future is dropped, closing goes on.
    pub async fn close(&self) {
        let served = CancellationToken::new();
        served.cancel();
        let endpoint = self.clone();
        // A runtime that shuts down aborts the task.
        let _ = spawn(async move { endpoint.close_once(served).await }).await;
    }

    /// Closes the endpoint once the connections are `served` that its requests come over.
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
            tracing::warn!("an endpoint was closed while something in it still ran");
        }
    }

    /// The deadline of a request that is in flight while the endpoint closes. Requests that come when the drain is over have as long
    /// again: the program that accepts connections still brings them.
    pub(super) fn cut_at(&self) -> Instant {
        let now = Instant::now();
        let drain_ends = self.state.drain_ends.get().filter(|it| **it > now);
        drain_ends.map_or_else(|| after(now, self.settings.limits.drain), |it| *it)
    }

    /// Shuts down the one server that the endpoint serves, unless the server has other clients, or this was done before. The
    /// shutdown goes on if the future is dropped.
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

    /// The part of the endpoint for clients that support only the transport of 2024-11-05.
    pub(super) fn sse(&self) -> LegacySse {
        let Settings {
            choose,
            policy,
            limits,
            ..
        } = &*self.settings;
        let sse = LegacySse::within(choose, policy, limits, &self.state.sse, &self.state.budget);
        #[cfg(feature = "auth")]
        let sse = sse.protected_by(self.settings.protection.clone());
        sse
    }

    /// Whether requests must bear a token.
    pub(super) fn is_protected(&self) -> bool {
        #[cfg(feature = "auth")]
        return self.settings.protection.is_some();
        #[cfg(not(feature = "auth"))]
        return false;
    }

    /// The id of a session that a request opens.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(super) fn new_session_id(&self, parts: &Parts) -> Result<Arc<str>, Refused> {
        let Some(make) = &self.settings.session_ids else {
            return new_id().map_err(|error| misconfigured(&error));
        };
        let id = catch_panic(|| Ok(make(parts))).map_err(|error| misconfigured(&error))?;
        if is_visible(&id) {
            return Ok(id.into());
        }
        Err(misconfigured(&Error::misuse(format!(
            "{id:?} is no id for a session, which has 1 to {MAX_SESSION_ID} visible ASCII characters"
        ))))
    }

    /// Whether a text has the form of a session id of this endpoint. Other texts are never looked up in a store.
    pub(super) fn is_session_id(&self, text: &str) -> bool {
        match &self.settings.session_ids {
            Some(_) => is_visible(text),
            None => is_id(text),
        }
    }

    /// Whether the endpoint has the transport of 2024-11-05, which needs a session and a stream.
    pub(super) fn has_sse(&self) -> bool {
        !self.settings.json_only && !self.settings.stateless
    }

    /// The server for a request outside a session.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(super) fn choose(&self, parts: &Parts) -> Result<Server, Refused> {
        // A panic must not end the connection, which may carry other requests.
        let chosen = catch_panic(|| Ok((self.settings.choose)(parts)));
        let Some(server) = chosen.map_err(|error| misconfigured(&error))? else {
            let why = Error::invalid_request("nothing is served here for this request");
            return Err(response::refuse(StatusCode::BAD_REQUEST, None, &why));
        };
        server
            .check_built()
            .map_err(|error| misconfigured(&error))?;
        server.note_endpoint();
        server.begin_serving();
        if let Some(cluster) = &self.settings.cluster {
            cluster.check().map_err(|error| misconfigured(&error))?;
            if cluster.must_compare() {
                let (cluster, facts) = (Arc::clone(cluster), self.settings.facts(Some(&server)));
                // Requests are refused once the comparison has failed.
                drop(spawn(async move { cluster.compare(facts).await }));
            }
        }
        Ok(server)
    }
}

impl Settings {
    /// Makes nonces with the keys of the cluster, if the endpoint is protected and in a cluster.
    #[cfg(feature = "auth")]
    fn share_nonces(&self) {
        let resource = self.protection.as_ref().and_then(Protection::resource);
        if let (Some(resource), Some(cluster)) = (resource, &self.cluster) {
            resource.share_nonces(cluster.keys());
        }
    }

    /// The settings that all nodes should have in common. `chosen` is the chosen server if the endpoint has several.
    fn facts(&self, chosen: Option<&Server>) -> Vec<SharedSetting> {
        let mut facts = Vec::new();
        if let Some(server) = self.server.as_ref().or(chosen) {
            facts.push((NAME, server.features().info.name.clone()));
        }
        #[cfg(feature = "auth")]
        if let Some(resource) = self.protection.as_ref().and_then(Protection::resource) {
            let audiences: Vec<_> = resource.audiences().collect();
            facts.push((
                "URL and audiences (a hash)",
                crate::store::hashed(&audiences.join("\n")),
            ));
        }
        facts
    }
}

impl State {
    /// Lets connections and streams end.
    pub(super) fn begin_close(&self, drain: Duration) {
        self.health.set_draining();
        self.drain_ends.get_or_init(|| after(Instant::now(), drain));
        self.closing.set();
    }

    /// A state without sessions, whose bytes count in this budget.
    pub(super) fn new(budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            budget,
            sessions: Sessions::default(),
            sse: Arc::default(),
            streams: TaskTracker::new(),
            open: TaskTracker::new(),
            undelivered: Undelivered::of_endpoint(),
            closing: Latch::default(),
            drain_ends: OnceLock::new(),
            drained: Latch::default(),
            health: Arc::default(),
        })
    }
}

/// The maximum length of a session id that the user's function makes.
const MAX_SESSION_ID: usize = 200;

/// Whether a text can be a session id according to the specification.
fn is_visible(id: &str) -> bool {
    (1..=MAX_SESSION_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A request whose head was validated.
pub(super) struct EndpointRequest {
    pub(super) endpoint: StreamableHttp,
    pub(super) server: Server,
    /// The session that the request names, if it belongs to the request's principal.
    pub(super) session: Option<Arc<Session>>,
    /// Whether the request names a session, even one that does not exist.
    pub(super) names_session: bool,
    pub(super) parts: Arc<Parts>,
}

impl EndpointRequest {
    /// Checks that the revision that the request names has sessions.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(super) fn check_sessions(&self) -> Result<(), Refused> {
        if self.endpoint.settings.stateless {
            return Err(validation::Refusal::no_sessions().into());
        }
        let features = self.server.features();
        Ok(validation::check_session(&features, &self.parts.headers)?)
    }
}

/// The refusal of all requests to a misconfigured endpoint. The log says what is wrong.
pub(super) fn misconfigured(error: &Error) -> Refused {
    tracing::error!(%error, "the server or its endpoint was put together wrongly");
    let why = Error::internal("the server was put together wrongly; its log says how");
    response::refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
}

impl From<Server> for StreamableHttp {
    /// An endpoint that serves one server.
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

//! A server at its end of one connection.

use std::{
    any::Any,
    fmt,
    sync::{Arc, OnceLock},
};

use crate::{
    Error, ErrorCode, Limits, Result,
    json::Text,
    jsonrpc::RawNotification,
    protocol::{Notification, RequestMeta, RequestParams, method},
    server::{
        Server, ServerSession,
        callers::Callers,
        changes::Due,
        features::Features,
        listen::Listens,
        logging::LogGate,
        methods,
        subscription::{Quota, Subscribed, Topics, release, retain_seen},
    },
    session::{
        Arrival, BoxFuture, Connection, ContextParts, Lane, RequestContext, Role, Side,
        middleware::{Next, Request, Response},
    },
};

/// A server at its end of one connection.
pub(crate) struct ServerPeer {
    pub(super) server: Server,
    pub(super) callers: Callers,
    /// What modern requests subscribe to.
    listens: Arc<Listens>,
    /// Whether there is a connection for each request.
    is_stateless: bool,
    /// Why a request was refused before any handler saw it.
    pub(super) refused: OnceLock<ErrorCode>,
    /// See [`undoubted`](Self::undoubted).
    doubt: Option<Error>,
    /// What most clients never need.
    rare: OnceLock<Box<Rare>>,
    /// How many resources are watched by all of these.
    quota: OnceLock<Arc<Quota>>,
    stamp: Arc<str>,
}

#[derive(Default)]
struct Rare {
    /// What the client hears of what is logged.
    log: LogGate,
    /// What the session that `initialize` opened subscribes to.
    subscribed: Subscribed,
    /// What that session is to be told.
    due: Due,
    /// What extensions have published for a legacy client, one after the other.
    published: OnceLock<Arc<Lane>>,
}

impl ServerPeer {
    pub(crate) fn new(server: Server) -> Arc<Self> {
        Self::with(server, Arc::default(), false, None)
    }

    /// For one modern request, which has a connection of its own. Nothing of it stays but its subscription, for as long as
    /// it is open. `doubt` is what is wrong with the request if its caller sees what it names.
    #[cfg(feature = "http-server")]
    pub(crate) fn stateless(server: Server, doubt: Option<Error>) -> Arc<Self> {
        let listens = Arc::clone(server.listens());
        Self::with(server, listens, true, doubt)
    }

    fn with(
        server: Server,
        listens: Arc<Listens>,
        is_stateless: bool,
        doubt: Option<Error>,
    ) -> Arc<Self> {
        let stamp = Arc::clone(&server.features().stamp);
        Arc::new(Self {
            server,
            callers: Callers::default(),
            listens,
            is_stateless,
            refused: OnceLock::new(),
            doubt,
            rare: OnceLock::new(),
            quota: OnceLock::new(),
            stamp,
        })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Whose requests arrive.
    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// What of these the session that `initialize` opened hears of: it was told of what can change, or has subscribed to
    /// what it sees, and has said that it is ready.
    pub(crate) fn awaited(&self, connection: &Arc<Connection>, changed: &Topics) -> Topics {
        let Some((peer, mut awaited)) = self.callers.awaits(changed) else {
            return Topics::default();
        };
        if let Some(rare) = self.rare.get() {
            awaited.uris = rare.subscribed.of(changed);
            retain_seen(&self.server.features(), &mut awaited.uris, || {
                rare.subscribed.context(connection, peer)
            });
        }
        awaited
    }

    /// Whether anybody at the other end wants to hear of a resource.
    pub(crate) fn watches(&self, uri: &str) -> bool {
        let rare = self.rare.get();
        rare.is_some_and(|it| it.subscribed.contains(uri)) || self.listens.watch(uri)
    }

    /// The resources that the session that `initialize` opened watches.
    #[cfg(feature = "http-server")]
    pub(crate) fn subscribed_uris(&self) -> Vec<String> {
        let rare = self.rare.get();
        rare.map_or_else(Vec::new, |it| it.subscribed.uris())
    }

    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    pub(super) fn subscribed(&self) -> &Subscribed {
        &self.rare().subscribed
    }

    pub(super) fn quota(&self) -> &Arc<Quota> {
        self.quota.get_or_init(Arc::default)
    }

    pub(super) fn due(&self) -> &Due {
        &self.rare().due
    }

    /// The subscriptions of modern requests.
    pub(crate) fn listens(&self) -> &Arc<Listens> {
        &self.listens
    }

    /// How many subscriptions there may be in the end where this one is.
    pub(super) fn max_subscriptions(&self, limits: &Limits) -> usize {
        if self.is_stateless {
            limits.max_http_streams
        } else {
            limits.max_subscriptions
        }
    }

    /// Why a request was refused before any handler saw it.
    #[cfg(feature = "http-server")]
    pub(crate) fn refused(&self) -> Option<ErrorCode> {
        self.refused.get().copied()
    }

    /// Refuses a request that the transport has a doubt about, once it is known that the caller sees what it names.
    ///
    /// # Errors
    /// The doubt.
    pub(super) fn undoubted(&self) -> Result<()> {
        let Some(doubt) = &self.doubt else {
            return Ok(());
        };
        // Middleware may stand between this and who answers.
        let _ = self.refused.set(doubt.code());
        Err(doubt.copy())
    }

    /// Where notifications of extensions for a legacy client wait until they are sent.
    pub(crate) fn outgoing_lane(&self, connection: &Connection) -> &Arc<Lane> {
        self.rare()
            .published
            .get_or_init(|| Lane::new(&connection.limits, &connection.runtime))
    }

    /// What the client hears of what is logged.
    pub(crate) fn log_gate(&self) -> &LogGate {
        &self.rare().log
    }

    /// The context of a notification.
    fn context_of(
        &self,
        connection: &Arc<Connection>,
        features: &Features,
        meta: Option<&RequestMeta<'_>>,
    ) -> RequestContext {
        let peer = self
            .callers
            .identify_sender(self.server.known_callers(), features, meta);
        let mut context = ContextParts::new(connection, None, peer);
        context.meta = meta.and_then(RequestMeta::raw).map(Into::into);
        RequestContext::new(Arc::new(context))
    }
}

impl Role for ServerPeer {
    fn side(&self) -> Side {
        Side::Server
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>) {
        self.begin(connection, arrival);
    }

    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
    ) {
        if notification.method == "notifications/initialized" && self.callers.initialized() {
            self.server.watch(connection.trunk());
        }
        let features = self.server.features();
        let bytes = notification.bytes();
        let RawNotification { method, params } = notification;
        if method == method::RootsListChanged::NAME
            && let Some(roots) = self.callers.roots()
        {
            roots.changed(connection, features.on_roots_changed.as_ref());
        }
        let cx = self.context_of(connection, &features, params.map(|it| &it.meta));
        let params = params.map(|it| it.whole);
        let Some(next) = features.incoming.next().cloned() else {
            let params = params.unwrap_or(Text::EMPTY);
            if let Some(job) = features.extensions.heard(cx, &method, params) {
                connection.lane().push(job, bytes);
            }
            return;
        };
        let request = Request::incoming(cx, &method, params);
        connection.lane().push(Box::pin(next.pass(request)), bytes);
    }

    fn has_batches(&self) -> bool {
        self.callers
            .legacy()
            .is_some_and(|peer| peer.revision.has_batches())
    }

    fn stamp(&self) -> Option<&str> {
        Some(&self.stamp)
    }

    fn handle(&self, request: Request) -> BoxFuture<Result<Response>> {
        let Some(cx) = request.context().cloned() else {
            return Box::pin(async { Err(Error::misuse("only what came in can be handled")) });
        };
        let features = self.server.features();
        if request.is_notification() {
            // What it changes was changed when it arrived; extensions alone have handlers for it.
            let params = request.raw_params().map_or(Text::EMPTY, Text::from);
            let job = features.extensions.heard(cx, request.method(), params);
            return Box::pin(async move {
                if let Some(job) = job {
                    job.await;
                }
                Ok(Response::empty())
            });
        }
        let revision = cx.revision();
        let stamp = Arc::clone(&self.stamp);
        let params = request
            .raw_params()
            .map(|raw| RequestParams::of(Text::from(raw)));
        let params = params.unwrap_or_default();
        let served = params
            .check()
            .map_err(Error::from)
            .and_then(|()| methods::serve(self, &features, cx, request.method(), &params));
        Box::pin(async move {
            let body = match served? {
                methods::Served::Now(body) => body,
                methods::Served::Later(work) => work.future.await?,
            };
            body.into_json(revision, Some(&stamp))
                .map(Response::from_text)
        })
    }

    fn outgoing(&self) -> Option<Next> {
        self.server.features().outgoing.next().cloned()
    }

    fn closed(&self, connection: &Arc<Connection>) {
        self.server.forget(connection);
        let ended = self.subscribed().close();
        if let Some(session) = ServerSession::of(connection) {
            release(&session, ended);
        }
    }
}

impl fmt::Debug for ServerPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerPeer")
            .field("callers", &self.callers)
            .finish_non_exhaustive()
    }
}

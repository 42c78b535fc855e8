use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};

use crate::{
    Error, Limits, Result, Revision,
    protocol::{CacheHint, Icon, Implementation},
    server::{
        callers::KnownCallers,
        changes::Changes,
        features::{Features, PAGE_SIZE},
        listen::Listens,
        peer::ServerPeer,
        registry::Feature,
        session::ServerSession,
        sessions::WeakSession,
        subscription::Topics,
    },
    session::{Connection, Origin, Pace, drive, middleware::MiddlewareLayer},
    transport::Transport,
};

/// An MCP server: what it offers, and who is connected.
///
/// It is a cheap handle: clones are the same server. It serves any number of sessions at once, in every revision, and
/// what is added or removed while they last reaches all of them. Its capabilities are those of what was added; nothing is
/// advertised by default.
///
/// ```
/// use oxmcp::{JsonSchema, Server, Tool};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Pair { a: f64, b: f64 }
///
/// let server = Server::new("calculator", "1.0.0")
///     .tool(Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b }));
/// # async fn run(server: Server) -> oxmcp::Result<()> {
/// server.run(oxmcp::stdio()).await
/// # }
/// # let _ = run(server);
/// ```
#[derive(Clone)]
pub struct Server(pub(super) Arc<Core>);

/// What the clones of a server share.
pub(super) struct Core {
    features: ArcSwap<Features>,
    /// Taken while a new state of the features is made. It holds the first thing that was wrong with them.
    problem: Mutex<Option<Error>>,
    pub(super) sessions: Mutex<Vec<WeakSession>>,
    pub(super) changes: Arc<Changes>,
    /// How quick the middleware is, where there is any.
    pace: Arc<Pace>,
    /// The modern clients that made requests of late.
    pub(super) known: KnownCallers,
    /// The subscriptions of requests that have no connection to stay on.
    pub(super) listens: Arc<Listens>,
}

impl Server {
    /// A server that offers nothing yet.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self(Arc::new(Core {
            features: ArcSwap::from_pointee(Features::new(Implementation::new(name, version))),
            problem: Mutex::default(),
            sessions: Mutex::default(),
            changes: Arc::default(),
            pace: Arc::new(Pace::new()),
            known: KnownCallers::default(),
            listens: Arc::default(),
        }))
    }

    /// Tells clients how to use the server; many hand it to the model.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.change(|features| features.instructions = Some(instructions.into()));
        self
    }

    /// A name for people to read.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|features| features.info.title = Some(title.into()));
        self
    }

    /// What the server is, for people to read.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.change(|features| features.info.description = Some(description.into()));
        self
    }

    /// Where people can read about the server.
    #[must_use]
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.change(|features| features.info.website_url = Some(url.into()));
        self
    }

    /// Adds an icon of the server.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.change(|features| features.info.icons.push(icon));
        self
    }

    /// How many entries a page of a list holds. 0 stands for the default, 1000.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.change(|features| {
            features.page_size = if entries == 0 { PAGE_SIZE } else { entries };
        });
        self
    }

    /// Which revisions are served. By default all are.
    ///
    /// Sessions that are open go on. Without a legacy revision, `initialize` is refused with the names of those that are
    /// served.
    ///
    /// ```
    /// use oxmcp::{Revision, Server};
    ///
    /// let modern_only = Server::new("calculator", "1.0.0").revisions([Revision::LATEST]);
    /// # let _ = modern_only;
    /// ```
    #[must_use]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_unstable_by(|a, b| b.cmp(a));
        revisions.dedup();
        if revisions.is_empty() {
            let error = Error::misuse("a server needs at least one revision to serve");
            self.note(Err(error));
        }
        self.change(|features| features.revisions = revisions);
        self
    }

    /// What clients are told of the answer to `server/discover`: how long it stays fresh, and who may share it.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_discovery(self, hint: CacheHint) -> Self {
        self.change(|features| features.discover_cache = hint);
        self
    }

    /// The bounds of the connections that are made from now on.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.change(|features| features.limits = Arc::new(limits));
        self
    }

    /// Pings legacy clients this often, and closes the session of one that does not answer. By default, and with zero,
    /// nobody is pinged.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        let interval = (!interval.is_zero()).then_some(interval);
        self.change(|features| features.keep_alive = interval);
        self
    }

    /// Adds a middleware for what arrives. See [`middleware`](crate::middleware).
    #[must_use]
    pub fn layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.incoming.push(layer));
        self
    }

    /// Adds a middleware for what is sent. See [`middleware`](crate::middleware).
    #[must_use]
    pub fn outgoing_layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.outgoing.push(layer));
        self
    }

    /// Connects to a client and serves it in the background. Must be called within a tokio runtime.
    ///
    /// ```
    /// use oxmcp::{Client, Server, in_memory};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oxmcp::Result<()> {
    /// let (near, far) = in_memory();
    /// let session = Server::new("calculator", "1.0.0").connect(far).await?;
    /// let client = Client::new("my-app", "1.0.0").connect(near).await?;
    /// assert_eq!(session.server().sessions().count(), 1);
    /// client.close().await?;
    /// session.wait().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where the server was put together wrongly, or the transport does not connect.
    ///
    /// # Cancel safety
    /// When the future is dropped, nothing stays behind.
    pub async fn connect(&self, transport: impl Transport) -> Result<ServerSession> {
        self.connect_to(transport, Origin::default()).await
    }

    /// The same where more is known of the client.
    pub(crate) async fn connect_to(
        &self,
        mut transport: impl Transport,
        origin: Origin,
    ) -> Result<ServerSession> {
        self.check()?;
        let features = self.features();
        let (read, write) = transport.connect(&features.limits).await?;
        let peer = ServerPeer::new(self.clone());
        let limits = features.limits.clone();
        let connection = Connection::of(Arc::clone(&peer) as _, limits, origin);
        let session = ServerSession::new(Arc::clone(&connection), peer);
        self.remember(&session);
        tokio::spawn(drive(connection, read, write));
        Ok(session)
    }

    /// Whether it was put together rightly.
    ///
    /// # Errors
    /// Says what was wrong first.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.lock_problem() {
            Some(problem) => Err(Error::misuse(problem.message().to_owned())),
            None => Ok(()),
        }
    }

    /// Connects to a client and serves it until it disconnects. What runs then may finish, and every answer is written.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect), and where the connection breaks.
    ///
    /// # Cancel safety
    /// When the future is dropped, the session is closed in the background.
    pub async fn run(&self, transport: impl Transport) -> Result<()> {
        let session = self.connect(transport).await?;
        let close = CloseOnDrop(&session);
        let result = session.wait().await;
        drop(close);
        result
    }

    pub(crate) fn features(&self) -> Guard<Arc<Features>> {
        self.0.features.load()
    }

    pub(crate) fn pace(&self) -> &Arc<Pace> {
        &self.0.pace
    }

    /// Adds features, each in place of one with the same id, and tells connected clients.
    pub(super) fn offer<T: Feature>(&self, offered: Vec<Arc<T>>) {
        let changed = !offered.is_empty();
        self.change(|features| {
            let registry = T::registry_mut(features);
            registry.declare();
            for feature in offered {
                registry.insert(feature);
            }
        });
        if changed {
            self.changed(T::changed());
        }
    }

    /// Removes features by their ids, and tells connected clients if there was any.
    pub(super) fn withdraw<T: Feature>(&self, ids: impl IntoIterator<Item = impl AsRef<str>>) {
        let ids: Vec<_> = ids.into_iter().collect();
        let mut removed = false;
        self.change(|features| {
            let registry = T::registry_mut(features);
            for id in &ids {
                removed |= registry.remove(id.as_ref());
            }
        });
        if removed {
            self.changed(T::changed());
        }
    }

    /// Tells clients what has changed, as far as they want to hear of it.
    pub(super) fn changed(&self, what: impl Into<Topics>) {
        self.0.changes.changed(self, what.into());
    }

    /// Notes what was wrong with the making of the server, for whoever connects it. The first thing counts.
    pub(super) fn note(&self, done: Result<()>) {
        if let Err(error) = done {
            self.lock_problem().get_or_insert(error);
        }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self.lock_problem();
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        features.refresh();
        self.0.features.store(Arc::new(features));
    }

    fn lock_problem(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.0
            .problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

struct CloseOnDrop<'a>(&'a ServerSession);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.connection().begin_close();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let features = self.features();
        f.debug_struct("Server")
            .field("info", &features.info)
            .field("tools", &features.tools.len())
            .finish_non_exhaustive()
    }
}

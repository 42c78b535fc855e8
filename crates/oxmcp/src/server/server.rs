//! MCP server: a handle to its features, its settings and its sessions.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use oxmcp_protocol::{CacheHint, Icon, Implementation, Revision};

use crate::{
    error::{Error, Result},
    extension::Extension,
    limits::Limits,
    server::{
        dispatch::ClientCache,
        features::{Features, PAGE_SIZE, Registered},
        subscriptions::{Changes, Listens},
    },
    session::{
        connection::{Connection, Side},
        driver::keep_alive::keep_alive,
        inbound::inline_execution::InlineExecution,
        middleware::MiddlewareLayer,
        task::spawn,
    },
    sync::Mutex,
};

/// An MCP server: what it offers, and its sessions.
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
pub struct Server(Arc<Inner>);

/// What the clones of a server share.
struct Inner {
    features: ArcSwap<Features>,
    /// Held while a new state of the features is made. It has the first mistake in building the server.
    mistake: Mutex<Option<Error>>,
    /// The connections of the open sessions.
    connections: Mutex<Vec<Weak<Connection>>>,
    changes: Arc<Changes>,
    /// Whether the middleware runs inline, where there is any.
    inline: Arc<InlineExecution>,
    /// The modern clients that made requests lately.
    clients: ClientCache,
    /// The subscriptions of requests that have a connection each.
    listens: Arc<Listens>,
}

impl Server {
    /// A server that offers nothing yet.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            features: ArcSwap::from_pointee(Features::new(Implementation::new(name, version))),
            mistake: Mutex::default(),
            connections: Mutex::default(),
            changes: Arc::default(),
            inline: Arc::new(InlineExecution::new()),
            clients: ClientCache::default(),
            listens: Arc::default(),
        }))
    }

    /// Tells clients how to use the server; many hand it to the model.
    #[must_use]
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.with(|features| features.instructions = Some(instructions.into()))
    }

    /// A name for people to read.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with(|features| features.info.title = Some(title.into()))
    }

    /// What the server is, for people to read.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.with(|features| features.info.description = Some(description.into()))
    }

    /// Where people can read about the server.
    #[must_use]
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.with(|features| features.info.website_url = Some(url.into()))
    }

    /// Adds an icon of the server.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        self.with(|features| features.info.icons.push(icon))
    }

    /// How many entries a page of a list holds. 0 stands for the default, 1000.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.with(|features| {
            features.page_size = if entries == 0 { PAGE_SIZE } else { entries };
        })
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
        self.with(|features| features.revisions = revisions)
    }

    /// Sets the cache hint of the answer to `server/discover`: how long it stays fresh, and whether it may be shared.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_discovery(self, hint: CacheHint) -> Self {
        self.with(|features| features.discover_cache = hint)
    }

    /// The bounds of the connections that are made from now on.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|features| features.limits = Arc::new(limits))
    }

    /// Pings legacy clients this often, and closes the session of one that does not answer. By default, and with zero,
    /// no client is pinged.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        let interval = (!interval.is_zero()).then_some(interval);
        self.with(|features| features.keep_alive = interval)
    }

    /// Adds a middleware for what arrives. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn layer(self, layer: impl MiddlewareLayer) -> Self {
        self.with(|features| features.incoming.push(layer))
    }

    /// Adds a middleware for what is sent. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn outgoing_layer(self, layer: impl MiddlewareLayer) -> Self {
        self.with(|features| features.outgoing.push(layer))
    }

    /// Adds an extension: the server declares it, serves its methods and takes its notifications. What is wrong with it is
    /// reported when the server connects. See [`extension`](crate::extension).
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        let mut added = Ok(());
        self.change(|features| added = features.extensions.add(extension, Side::Server));
        self.note(added);
        self
    }

    /// Refuses a server that was built wrongly.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.0.mistake.lock() {
            Some(mistake) => Err(Error::misuse(mistake.message().to_owned())),
            None => Ok(()),
        }
    }

    pub(crate) fn features(&self) -> Guard<Arc<Features>> {
        self.0.features.load()
    }

    pub(crate) fn inline_execution(&self) -> &Arc<InlineExecution> {
        &self.0.inline
    }

    /// The modern clients that made requests lately.
    pub(super) fn clients(&self) -> &ClientCache {
        &self.0.clients
    }

    /// The subscriptions of requests that have a connection each.
    pub(super) fn listens(&self) -> &Arc<Listens> {
        &self.0.listens
    }

    pub(super) fn changes(&self) -> &Arc<Changes> {
        &self.0.changes
    }

    /// Adds features, each in place of one with the same id, and notifies connected clients.
    pub(super) fn add<T: Registered>(&self, added: Vec<Arc<T>>) {
        let changed = !added.is_empty();
        self.change(|features| {
            let registry = T::registry_mut(features);
            registry.declare();
            for feature in added {
                registry.insert(feature);
            }
        });
        if changed {
            self.changed(T::list_changed());
        }
    }

    /// Removes features by their ids, and notifies connected clients if there was any.
    pub(super) fn remove<T: Registered>(&self, ids: impl IntoIterator<Item = impl AsRef<str>>) {
        // The iterator is the caller's code, which must not run under the lock.
        let ids: Vec<_> = ids.into_iter().collect();
        let mut removed = false;
        self.change(|features| {
            let registry = T::registry_mut(features);
            for id in &ids {
                removed |= registry.remove(id.as_ref());
            }
        });
        if removed {
            self.changed(T::list_changed());
        }
    }

    /// Notes a mistake in building the server, which is reported when it connects. The first one counts.
    pub(super) fn note(&self, done: Result<()>) {
        if let Err(error) = done {
            self.0.mistake.lock().get_or_insert(error);
        }
    }

    /// The same server with a change, for the builder methods.
    pub(super) fn with(self, change: impl FnOnce(&mut Features)) -> Self {
        self.change(change);
        self
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self.0.mistake.lock();
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        features.refresh();
        self.0.features.store(Arc::new(features));
    }

    /// The connections of the sessions that are open now.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = self.0.connections.lock().clone();
        let open = connections.iter().filter_map(Weak::upgrade);
        open.filter(|connection| !connection.is_ended()).collect()
    }

    /// Adds the connection of a session, which is notified of changes from now on.
    pub(crate) fn add_connection(&self, connection: &Arc<Connection>) {
        self.0.connections.lock().push(Arc::downgrade(connection));
        self.0.changes.connected();
    }

    /// Removes a connection that has ended, and all others that are gone.
    pub(super) fn remove_connection(&self, ended: &Arc<Connection>) {
        let ended = Arc::downgrade(ended);
        self.0
            .connections
            .lock()
            .retain(|connection| connection.strong_count() > 0 && !connection.ptr_eq(&ended));
    }

    /// Pings the client of a session that was just opened, where that is wanted.
    pub(super) fn keep_connection_alive(&self, connection: &Arc<Connection>) {
        if let Some(interval) = self.features().keep_alive {
            spawn(keep_alive(Arc::clone(connection), interval));
        }
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

//! The handle of a client: its builder methods, and the state that all its sessions share.

use std::{
    sync::{Arc, MutexGuard, Weak, atomic::AtomicBool},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use oxmcp_protocol::{Icon, Implementation, Revision};
use tokio::runtime::Handle;

use crate::{
    client::{
        cache::{options::CacheOptions, response_cache::Cache},
        connect::known_servers::KnownServers,
        features::{Features, LONGEST_WAIT},
    },
    debug::opaque_debug,
    error::{Error, Result},
    extension::Extension,
    limits::Limits,
    session::{
        connection::{Connection, Side},
        middleware::MiddlewareLayer,
    },
    sync::Mutex,
};

/// An MCP client: its name and settings, its handlers, and its sessions.
///
/// It is cheap to clone, and clones are the same client. It connects to any number of servers at once, and negotiates the
/// revision with each.
///
/// ```
/// use oxmcp::{Client, Command};
/// use serde_json::json;
///
/// # async fn run() -> oxmcp::Result<()> {
/// let session = Client::new("my-app", "1.0.0").connect(Command::new("calculator")).await?;
/// let sum: f64 = session.call_tool("add", json!({"a": 1, "b": 2})).structured().await?;
/// assert_eq!(sum, 3.0);
/// session.close().await
/// # }
/// # let _ = run();
/// ```
#[derive(Clone)]
pub struct Client(Arc<Core>);

struct Core {
    features: ArcSwap<Features>,
    /// The host's name of the one server that this client is for, if it is for one.
    label: Option<Arc<str>>,
    /// The first problem that a builder method found. The lock is also held while the features are changed.
    problem: Mutex<Option<Error>>,
    /// Whether a task is about to notify servers that the roots have changed.
    root_change_pending: AtomicBool,
    /// The runtime of the newest connection: roots may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
    connections: Mutex<Vec<Weak<Connection>>>,
    known_servers: KnownServers,
    cache: Cache,
}

impl Client {
    /// Creates a client with this name and version. It has no handlers yet, and declares no capabilities.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let features = Features::new(Implementation::new(name, version));
        Self::of(Arc::new(features), None, Cache::default())
    }

    fn of(features: Arc<Features>, label: Option<Arc<str>>, cache: Cache) -> Self {
        Self(Arc::new(Core {
            features: ArcSwap::new(features),
            label,
            problem: Mutex::default(),
            root_change_pending: AtomicBool::new(false),
            runtime: Mutex::default(),
            connections: Mutex::default(),
            known_servers: KnownServers::default(),
            cache,
        }))
    }

    /// Creates another client with the same settings, handlers, extensions and roots, which is for one server. `label` is the
    /// host's name of that server: handlers read it with [`RequestContext::server_label`](crate::RequestContext::server_label),
    /// so that one handler can answer all servers and tell the user which of them is asking. Later changes of one client do not
    /// affect the other, and each has its own sessions and cache.
    ///
    /// ```
    /// use oxmcp::{Client, Command, RequestContext, protocol::{ElicitAction, ElicitFormParams}};
    ///
    /// # async fn run() -> oxmcp::Result<()> {
    /// let client = Client::new("my-app", "1.0.0").on_elicit(
    ///     |form: ElicitFormParams, cx: RequestContext| async move {
    ///         println!("{} asks: {}", cx.server_label().unwrap_or_default(), form.message);
    ///         ElicitAction::Decline
    ///     },
    /// );
    /// let files = client.for_server("files").connect(Command::new("files-server")).await?;
    /// let mail = client.for_server("mail").connect(Command::new("mail-server")).await?;
    /// # let _ = (files, mail);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn for_server(&self, label: impl Into<String>) -> Self {
        let features = self.0.features.load_full();
        let cache = self.0.cache.with_same_options();
        let client = Self::of(features, Some(label.into().into()), cache);
        if let Some(problem) = &*self.0.problem.lock() {
            client.report(Error::misuse(problem.message().to_owned()));
        }
        client
    }

    /// Returns the host's name of the server that the client is for, as [`for_server`](Self::for_server) was given it. `None`
    /// for other clients.
    #[must_use]
    pub fn server_label(&self) -> Option<&str> {
        self.0.label.as_deref()
    }

    /// Sets the title: the display name of the client.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|features| features.info.title = Some(title.into()));
        self
    }

    /// Sets the description of the client, for people to read.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.change(|features| features.info.description = Some(description.into()));
        self
    }

    /// Sets the URL of a website about the client.
    #[must_use]
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.change(|features| features.info.website_url = Some(url.into()));
        self
    }

    /// Adds an icon of the client.
    #[must_use]
    pub fn icon(self, icon: Icon) -> Self {
        if let Err(problem) = icon.check() {
            self.report(Error::misuse(problem));
        }
        self.change(|features| features.info.icons.push(icon));
        self
    }

    /// Sets the revisions that the client may speak. Default: all. A single revision is pinned: nothing is negotiated.
    ///
    /// ```
    /// use oxmcp::{Client, Revision};
    ///
    /// let pinned = Client::new("my-app", "1.0.0").revisions([Revision::V2025_06_18]);
    /// # let _ = pinned;
    /// ```
    #[must_use]
    pub fn revisions(self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        revisions.sort_unstable();
        revisions.dedup();
        self.change(|features| features.revisions = revisions);
        self
    }

    /// Rejects messages that deviate from the specification. By default a client tolerates deviations whose meaning is clear,
    /// and logs a warning: see the guide on tolerated deviations. Use this in tests, and in gateways that must not hide
    /// mistakes.
    ///
    /// ```
    /// let client = oxmcp::Client::new("my-app", "1.0.0").strict();
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn strict(self) -> Self {
        self.change(|features| features.is_strict = true);
        self
    }

    /// Sets the limits of later connections.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.change(|features| features.limits = Arc::new(limits));
        self
    }

    /// Sets the default timeout of calls: the longest time that they wait for a response, or for progress. Default: 60 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.timeout = timeout.min(LONGEST_WAIT));
        self
    }

    /// Sets how long the client waits for a response to `server/discover` before it also sends `initialize`, as to a server
    /// that does not know the method. Default: 5 s. A response that arrives later still counts.
    #[must_use]
    pub fn probe_timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.probe_timeout = timeout);
        self
    }

    /// Pings legacy servers at this interval, and closes the session of a server that does not respond. By default, and
    /// with zero, no server is pinged.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        let interval = (!interval.is_zero()).then_some(interval);
        self.change(|features| features.keep_alive = interval);
        self
    }

    /// Sets the number of consecutive unanswered pings after which the session is closed. Default: 1. It has an effect only
    /// with [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub fn keep_alive_threshold(self, unanswered: u32) -> Self {
        self.change(|features| features.keep_alive_threshold = unanswered);
        self
    }

    /// Sets whether [`Call::structured`](crate::Call::structured) validates results against the output schema that the server
    /// listed for the tool. Default: `true`.
    /// See [output schemas](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema).
    #[must_use]
    pub fn validate_results(self, validate: bool) -> Self {
        self.change(|features| features.validate_results = validate);
        self
    }

    /// Adds a middleware for incoming requests and notifications. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.incoming.push(layer));
        self
    }

    /// Adds a middleware for outgoing requests and notifications. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn outgoing_layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.outgoing.push(layer));
        self
    }

    /// Adds an extension: the client declares it to servers and handles its notifications, and from legacy servers also its
    /// requests. Its middleware is added inside the existing middleware. If the extension is invalid, it is not added, and
    /// connecting returns the error. See [`extension`](crate::extension).
    #[must_use]
    pub fn extension(self, extension: Extension) -> Self {
        let mut added = Ok(());
        self.change(|features| {
            let extension = features.extensions.add(extension, Side::Client);
            added =
                extension.map(|it| it.push_layers(&mut features.incoming, &mut features.outgoing));
        });
        if let Err(problem) = added {
            self.report(problem);
        }
        self
    }

    /// Returns whether the client has the extension of this identifier.
    #[must_use]
    pub fn has_extension(&self, id: &str) -> bool {
        self.features().extensions.has(id)
    }

    /// Sets the bounds of the cache for the responses of servers.
    #[must_use]
    pub fn cache(self, options: CacheOptions) -> Self {
        self.response_cache().configure(options);
        self
    }

    /// Switches the cache off: every call makes a request.
    #[must_use]
    pub fn without_cache(self) -> Self {
        self.response_cache().switch_off();
        self
    }

    pub(crate) fn features(&self) -> Guard<Arc<Features>> {
        self.0.features.load()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self.0.problem.lock();
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        self.0.features.store(Arc::new(features));
    }

    /// Checks that a connection may be made.
    ///
    /// # Errors
    /// The first problem in the settings, handlers and extensions.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.0.problem.lock() {
            Some(problem) => Err(Error::misuse(problem.message().to_owned())),
            None => self.features().check(),
        }
    }

    /// Stores the problem of a builder's argument, for [`check`](Self::check) to return.
    pub(crate) fn report(&self, problem: Error) {
        self.0.problem.lock().get_or_insert(problem);
    }

    pub(crate) fn known_servers(&self) -> &KnownServers {
        &self.0.known_servers
    }

    pub(crate) fn response_cache(&self) -> &Cache {
        &self.0.cache
    }

    pub(crate) fn root_change_pending(&self) -> &AtomicBool {
        &self.0.root_change_pending
    }

    /// Records the current runtime as the newest.
    pub(crate) fn note_runtime(&self) {
        *self.0.runtime.lock() = Handle::try_current().ok();
    }

    /// The current runtime, or else the newest runtime within which the client has connected.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        let current = Handle::try_current().ok();
        current.or_else(|| self.0.runtime.lock().clone())
    }

    /// The connections whose sessions were opened, and that have not ended.
    pub(crate) fn connections(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.0.connections.lock()
    }
}

opaque_debug!(Client, |it| { features: **it.features() });

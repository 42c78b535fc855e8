//! The handle of a client: its builder, and what all its sessions share.

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
/// It is a cheap handle: clones are the same client. It talks to any number of servers at once, and finds out by itself
/// which revision each of them speaks.
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
    /// The first thing that is wrong with the features; locked while they are changed.
    problem: Mutex<Option<Error>>,
    /// Whether a task is about to tell servers that the roots have changed.
    root_change_pending: AtomicBool,
    /// The runtime of the newest connection: roots may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
    connections: Mutex<Vec<Weak<Connection>>>,
    known_servers: KnownServers,
    cache: Cache,
}

impl Client {
    /// A client that can do nothing for servers yet.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let features = Features::new(Implementation::new(name, version));
        Self(Arc::new(Core {
            features: ArcSwap::from_pointee(features),
            problem: Mutex::default(),
            root_change_pending: AtomicBool::new(false),
            runtime: Mutex::default(),
            connections: Mutex::default(),
            known_servers: KnownServers::default(),
            cache: Cache::default(),
        }))
    }

    /// A name for people to read.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|features| features.info.title = Some(title.into()));
        self
    }

    /// A description of the client, for people to read.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.change(|features| features.info.description = Some(description.into()));
        self
    }

    /// Where people can read about the client.
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

    /// The revisions that may be spoken. By default all may; a single one is pinned, and nothing needs to be negotiated.
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

    /// The bounds of the connections that are made from now on.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.change(|features| features.limits = Arc::new(limits));
        self
    }

    /// The default time-out of calls: how long they wait for an answer, or for progress. Default: 60 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.timeout = timeout.min(LONGEST_WAIT));
        self
    }

    /// How long a server may take to answer `server/discover` before it is taken for one that does not know it.
    /// Default: 5 s. An answer that comes later still counts. Over HTTP it does not apply: there a server that does not answer
    /// within the [`timeout`](Self::timeout) has failed, whatever it speaks.
    #[must_use]
    pub fn probe_timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.probe_timeout = timeout);
        self
    }

    /// Pings legacy servers this often, and closes the session of one that does not answer. By default, and with zero, no
    /// server is pinged.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        let interval = (!interval.is_zero()).then_some(interval);
        self.change(|features| features.keep_alive = interval);
        self
    }

    /// How many pings in a row may go unanswered before the session is closed. Default: 1. It means something only with
    /// [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub fn keep_alive_threshold(self, unanswered: u32) -> Self {
        self.change(|features| features.keep_alive_threshold = unanswered);
        self
    }

    /// Whether [`Call::structured`](crate::Call::structured) holds results against the output schema with which the server has
    /// listed the tool. Default: `true`.
    /// See [output schemas](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema).
    #[must_use]
    pub fn validate_results(self, validate: bool) -> Self {
        self.change(|features| features.validate_results = validate);
        self
    }

    /// Adds a middleware for what arrives. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.incoming.push(layer));
        self
    }

    /// Adds a middleware for what is sent. See [`middleware`](crate::session::middleware).
    #[must_use]
    pub fn outgoing_layer(self, layer: impl MiddlewareLayer) -> Self {
        self.change(|features| features.outgoing.push(layer));
        self
    }

    /// Adds an extension: the client declares it to servers, and takes its notifications; from legacy servers its requests,
    /// too. Its middleware comes inside that which is there. What is wrong with it is reported when the client connects, and nothing
    /// of it is added then. See [`extension`](crate::extension).
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

    /// The bounds of the cache for the answers of servers.
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

    /// Whether a connection may be made.
    ///
    /// # Errors
    /// Says what is wrong with what the client was given.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.0.problem.lock() {
            Some(problem) => Err(Error::misuse(problem.message().to_owned())),
            None => self.features().check(),
        }
    }

    /// Keeps what is wrong with a builder's argument, for [`check`](Self::check) to return.
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

    /// Keeps the current runtime as the newest.
    pub(crate) fn note_runtime(&self) {
        *self.0.runtime.lock() = Handle::try_current().ok();
    }

    /// The current runtime, or the newest that the client has connected within.
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

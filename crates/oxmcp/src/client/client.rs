use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};

use crate::{
    client::{
        cache::shared::Cache,
        connect::{known_servers::Verdicts, negotiate},
        features::{Features, LONGEST_WAIT},
        for_calls::ForCalls,
        handlers::roots::RootChanges,
        session::{ClientSession, WeakSession},
    },
    error::{Error, Result},
    limits::Limits,
    protocol::{Icon, Implementation, Revision},
    session::{Connection, middleware::MiddlewareLayer},
    transport::Transport,
};

/// An MCP client: who it is, what it can do for servers, and which ones it is connected to.
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
    for_calls: ForCalls,
    /// Taken while a new state of the features is made. It holds the first thing that was wrong with them.
    problem: Mutex<Option<Error>>,
    root_changes: Arc<RootChanges>,
    sessions: Mutex<Vec<WeakSession>>,
    verdicts: Verdicts,
    cache: Cache,
}

impl Client {
    /// A client that can do nothing for servers yet.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let features = Features::new(Implementation::new(name, version));
        Self(Arc::new(Core {
            for_calls: ForCalls::new(&features),
            features: ArcSwap::from_pointee(features),
            problem: Mutex::default(),
            root_changes: Arc::default(),
            sessions: Mutex::default(),
            verdicts: Verdicts::default(),
            cache: Cache::default(),
        }))
    }

    /// A name for people to read.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|features| features.info.title = Some(title.into()));
        self
    }

    /// What the client is, for people to read.
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
        self.change(|features| features.info.icons.push(icon));
        self
    }

    /// Which revisions may be spoken. By default all may; one alone is thereby pinned, and no time is spent on finding
    /// out.
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

    /// How long a call waits for an answer, or for progress, unless it is told otherwise. Default: 60 s.
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

    /// Pings legacy servers this often, and closes the session of one that does not answer. By default, and with zero,
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

    /// Connects to a server and agrees with it on a revision. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the server cannot be reached or started, does not answer, or speaks no revision that this client may
    /// speak. The error says what the server said, on its standard error too.
    ///
    /// # Cancel safety
    /// When the future is dropped, the connection is closed in the background.
    pub async fn connect(&self, transport: impl Transport) -> Result<ClientSession> {
        let revisions = self.features().revisions.clone();
        negotiate::connect(self, transport, revisions).await
    }

    /// Like [`connect`](Self::connect), but in a revision of this choice.
    pub(crate) async fn connect_in(
        &self,
        transport: impl Transport,
        revision: Revision,
    ) -> Result<ClientSession> {
        negotiate::connect(self, transport, vec![revision]).await
    }

    /// The sessions that are open now.
    pub fn sessions(&self) -> impl Iterator<Item = ClientSession> + use<> {
        let open: Vec<_> = self.lock_sessions().clone();
        open.into_iter().filter_map(|session| session.upgrade())
    }

    pub(crate) fn features(&self) -> Guard<Arc<Features>> {
        self.0.features.load()
    }

    /// What every call asks of the features.
    pub(crate) fn for_calls(&self) -> &ForCalls {
        &self.0.for_calls
    }

    /// What is known of the servers that this client was connected to.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.0.verdicts
    }

    /// What was answered to this client.
    pub(crate) fn response_cache(&self) -> &Cache {
        &self.0.cache
    }

    pub(crate) fn remember(&self, session: &ClientSession) {
        self.lock_sessions().push(session.downgrade());
    }

    /// Forgets the session of a connection that has ended, and all others that are gone.
    pub(crate) fn forget(&self, ended: &Arc<Connection>) {
        self.lock_sessions()
            .retain(|session| !session.is_over(ended));
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self.lock_problem();
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        self.0.for_calls.note(&features);
        self.0.features.store(Arc::new(features));
    }

    /// Whether a connection may be made.
    ///
    /// # Errors
    /// Says what is wrong with what the client was given.
    pub(crate) fn check(&self) -> Result<()> {
        match &*self.lock_problem() {
            Some(problem) => Err(Error::misuse(problem.message().to_owned())),
            None => Ok(()),
        }
    }

    /// Notes what is wrong with what a builder was given: who connects is told.
    pub(crate) fn report(&self, problem: Error) {
        self.lock_problem().get_or_insert(problem);
    }

    fn lock_problem(&self) -> MutexGuard<'_, Option<Error>> {
        self.0
            .problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn root_changes(&self) -> &Arc<RootChanges> {
        &self.0.root_changes
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<WeakSession>> {
        self.0
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("features", &**self.features())
            .finish_non_exhaustive()
    }
}

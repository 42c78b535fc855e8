use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};

use crate::{
    Limits, Result, Revision,
    client::{
        ClientSession,
        features::{Features, LONGEST_WAIT, OnChanged},
        negotiate,
        session::WeakSession,
        verdicts::Verdicts,
    },
    protocol::Implementation,
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
    /// Taken while a new state of the features is made.
    changing: Mutex<()>,
    sessions: Mutex<Vec<WeakSession>>,
    verdicts: Verdicts,
}

impl Client {
    /// A client that can do nothing for servers yet.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self(Arc::new(Core {
            features: ArcSwap::from_pointee(Features::new(Implementation::new(name, version))),
            changing: Mutex::default(),
            sessions: Mutex::default(),
            verdicts: Verdicts::default(),
        }))
    }

    /// A name for people to read.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.change(|features| features.info.title = Some(title.into()));
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
        self.change(|features| features.limits = limits);
        self
    }

    /// How long a call waits for an answer, or for progress, unless it is told otherwise. Default: 60 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|features| features.timeout = timeout.min(LONGEST_WAIT));
        self
    }

    /// How long a server may take to answer `server/discover` before it is taken for one that does not know it.
    /// Default: 5 s. An answer that comes later still counts.
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

    /// Is called when a server says that its list of tools has changed. The handlers of one session run one at a time, in
    /// the order in which the server said it.
    ///
    /// Legacy servers say it by themselves. Modern ones say it to who subscribes, so a session with one opens a
    /// subscription when it connects, for those handlers that are there by then and that the server has something for.
    /// A server that refuses is logged. [`ClientSession::listen`] opens one by hand.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
    ///
    /// ```
    /// use oxmcp::{Client, ClientSession};
    ///
    /// let client = Client::new("my-app", "1.0.0").on_tools_changed(|session: ClientSession| async move {
    ///     match session.tools().all().await {
    ///         Ok(tools) => println!("there are {} tools now", tools.len()),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// });
    /// # let _ = client;
    /// ```
    #[must_use]
    pub fn on_tools_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.change(|features| features.on_tools_changed = Some(erase(handler)));
        self
    }

    /// Is called when a server says that its list of prompts has changed, as
    /// [`on_tools_changed`](Self::on_tools_changed) is for tools.
    #[must_use]
    pub fn on_prompts_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.change(|features| features.on_prompts_changed = Some(erase(handler)));
        self
    }

    /// Is called when a server says that its list of resources or of resource templates has changed, as
    /// [`on_tools_changed`](Self::on_tools_changed) is for tools.
    #[must_use]
    pub fn on_resources_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.change(|features| features.on_resources_changed = Some(erase(handler)));
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

    /// What is known of the servers that this client was connected to.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.0.verdicts
    }

    pub(crate) fn remember(&self, session: &ClientSession) {
        self.lock_sessions().push(session.downgrade());
    }

    /// Forgets the session of a connection that has ended, and all others that are gone.
    pub(crate) fn forget(&self, ended: &Arc<Connection>) {
        self.lock_sessions()
            .retain(|session| !session.is_over(ended));
    }

    fn change(&self, change: impl FnOnce(&mut Features)) {
        let _one_at_a_time = self
            .0
            .changing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut features = Features::clone(&self.0.features.load());
        change(&mut features);
        self.0.features.store(Arc::new(features));
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<WeakSession>> {
        self.0
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn erase<F, Fut>(handler: F) -> OnChanged
where
    F: Fn(ClientSession) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |session| {
        let handler = Arc::clone(&handler);
        // Called where the handlers run: a panic must not reach whoever queues it.
        Box::pin(async move { handler(session).await })
    })
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("features", &**self.features())
            .finish_non_exhaustive()
    }
}

//! A client's session: the handle of the user, and the state that the handle shares with the connection.

use std::{
    any::Any,
    pin::Pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, Implementation, JsonObject, ListToolsResult, LoggingLevel, Meta,
    Notification, ProgressParams, RequestId, Revision, ServerCapabilities, SubscriptionFilter,
    internal::Project, method,
};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, OnceCell};

use crate::{
    client::{
        cache::{key::Invalidation, response_cache::SessionCache},
        client::Client,
        handlers::url_elicitations::UrlElicitations,
        requested_state::RequestedState,
        requests::{
            header_mirroring::HeaderMirroring, output_schemas::OutputSchemas,
            task_support::TaskSupports,
        },
        server_facts::{ServerFacts, no_capabilities},
        subscriptions::{desired::DesiredSubscriptions, listener::Listeners},
    },
    debug::opaque_debug,
    error::{Error, Result},
    extension::registry::{notification_params, send_notification},
    session::{
        connection::{Connection, ContextParts, Outcome, Peer, RequestContext},
        inbound::inline_execution::InlineExecution,
        task::BoxFuture,
    },
    sync::Mutex,
    transport::mirror::Mirror,
};

/// A client's end of a session with one server. Cheap to clone; all clones are the same session.
///
/// Each method of the specification is a method here. They return a [`Call`](crate::Call), which is awaited for the result. A method
/// that the server's revision does not have fails with [`Error::is_unsupported`], and nothing is sent.
///
/// When the last handle is dropped, the session is closed in the background; [`close`](Self::close) does it where you
/// can wait for it. A handler that was given the session holds a handle until it returns.
#[derive(Clone)]
pub struct ClientSession {
    handle: Arc<Handle>,
}

/// Closes the session when the last [`ClientSession`] is dropped.
struct Handle {
    connection: Arc<Connection>,
    state: Arc<SessionState>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connection.begin_close();
        let state = &self.state;
        state.client.response_cache().remove_session(&state.cache);
    }
}

impl ClientSession {
    pub(crate) fn new(connection: Arc<Connection>, state: Arc<SessionState>) -> Self {
        Self {
            handle: Arc::new(Handle { connection, state }),
        }
    }

    /// The session over a connection, while it is open and has a handle.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let role = Arc::clone(connection.role());
        let state: Arc<SessionState> = role.into_any().downcast().ok()?;
        let handle = state.handle.get()?.upgrade()?;
        (!handle.connection.is_ended()).then_some(Self { handle })
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.handle.connection
    }

    pub(crate) fn state(&self) -> &Arc<SessionState> {
        &self.handle.state
    }

    /// The capabilities that the client has declared to the server.
    pub(crate) fn declared(&self) -> &ClientCapabilities {
        &self.negotiated().declared
    }

    pub(crate) fn negotiated(&self) -> &Negotiated {
        let negotiated = self.state().negotiated();
        negotiated.expect("a session is handed out after it was negotiated")
    }

    /// The client that this session belongs to.
    #[must_use]
    pub fn client(&self) -> Client {
        self.state().client.clone()
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.negotiated().revision
    }

    /// Name and version of the server, as it says itself. Modern servers need not say, and one whose revision is pinned has not
    /// been asked until something was needed of it.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.known_facts()?.info.as_ref()
    }

    /// The capabilities that the server has declared, as far as it was asked: a modern server whose revision is pinned is asked
    /// when they are first needed, as by [`offers`](Self::offers).
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        match self.known_facts() {
            Some(facts) => &facts.capabilities,
            None => no_capabilities(),
        }
    }

    /// Instructions for the use of the server, for a model to read; with the same reserve.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.known_facts()?.instructions.as_deref()
    }

    /// Reports the progress of a request of the server, by the token that came with it (2025-11-25 and earlier: modern
    /// servers make no requests). Nothing is sent where no request in flight came with the token.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where the server is modern; and where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    #[doc(alias = "notifications/progress")]
    pub async fn notify_progress(&self, params: ProgressParams) -> Result<()> {
        let name = method::Progress::NAME;
        let revision = self.revision();
        if !method::is_in(method::NOTIFICATIONS_TO_SERVER, name, revision) {
            return Err(Error::unsupported(format!(
                "the server speaks revision {revision}, in which clients report no progress; nothing was sent"
            )));
        }
        self.connection().report(params).await
    }

    /// Sends a notification of an extension to the server; to a modern server with the envelope of a request.
    ///
    /// ```
    /// # use oxmcp::protocol::{Notification, NotificationParams};
    /// # struct Wound;
    /// # impl Notification for Wound {
    /// #     const NAME: &'static str = "notifications/com.example/clock/wound";
    /// #     type Params = NotificationParams;
    /// # }
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// session.notify::<Wound>(NotificationParams::default()).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the server's revision does not have the notification, or
    /// the server has not declared the extension. Where the notification is the protocol's own. Where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = notification_params::<N>(params)?;
        self.may_send(&[], N::NAME)?;
        let envelope = self.connection().role().envelope();
        let envelope = envelope.map(|members| format!("{{{members}}}"));
        let meta: Option<JsonObject> = envelope.and_then(|it| serde_json::from_str(&it).ok());
        let meta = meta.unwrap_or_default();
        send_notification(self.connection(), N::NAME, params, meta).await
    }

    /// Whether the revision that is spoken has a method, by itself or by an extension that the server knows.
    pub(crate) fn has_method(&self, name: &str) -> Result<()> {
        if method::is_in(method::REQUESTS_TO_SERVER, name, self.revision()) {
            return Ok(());
        }
        self.may_send(method::REQUESTS_TO_SERVER, name)
    }

    fn may_send(&self, table: &'static [method::Row], name: &str) -> Result<()> {
        let features = self.client().features().clone();
        let extensions = &features.extensions;
        let revision = self.revision();
        match self.known_facts() {
            Some(facts) => {
                let declared = facts.capabilities.extensions.as_ref();
                extensions.may_send(table, name, revision, declared)
            }
            // The server itself will say what it lacks.
            None => extensions.may_send(
                table,
                name,
                revision,
                extensions.declared(revision).as_ref(),
            ),
        }
    }

    /// Closes the session. Calls in flight may finish within [`Limits::drain`](crate::Limits::drain), with what the server
    /// asks until then, and fail after it; notifications that have arrived are handled within the same time. What was sent
    /// is written within [`Limits::flush`](crate::Limits::flush), while the server takes it. Returns when the transport is closed, and a server that was started has exited. It may be called again, and concurrently.
    ///
    /// # Errors
    /// Where the connection broke before it could be closed.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection().begin_close();
        self.wait().await
    }

    /// Waits until the session has ended, on either side.
    ///
    /// # Errors
    /// Where the connection broke.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) -> Result<()> {
        match self.connection().ended().await {
            Outcome::Closed => Ok(()),
            Outcome::Failed(reason) => Err(Error::closed(reason)),
        }
    }
}

impl Client {
    /// The sessions that are open now.
    pub fn sessions(&self) -> impl Iterator<Item = ClientSession> + use<> {
        let connections = self.connections().clone();
        let connections = connections.into_iter();
        connections.filter_map(|connection| ClientSession::of(&*connection.upgrade()?))
    }
}

impl RequestContext {
    /// The session over which a server makes a request, on a client. `None` on a server, and where the session has no handle
    /// any more.
    #[must_use]
    pub fn client_session(&self) -> Option<ClientSession> {
        ClientSession::of(&self.parts().connection)
    }
}

opaque_debug!(ClientSession, |it| { revision: it.revision(), server: it.server_info() });

/// The state of a session, which its connection shares with its handles.
pub(crate) struct SessionState {
    pub(crate) client: Client,
    negotiated: OnceLock<Negotiated>,
    handle: OnceLock<Weak<Handle>>,
    /// Whether the server sends back what it is sent.
    echoed: AtomicBool,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) desired: DesiredSubscriptions,
    pub(crate) url_elicitations: UrlElicitations,
    /// The log level that modern requests ask for.
    pub(crate) request_log_level: Mutex<Option<LoggingLevel>>,
    /// The session's part of the client's cache.
    pub(crate) cache: SessionCache,
    pub(crate) headers: HeaderMirroring,
    pub(crate) output_schemas: OutputSchemas,
    pub(crate) task_support: TaskSupports,
    /// The `CallDriver`, where the client does not make the calls of tools itself.
    pub(crate) driver: Option<Arc<dyn Any + Send + Sync>>,
    /// The name of the server in errors, as its transport has it.
    pub(crate) server_name: String,
    /// How fast the incoming middleware has been.
    pub(crate) inline: Arc<InlineExecution>,
    /// What the server was asked for that it forgets with the session. All sessions share it that are opened anew after each other.
    pub(crate) requested: Arc<RequestedState>,
    reconnection: OnceLock<Arc<Reconnection>>,
}

/// The way back to a server, which sessions share that follow each other.
pub(crate) struct Reconnection(AsyncMutex<Latest>);

/// The session that was opened last, and what opens another.
pub(crate) struct Latest {
    pub(crate) connector: Box<dyn Connector>,
    pub(crate) connection: Weak<Connection>,
}

/// What opens a session with one server, again and again.
pub(crate) trait Connector: Send {
    fn connect<'a>(&'a mut self, client: &'a Client) -> Connecting<'a>;
}

/// A session that is being opened.
pub(crate) type Connecting<'a> = Pin<Box<dyn Future<Output = Result<ClientSession>> + Send + 'a>>;

impl Reconnection {
    pub(crate) fn new(connector: Box<dyn Connector>, connection: Weak<Connection>) -> Arc<Self> {
        Arc::new(Self(AsyncMutex::new(Latest {
            connector,
            connection,
        })))
    }

    /// Waits until nobody else connects anew.
    pub(crate) async fn lock(&self) -> AsyncMutexGuard<'_, Latest> {
        self.0.lock().await
    }
}

/// What was agreed on when the session was opened.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    /// What the server says of itself, once that is known.
    pub(crate) facts: OnceCell<ServerFacts>,
    /// What the server was told that the client can do.
    pub(crate) declared: ClientCapabilities,
    /// What every modern request carries, as JSON members without braces.
    pub(crate) envelope: Option<Arc<str>>,
}

impl SessionState {
    pub(crate) fn new(
        client: Client,
        server_name: String,
        cache: SessionCache,
        mirror: Option<Mirror>,
        requested: Arc<RequestedState>,
    ) -> Arc<Self> {
        let driver = client.features().driver.clone();
        Arc::new(Self {
            client,
            driver,
            server_name,
            negotiated: OnceLock::new(),
            handle: OnceLock::new(),
            echoed: AtomicBool::new(false),
            listeners: Arc::default(),
            desired: DesiredSubscriptions::default(),
            url_elicitations: UrlElicitations::default(),
            request_log_level: Mutex::default(),
            cache,
            headers: HeaderMirroring::new(mirror),
            output_schemas: OutputSchemas::default(),
            task_support: TaskSupports::default(),
            inline: Arc::new(InlineExecution::new()),
            requested,
            reconnection: OnceLock::new(),
        })
    }

    pub(crate) fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Notes that a request of this side came back.
    pub(crate) fn note_echo(&self) {
        self.echoed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_echoed(&self) -> bool {
        self.echoed.load(Ordering::Relaxed)
    }

    /// The revision of the session; the newest legacy one, until it was negotiated.
    pub(crate) fn revision(&self) -> Revision {
        self.negotiated()
            .map_or(Revision::LATEST_LEGACY, |negotiated| negotiated.revision)
    }

    /// Opens the session. Called once, before the session is handed out.
    pub(crate) fn open(&self, negotiated: Negotiated, session: &ClientSession) {
        // There is one session for each connection, and the first agreement stands.
        let _ = self.negotiated.set(negotiated);
        let _ = self.handle.set(Arc::downgrade(&session.handle));
    }

    /// The way back to the server, once the session was handed out.
    pub(crate) fn reconnection(&self) -> Option<&Arc<Reconnection>> {
        self.reconnection.get()
    }

    pub(crate) fn set_reconnection(&self, reconnection: Arc<Reconnection>) {
        // It is set once, by what has opened the session.
        let _ = self.reconnection.set(reconnection);
    }

    /// The `_meta` that a modern request must carry, and the capabilities in it.
    pub(crate) fn envelope(&self, revision: Revision) -> (Meta, ClientCapabilities) {
        let features = self.client.features();
        let mut declared = features.capabilities(revision);
        declared.project(revision);
        let mut info = features.info.clone();
        info.project(revision);
        let meta = Meta::of_client(revision.as_str(), &info, &declared);
        (meta, declared)
    }

    /// The envelope of every request of the session, on which answers depend.
    pub(crate) fn request_envelope(&self) -> Arc<str> {
        let envelope = self.negotiated().and_then(|it| it.envelope.clone());
        envelope.unwrap_or_else(|| self.revision().as_str().into())
    }

    /// The run of the user's handler for a notification of the specification, where there is one.
    pub(crate) fn notification_handler(
        &self,
        connection: &Arc<Connection>,
        method: &str,
        params: Option<Text<'_>>,
    ) -> Option<BoxFuture<()>> {
        self.handle.get()?;
        if !method::is_in(method::NOTIFICATIONS_TO_CLIENT, method, self.revision()) {
            return None;
        }
        let features = self.client.features();
        let handlers = &features.notifications;
        handlers.begin(connection, method, params, &self.url_elicitations)
    }

    /// Removes cached answers that a change has made wrong.
    pub(crate) fn invalidate(&self, change: &Invalidation) {
        if matches!(change, Invalidation::Tools) {
            self.output_schemas.forget();
            self.task_support.forget();
        }
        self.client.response_cache().invalidate(&self.cache, change);
    }

    /// Removes cached answers that may be wrong, after a gap in which changes that pass a filter were missed. What the tools
    /// have promised stands until the server says that they have changed, or lists them again.
    pub(crate) fn missed(&self, filter: &SubscriptionFilter) {
        for change in Invalidation::missed(filter) {
            let cache = self.client.response_cache();
            cache.invalidate(&self.cache, &change);
        }
    }

    /// Reads and filters a result before it is handed out. Legacy servers know nothing of headers.
    pub(crate) fn screen<T: 'static>(&self, result: &mut T) {
        let result: &mut dyn Any = result;
        let Some(page) = result.downcast_mut::<ListToolsResult>() else {
            return;
        };
        let features = self.client.features();
        if features.validate_results {
            self.output_schemas
                .learn(page, features.limits.client.max_listing_bytes);
        }
        if self.driver.is_some() {
            self.task_support
                .learn(page, features.limits.client.max_listing_bytes);
        }
        if self.revision().is_modern() {
            self.headers.screen(page);
        }
    }

    /// The context of a message of the server, or of a question within an answer.
    pub(crate) fn context(
        &self,
        connection: &Arc<Connection>,
        id: Option<RequestId>,
    ) -> ContextParts {
        let negotiated = self.negotiated();
        let peer = Peer {
            revision: self.revision(),
            implementation: negotiated.and_then(|it| it.facts.get()?.info.clone()),
            capabilities: negotiated.map_or_else(Default::default, |it| it.declared.clone()),
        };
        ContextParts::new(connection, id, Arc::new(peer))
    }
}

opaque_debug!(SessionState, |it| { negotiated: it.negotiated });

//! A client's session: the handle of the user, and the state that the handle shares with the connection.

use std::{
    any::{Any, TypeId},
    pin::Pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, Implementation, JsonObject, ListToolsResult, LoggingLevel, Meta, Method,
    Notification, ProgressParams, RequestId, Revision, ServerCapabilities, SubscriptionFilter,
    internal::Project, method,
};
use serde_json::value::RawValue;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, OnceCell};

use crate::{
    client::{
        cache::{key::Invalidation, response_cache::SessionCache},
        client::Client,
        handlers::url_elicitations::UrlElicitations,
        requested_state::RequestedState,
        requests::{
            call_driver::CallDriver, header_mirroring::HeaderMirroring,
            output_schemas::OutputSchemas, task_support::TaskSupports,
        },
        server_facts::{ServerFacts, no_capabilities},
        subscriptions::{desired::DesiredSubscriptions, listener::Listeners},
    },
    debug::opaque_debug,
    error::{Error, Result},
    extension::registry::{
        notification_params, notification_params_of, request_params_of, send_notification,
    },
    session::{
        connection::{Connection, ContextParts, Outcome, Peer, RequestContext},
        inbound::inline_execution::InlineExecution,
        outbound::options::CallOptions,
        task::BoxFuture,
        tolerance::{Tolerance, ToleratedDeviation},
    },
    sync::Mutex,
    transport::mirror::HeaderMirror,
};

/// A client's end of a session with one server. Cheap to clone; all clones are the same session.
///
/// Each request of the specification is a method here. It returns a [`Call`](crate::Call), which is awaited for the result.
/// A method that the server's revision does not have fails with [`Error::is_unsupported`], and nothing is sent.
///
/// When the last handle is dropped, the session is closed in the background; [`close`](Self::close) closes it and waits
/// until it has ended. A handler that was given the session holds a handle until it returns.
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

    /// The session of a connection, if it is open and has a handle.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        Self::with_handle(connection).filter(|session| !session.connection().is_ended())
    }

    /// The session of a connection, open or ended, if it has a handle.
    pub(crate) fn with_handle(connection: &Connection) -> Option<Self> {
        let state: Arc<SessionState> = connection.role_as()?;
        let handle = state.handle.get()?.upgrade()?;
        Some(Self { handle })
    }

    /// The driver of the calls of a method, if it has one.
    pub(crate) fn driver_of<M: Method>(&self) -> Option<&'static CallDriver> {
        // The compiler evaluates the comparison. A method that users define reads the results itself.
        let is_driven = TypeId::of::<M>() == TypeId::of::<method::CallTool>();
        self.state().driver.filter(|_| is_driven)
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

    /// Returns the client that this session belongs to.
    #[must_use]
    pub fn client(&self) -> Client {
        self.state().client.clone()
    }

    /// Returns the negotiated revision of the session.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.negotiated().revision
    }

    /// Returns the name and version of the server, as it declares them. Modern servers need not declare them. In a session with
    /// a pinned revision, they are unknown until the server was asked for its self-description.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.known_facts()?.info.as_ref()
    }

    /// Returns the capabilities that the server has declared. They are empty until the server was asked for them: a modern
    /// server whose revision is pinned is asked when they are first needed, as by [`offers`](Self::offers).
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        match self.known_facts() {
            Some(facts) => &facts.capabilities,
            None => no_capabilities(),
        }
    }

    /// Returns the server's deviations from the specification that were tolerated since the session was opened, for a host to show
    /// to the server's author: at most 200 pairs of a deviation and a method, and none if the client is
    /// [strict](Client::strict). [`Listing::left_out`](crate::Listing::left_out) has the entries that are missing from a list.
    ///
    /// ```
    /// # fn run(session: &oxmcp::ClientSession) {
    /// for it in session.tolerated() {
    ///     eprintln!("{} ({}, {} times)", it.leniency.reason(), it.method, it.count);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn tolerated(&self) -> Vec<ToleratedDeviation> {
        self.state().tolerance.record()
    }

    /// Returns instructions for the use of the server, for a model to read. In a session with a pinned revision, they are
    /// unknown until the server was asked for its self-description.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.known_facts()?.instructions.as_deref()
    }

    /// Reports the progress of a request of the server, by the token that came with it (2025-11-25 and earlier: modern
    /// servers make no requests). Nothing is sent if no request in flight came with the token.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the server is modern; and an error if the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while the send queue is full, nothing has been sent.
    #[doc(alias = "notifications/progress")]
    pub async fn notify_progress(&self, params: ProgressParams) -> Result<()> {
        let name = method::Progress::NAME;
        let revision = self.revision();
        if !method::is_in(method::NOTIFICATIONS_TO_SERVER, name, revision) {
            return Err(Error::unsupported(format!(
                "revision {revision} does not support progress from clients; nothing was sent"
            )));
        }
        self.connection().report(params).await
    }

    /// Sends a notification of an extension to the server. A modern server receives it with the envelope of a request.
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
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) if the server's revision does not have the notification, or
    /// the server has not declared the extension. An error if the notification belongs to the specification itself, or if
    /// the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while the send queue is full, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = notification_params::<N>(params)?;
        self.may_send(&[], N::NAME)?;
        let meta = self.notification_meta();
        send_notification(self.connection(), N::NAME, params, meta).await
    }

    /// The `_meta` of a notification: the envelope, if the revision has one.
    fn notification_meta(&self) -> JsonObject {
        let envelope = self.connection().role().envelope();
        let envelope = envelope.map(|members| format!("{{{members}}}"));
        let meta: Option<JsonObject> = envelope.and_then(|it| serde_json::from_str(&it).ok());
        meta.unwrap_or_default()
    }

    /// Makes a request of an extension by its name, with params and result as JSON: for proxies, which do not know the types of
    /// the extensions that they pass on. It is neither checked against the server's extensions, nor cached.
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let params = serde_json::value::to_raw_value(&serde_json::json!({"city": "Lhasa"})).expect("it is JSON");
    /// let result = session.request_raw("com.example/clock/now", &params).await?;
    /// assert!(result.get().contains("hour"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of a [`Call`](crate::Call). Also if the method belongs to the protocol itself, or the params are not an object.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn request_raw(
        &self,
        method: impl Into<String>,
        params: &RawValue,
    ) -> Result<Box<RawValue>> {
        let method = method.into();
        let (params, meta) = request_params_of(&method, params)?;
        let mut options = CallOptions::within(self.state().client.features().timeout);
        options.meta = meta;
        self.connection().check_meta(&options)?;
        self.add_log_level(&mut options.meta);
        let call = self
            .connection()
            .call_named(method, params.as_bytes(), &mut options);
        Ok(Text::checked(&call.await?.json).to_raw())
    }

    /// Sends a notification of an extension by its name, with params as JSON, as [`request_raw`](Self::request_raw) makes a
    /// request.
    ///
    /// # Errors
    /// If the notification belongs to the protocol itself, if the params are not an object, or if the session has ended.
    ///
    /// # Cancel safety
    /// As for [`notify`](Self::notify).
    pub async fn notify_raw(&self, method: impl Into<String>, params: &RawValue) -> Result<()> {
        let method = method.into();
        let params = notification_params_of(&method, params)?;
        let meta = self.notification_meta();
        send_notification(self.connection(), method, params, meta).await
    }

    /// Checks that the session has a method: by its revision, or by an extension that the server knows.
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
            // If the server's capabilities are not known, the server itself refuses what it does not support.
            None => extensions.may_send(
                table,
                name,
                revision,
                extensions.declared(revision).as_ref(),
            ),
        }
    }

    /// Closes the session, and waits until it has ended. Calls in flight, and requests that the server makes meanwhile, may
    /// finish within [`Limits::drain`](crate::Limits::drain); then the calls fail. Notifications that have arrived are handled
    /// within the same time. Queued messages are written within [`Limits::flush`](crate::Limits::flush), as long as the server
    /// reads them. Returns when the transport is closed, and a server process that the client started has exited. It may be
    /// called again, and concurrently.
    ///
    /// # Errors
    /// If the connection broke before it could be closed.
    ///
    /// # Cancel safety
    /// Closing continues if the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection().begin_close();
        self.wait().await
    }

    /// Waits until the session has ended, on either side.
    ///
    /// # Errors
    /// If the connection broke.
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
    /// Returns the open sessions.
    pub fn sessions(&self) -> impl Iterator<Item = ClientSession> + use<> {
        let connections = self.connections().clone();
        let connections = connections.into_iter();
        connections.filter_map(|connection| ClientSession::of(&*connection.upgrade()?))
    }
}

impl RequestContext {
    /// Returns the session on which the server's message arrived, on a client. `None` on a server, and if the session has ended
    /// or has no handle left.
    #[must_use]
    pub fn client_session(&self) -> Option<ClientSession> {
        ClientSession::of(&self.parts().connection)
    }

    /// Returns the host's name of the server that sent the message, on a client that was created for one server
    /// ([`Client::for_server`]). `None` on other clients, and on a server.
    ///
    /// Unlike [`peer_info`](Self::peer_info), the server has no influence on it.
    #[must_use]
    pub fn server_label(&self) -> Option<String> {
        let state: Arc<SessionState> = self.parts().connection.role_as()?;
        state.client.server_label().map(Into::into)
    }
}

opaque_debug!(ClientSession, |it| { revision: it.revision(), server: it.server_info() });

/// The state of a session, which its connection shares with its handles.
pub(crate) struct SessionState {
    pub(crate) client: Client,
    negotiated: OnceLock<Negotiated>,
    handle: OnceLock<Weak<Handle>>,
    /// Whether the server echoes the messages that it is sent.
    echoed: AtomicBool,
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) desired: DesiredSubscriptions,
    pub(crate) url_elicitations: UrlElicitations,
    /// The log level that modern requests carry.
    pub(crate) request_log_level: Mutex<Option<LoggingLevel>>,
    /// The session's part of the client's cache.
    pub(crate) cache: SessionCache,
    pub(crate) headers: HeaderMirroring,
    pub(crate) output_schemas: OutputSchemas,
    pub(crate) task_support: TaskSupports,
    /// The driver of tool calls, if the client does not make them itself.
    pub(crate) driver: Option<&'static CallDriver>,
    /// The name of the server in errors, as its transport has it.
    pub(crate) server_name: String,
    /// The record of how fast the incoming middleware has been.
    pub(crate) inline: Arc<InlineExecution>,
    /// The state that was requested from the server, and that it loses with the session. All sessions that replace each
    /// other by reconnecting share it.
    pub(crate) requested: Arc<RequestedState>,
    /// The deviations of the server from the specification.
    pub(crate) tolerance: Arc<Tolerance>,
    reconnection: OnceLock<Arc<Reconnection>>,
}

/// The means of reconnecting to a server, shared by all sessions that replace each other.
pub(crate) struct Reconnection(AsyncMutex<Latest>);

/// The connection of the session that was opened last, and the connector that opens another.
pub(crate) struct Latest {
    pub(crate) connector: Box<dyn Connector>,
    pub(crate) connection: Weak<Connection>,
}

/// Opens sessions with one server, one after the other.
pub(crate) trait Connector: Send {
    fn connect<'a>(&'a mut self, client: &'a Client) -> Connecting<'a>;
}

/// The future of a session that is being opened.
pub(crate) type Connecting<'a> = Pin<Box<dyn Future<Output = Result<ClientSession>> + Send + 'a>>;

impl Reconnection {
    pub(crate) fn new(connector: Box<dyn Connector>, connection: Weak<Connection>) -> Arc<Self> {
        Arc::new(Self(AsyncMutex::new(Latest {
            connector,
            connection,
        })))
    }

    /// Waits until no other caller is reconnecting.
    pub(crate) async fn lock(&self) -> AsyncMutexGuard<'_, Latest> {
        self.0.lock().await
    }
}

/// The outcome of the negotiation when the session was opened.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) revision: Revision,
    /// The self-description of the server, once it is known.
    pub(crate) facts: OnceCell<ServerFacts>,
    /// The capabilities that the client has declared to the server.
    pub(crate) declared: ClientCapabilities,
    /// The `_meta` of every modern request, as JSON members without braces.
    pub(crate) envelope: Option<Arc<str>>,
}

impl SessionState {
    #[expect(
        clippy::too_many_arguments,
        reason = "it is called once, and a params type would not make it clearer"
    )]
    pub(crate) fn new(
        client: Client,
        server_name: String,
        cache: SessionCache,
        mirror: Option<HeaderMirror>,
        requested: Arc<RequestedState>,
        tolerance: Arc<Tolerance>,
    ) -> Arc<Self> {
        let driver = client.features().driver;
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
            tolerance,
            reconnection: OnceLock::new(),
        })
    }

    pub(crate) fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Records that the server echoed a request of this side.
    pub(crate) fn note_echo(&self) {
        self.echoed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_echoed(&self) -> bool {
        self.echoed.load(Ordering::Relaxed)
    }

    /// The revision of the session; before the negotiation, the newest legacy one.
    pub(crate) fn revision(&self) -> Revision {
        self.negotiated()
            .map_or(Revision::LATEST_LEGACY, |negotiated| negotiated.revision)
    }

    /// Opens the session. Called once, before the session is handed out.
    pub(crate) fn open(&self, negotiated: Negotiated, session: &ClientSession) {
        // There is one session for each connection, and the first negotiation counts.
        let _ = self.negotiated.set(negotiated);
        let _ = self.handle.set(Arc::downgrade(&session.handle));
    }

    /// The means of reconnecting to the server, once the session was handed out.
    pub(crate) fn reconnection(&self) -> Option<&Arc<Reconnection>> {
        self.reconnection.get()
    }

    pub(crate) fn set_reconnection(&self, reconnection: Arc<Reconnection>) {
        // It is set once, by the function that has opened the session.
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

    /// The envelope of every request of the session, on which responses depend.
    pub(crate) fn request_envelope(&self) -> Arc<str> {
        let envelope = self.negotiated().and_then(|it| it.envelope.clone());
        envelope.unwrap_or_else(|| self.revision().as_str().into())
    }

    /// The future of the user's handler for a notification of the specification, if there is one.
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

    /// Removes cached responses that a change has invalidated.
    pub(crate) fn invalidate(&self, change: &Invalidation) {
        if matches!(change, Invalidation::Tools) {
            self.output_schemas.forget();
            self.task_support.forget();
        }
        self.client.response_cache().invalidate(&self.cache, change);
    }

    /// Removes cached responses that may be outdated, after a gap in which changes that pass a filter were missed. The output
    /// schemas and the task support of tools remain until the server reports that the tools have changed, or lists them again.
    pub(crate) fn missed(&self, filter: &SubscriptionFilter) {
        for change in Invalidation::missed(filter) {
            let cache = self.client.response_cache();
            cache.invalidate(&self.cache, &change);
        }
    }

    /// Learns from a result, and filters it, before it is handed out. Headers matter to modern servers only.
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

    /// The context of a message of the server, or of an input request within a result.
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

//! Session of a server with one client: connecting, client information, notifications, and closing.

use std::{
    any::Any,
    future::ready,
    hash::{Hash, Hasher},
    sync::Arc,
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    ClientCapabilities, EmptyParams, Implementation, JsonObject, Method, Notification,
    ProgressParams, Revision,
    method::{Ping, Row},
};
use serde_json::value::RawValue;

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    extension::registry::{
        notification_params, notification_params_of, request_params_of, send_notification,
    },
    server::{
        dispatch::{ServerRole, SessionHook},
        server::Server,
    },
    session::{
        connection::{Caller, Connection, Outcome, Peer, RequestContext},
        driver::event_loop::drive,
        handler::{detached::DetachedWork, state_scope::StateScope},
        inbound::watchdog,
        outbound::options::CallOptions,
        task::{BoxFuture, spawn},
    },
    transport::traits::Transport,
};

/// The server's end of a connection to one client. Cheap to clone; clones refer to the same session.
///
/// On one connection, a client may open a session with `initialize`, make modern requests, which need no session, or both. Methods
/// such as [`client_info`](Self::client_info) return what `initialize` declared. In a handler, use the [`RequestContext`], which
/// returns what applies to the request, in any revision.
#[derive(Clone)]
pub struct ServerSession {
    connection: Arc<Connection>,
    role: Arc<ServerRole>,
}

/// Handles are equal if they refer to the same session.
impl PartialEq for ServerSession {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.connection, &other.connection)
    }
}

impl Eq for ServerSession {}

impl Hash for ServerSession {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.connection).hash(state);
    }
}

impl ServerSession {
    pub(crate) fn new(connection: Arc<Connection>, role: Arc<ServerRole>) -> Self {
        Self { connection, role }
    }

    /// The session at a server's end of a connection.
    pub(crate) fn of(connection: &Arc<Connection>) -> Option<Self> {
        let role = connection.role_as()?;
        Some(Self::new(Arc::clone(connection.trunk()), role))
    }

    /// Runs a hook with the session at a server's end of a connection. The hook is called when the future is first polled, where
    /// panics are caught.
    pub(crate) fn run_hook<F>(
        connection: &Arc<Connection>,
        hook: impl FnOnce(Self) -> F + Send + 'static,
    ) -> BoxFuture<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match Self::of(connection) {
            Some(session) => Box::pin(async move { hook(session).await }),
            None => Box::pin(ready(())),
        }
    }

    /// The erased form of a hook that takes a session.
    pub(crate) fn erased<F, Fut>(hook: F) -> SessionHook
    where
        F: Fn(Self) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = Arc::new(hook);
        SessionHook::new(move |connection| {
            let hook = Arc::clone(&hook);
            Self::run_hook(connection, move |session| hook(session))
        })
    }

    pub(crate) fn role(&self) -> &ServerRole {
        &self.role
    }

    /// The client that has opened the session with `initialize`.
    pub(crate) fn client(&self) -> Option<&Arc<Peer>> {
        self.role.legacy_session().client()
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Returns the server of this session.
    #[must_use]
    pub fn server(&self) -> Server {
        self.role.server().clone()
    }

    /// Returns the revision that `initialize` negotiated. `None` before that, and for a client that makes only modern requests.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.client().map(|client| client.revision)
    }

    /// Returns whether this is only the exchange of one request, and later requests of the client never come in it: over HTTP, if
    /// the request belongs to no session (2026-07-28, and endpoints without sessions).
    ///
    /// A connection over stdio lasts in any revision. From 2026-07-28 on it says nothing about which of its requests
    /// [belong together](https://modelcontextprotocol.io/specification/2026-07-28/basic#statelessness).
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// let tool = Tool::new("kind", "Tell whether the session lasts", |cx: RequestContext| async move {
    ///     match cx.server_session().is_some_and(|it| it.is_for_one_request()) {
    ///         true => "for this request",
    ///         false => "until it is closed",
    ///     }
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn is_for_one_request(&self) -> bool {
        self.role.is_for_one_request()
    }

    /// Returns the name and version that the client has declared.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.client()?.implementation.as_ref()
    }

    /// Returns the capabilities that the client has declared.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<&ClientCapabilities> {
        self.client().map(|client| &client.capabilities)
    }

    /// Pings the client, and waits for the response, at most a minute.
    /// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
    ///
    /// # Errors
    /// If the client does not respond, or is modern: modern clients accept no requests.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call on the wire.
    pub async fn ping(&self) -> Result<()> {
        self.takes_requests(Ping::NAME)?;
        let options = CallOptions::default();
        self.connection
            .call(Ping::NAME, &EmptyParams::default(), options)
            .await
            .map(drop)
    }

    /// Reports the progress of the client's request with this progress token. In a handler, use [`RequestContext::progress`],
    /// which knows the token. Sends nothing if no request in flight has the token.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// # Errors
    /// If the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for space in the outbox, nothing has been sent.
    pub async fn notify_progress(&self, params: ProgressParams) -> Result<()> {
        self.connection.report(params).await
    }

    /// Sends a notification of an extension to the client of a legacy session (up to 2025-11-25). For modern clients, use
    /// [`RequestContext::notify`] within a request, and [`Server::publish`] for subscriptions.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern, or its revision does not have the notification
    /// ([`Extension::notifies`](crate::Extension::notifies)). Also if the protocol defines the notification, or the session has
    /// ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for space in the outbox, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let name = N::NAME;
        let params = notification_params::<N>(params)?;
        let modern = "use `RequestContext::notify` or `Server::publish` for modern clients";
        let client = self.require_client(name, modern)?;
        let declared = client.capabilities.extensions.as_ref();
        let features = self.role.server().features();
        let extensions = &features.extensions;
        extensions.may_notify_client(name, client.revision, declared)?;
        send_notification(self.connection(), name, params, JsonObject::new()).await
    }

    /// Sends a notification of an extension by its name, with params as JSON, to the client of a legacy session: for proxies,
    /// which do not know the types of the extensions that they pass on.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern. Also if the notification belongs to the protocol itself, or if the
    /// params are not an object.
    ///
    /// # Cancel safety
    /// As for [`notify`](Self::notify).
    pub async fn notify_raw(&self, method: impl Into<String>, params: &RawValue) -> Result<()> {
        let method = method.into();
        let params = notification_params_of(&method, params)?;
        let modern = "use `RequestContext::notify_raw` for modern clients";
        self.require_client(&method, modern)?;
        send_notification(self.connection(), method, params, JsonObject::new()).await
    }

    /// Makes a request of an extension by its name, with params and result as JSON, to the client of a legacy session, as
    /// [`notify_raw`](Self::notify_raw) sends a notification.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern. Also if the method belongs to the protocol itself, if the params are
    /// not an object, and the error of the client.
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
        self.takes_requests(&method)?;
        let mut options = self.role.server().features().ask.call_options();
        options.meta = meta;
        self.connection().check_meta(&options)?;
        let call = self
            .connection()
            .call_named(method, params.as_bytes(), &mut options);
        Ok(Text::checked(&call.await?.json).to_raw())
    }

    /// The client that has opened the session; only such a client accepts requests.
    fn require_client(&self, method: &str, advice: &str) -> Result<&Arc<Peer>> {
        self.client().ok_or_else(|| {
            Error::unsupported(format!(
                "cannot send {method} to this client: it opened no session with `initialize`; {advice}"
            ))
        })
    }

    /// The revision and the capabilities of the client, which must accept requests.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern.
    pub(crate) fn takes_requests(&self, method: &str) -> Result<&Arc<Peer>> {
        self.require_client(method, "modern clients accept no requests")
    }

    /// Checks that the client knows the extension that a message belongs to. `advice` is for clients that opened no session.
    pub(crate) fn check_extension(
        &self,
        table: &'static [Row],
        name: &str,
        advice: &str,
    ) -> Result<()> {
        let client = self.require_client(name, advice)?;
        let declared = client.capabilities.extensions.as_ref();
        let features = self.role.server().features();
        let extensions = &features.extensions;
        extensions.may_send(table, name, client.revision, declared)
    }

    /// Closes the session, and returns when the transport is closed.
    ///
    /// No new requests start. Requests in flight may finish within [`Limits::drain`](crate::Limits::drain), and are then
    /// cancelled and fail with an error. Responses are written within [`Limits::flush`](crate::Limits::flush), as long as the
    /// client reads them. The method can be called repeatedly and concurrently.
    ///
    /// # Errors
    /// If the connection broke before it was closed, or the client stopped reading; the error says how many messages were not
    /// written.
    ///
    /// # Cancel safety
    /// Closing continues in the background if the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection.begin_close();
        self.wait().await
    }

    /// Waits until the session has ended for any reason.
    ///
    /// # Errors
    /// If the connection broke.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) -> Result<()> {
        match self.connection.ended().await {
            Outcome::Closed => Ok(()),
            Outcome::Failed(reason) => Err(Error::closed(reason)),
        }
    }
}

/// Methods for extensions.
impl RequestContext {
    /// Checks that the request declares an extension of this server, in a revision of the extension that the server knows.
    ///
    /// # Errors
    /// [`MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY), with the missing capabilities: return this
    /// error as the response. Also if the server does not have the extension.
    pub fn expect_extension(&self, id: &str) -> Result<()> {
        self.server()?.features().extensions.expect(self, id)
    }

    /// Returns the [state](crate::Extension::state) of an extension of the server. `None` if the server has no such extension, or
    /// its state has another type.
    #[must_use]
    pub fn extension_state<T: Send + Sync + 'static>(&self, id: &str) -> Option<Arc<T>> {
        self.server().ok()?.extension_state(id)
    }

    /// Returns the work to which the handler belongs once [detached](crate::DetachableCall::detach) from its request. `None`
    /// before that, and if the work has another type.
    #[must_use]
    pub fn detached_work<T: DetachedWork>(&self) -> Option<Arc<T>> {
        let work: Arc<dyn Any + Send + Sync> = Arc::clone(self.parts().detached.get()?) as _;
        work.downcast().ok()
    }
}

impl RequestContext {
    /// Returns the session of the request, to reach the [`Server`], or the client outside of this request. `None` in handlers of a
    /// client.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// let tool = Tool::new("sessions", "Count the sessions", |cx: RequestContext| async move {
    ///     cx.server_session().map_or(0, |session| session.server().sessions().count())
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn server_session(&self) -> Option<ServerSession> {
        ServerSession::of(&self.parts().connection)
    }

    /// Whether the server refuses invalid arguments, even if they could be repaired.
    pub(crate) fn has_strict_arguments(&self) -> bool {
        let session = self.server_session();
        session.is_some_and(|it| it.server().features().has_strict_arguments)
    }

    /// Returns the server that received the request. So a handler that changes the features needs no clone of the server.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// async fn retire(cx: RequestContext) -> oxmcp::Result<&'static str> {
    ///     cx.server()?.remove_tools(["old"]);
    ///     Ok("retired")
    /// }
    /// # let _ = Tool::new("retire", "Remove the old tool", retire);
    /// ```
    ///
    /// # Errors
    /// In a handler of a client.
    pub fn server(&self) -> Result<Server> {
        let session = self
            .server_session()
            .ok_or_else(|| Error::misuse("no server here: the context belongs to a client"))?;
        Ok(session.server())
    }

    /// Notifies subscribed clients that a resource was updated, like [`Server::resource_updated`]. Does nothing in a handler of a
    /// client.
    ///
    /// ```
    /// use oxmcp::{RequestContext, Tool};
    ///
    /// async fn save(cx: RequestContext) -> &'static str {
    ///     cx.resource_updated("notes://today");
    ///     "saved"
    /// }
    /// # let _ = Tool::new("save", "Save the note", save);
    /// ```
    pub fn resource_updated(&self, uri: impl AsRef<str>) {
        if let Ok(server) = self.server() {
            server.resource_updated(uri);
        }
    }

    /// Sends a notification of an extension as part of this request. For servers only.
    ///
    /// A notification sent before the handler returns is written before the response; later ones are dropped.
    ///
    /// ```
    /// # use oxmcp::{RequestContext, protocol::{Notification, NotificationParams}};
    /// # struct Ticked;
    /// # impl Notification for Ticked {
    /// #     const NAME: &'static str = "notifications/com.example/clock/ticked";
    /// #     type Params = NotificationParams;
    /// # }
    /// async fn wind(cx: RequestContext) -> oxmcp::Result<()> {
    ///     cx.notify::<Ticked>(NotificationParams::default()).await
    /// }
    /// # let _ = wind;
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client's revision does not have the notification, or a modern client has not declared
    /// an extension that [requires it](crate::Extension::requires_client). Also if the protocol defines the notification.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for space in the outbox, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = notification_params::<N>(params)?;
        let session = self
            .server_session()
            .ok_or_else(|| Error::misuse("cannot notify: the context belongs to a client"))?;
        let declared = self.client_capabilities().extensions.as_ref();
        let features = session.server().features().clone();
        let extensions = &features.extensions;
        extensions.may_notify_client(N::NAME, self.revision(), declared)?;
        self.send_notification(N::NAME, &params).await
    }

    /// Sends a notification of an extension by its name, with params as JSON, as part of this request: for proxies, which do not
    /// know the types of the extensions that they pass on. For servers only.
    ///
    /// # Errors
    /// If the notification belongs to the protocol itself, or if the params are not an object.
    ///
    /// # Cancel safety
    /// As for [`notify`](Self::notify).
    pub async fn notify_raw(&self, method: impl Into<String>, params: &RawValue) -> Result<()> {
        let method = method.into();
        let params = notification_params_of(&method, params)?;
        self.send_notification(method, &params).await
    }
}

impl Server {
    /// Sets a handler that is called when a client has opened a session and is ready.
    ///
    /// That is when `notifications/initialized` arrives (up to 2025-11-25; modern clients open no session). From then on, the
    /// client can be asked and notified. The handler runs before the handlers of later notifications from the client.
    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    ///
    /// ```
    /// use oxmcp::{Server, ServerSession};
    ///
    /// let server = Server::new("greeter", "1.0.0").on_initialized(|session: ServerSession| async move {
    ///     let name = session.client_info().map_or("a client", |client| &client.name);
    ///     eprintln!("{name} connected");
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    #[doc(alias = "notifications/initialized")]
    pub fn on_initialized<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ServerSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = ServerSession::erased(handler);
        self.with(|features| features.on_initialized = Some(hook))
    }

    /// Returns the open sessions.
    pub fn sessions(&self) -> impl Iterator<Item = ServerSession> + use<> {
        let connections = self.connections();
        connections
            .into_iter()
            .filter_map(|it| ServerSession::of(&it))
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
    /// If the server has a [mistake](Self::check), or the transport does not connect.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection is closed.
    pub async fn connect(&self, transport: impl Transport) -> Result<ServerSession> {
        self.connect_to(transport, Caller::default()).await
    }

    /// Connects to a client whose caller the transport knows.
    pub(crate) async fn connect_to(
        &self,
        mut transport: impl Transport,
        caller: Caller,
    ) -> Result<ServerSession> {
        self.check_built()?;
        let features = self.features();
        let (read, write) = transport.connect(&features.limits).await?;
        let role = ServerRole::over(&transport, self.clone());
        let limits = features.limits.clone();
        let connection = Connection::of(Arc::clone(&role) as _, limits, caller);
        let session = ServerSession::new(Arc::clone(&connection), role);
        self.add_connection(&connection);
        self.begin_serving();
        spawn(drive(connection, read, write));
        Ok(session)
    }

    /// Connects to a client and serves it until it disconnects.
    ///
    /// Requests in flight at that time may finish within [`Limits::drain`](crate::Limits::drain), and fail otherwise. Responses
    /// are written within [`Limits::flush`](crate::Limits::flush), as long as the client reads them. Over standard input and
    /// output, the process is then expected to exit, unless the server has other clients or an HTTP endpoint: running tasks are
    /// handed over to other nodes, and extensions [shut down](crate::Extension::on_shutdown).
    ///
    /// Put blocking work into [`spawn_blocking`](tokio::task::spawn_blocking): a handler that blocks its thread cannot be
    /// cancelled, and tokio waits for it when `main` returns. Over standard input and output, if a handler still blocks its
    /// thread five seconds after this method returned, the process exits with a failure code, so the rest of `main` must not take
    /// longer. A single-threaded runtime does not even notice the end of the input while a handler blocks it. In both cases, a
    /// warning names the handler.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect), and if the connection breaks.
    ///
    /// # Cancel safety
    /// If the future is dropped, the session is closed in the background.
    pub async fn run(&self, transport: impl Transport) -> Result<()> {
        let ends_process = transport.ends_process();
        let session = self.connect(transport).await?;
        let close = CloseOnDrop(&session);
        let result = session.wait().await;
        drop(close);
        session.connection.middleware_ended().await;
        if ends_process && !self.serves_others() {
            self.shut_down().await;
            watchdog::expect_end();
        }
        result
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Sets the handler of [`Server::on_initialized`], with the state as first argument.
    pub fn on_initialized<F, Fut>(&self, handler: F) -> &Self
    where
        F: Fn(State, ServerSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let state = self.state();
        self.role()
            .build(|server| server.on_initialized(move |session| handler(state.clone(), session)));
        self
    }
}

struct CloseOnDrop<'a>(&'a ServerSession);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.connection().begin_close();
    }
}

opaque_debug!(ServerSession, |it| { revision: it.revision(), connection: it.connection });

//! Session of a server with one client: connecting, the facts about the client, notifying it, and closing.

use std::{any::Any, future::ready, sync::Arc};

use oxmcp_protocol::{
    ClientCapabilities, EmptyParams, Implementation, JsonObject, Method, Notification,
    ProgressParams, Revision,
    method::{Ping, Row},
};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    extension::registry::{notification_params, send_notification},
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

/// A server's end of a connection to one client. Cheap to clone; all clones are handles to the same session.
///
/// On one connection a client may open a session with `initialize`, or make modern requests, which need no session, or both.
/// The methods about the client here ([`client_info`](Self::client_info) and so on) return what `initialize` declared; in a
/// handler the [`RequestContext`] returns what applies to the request, in any revision.
#[derive(Clone)]
pub struct ServerSession {
    connection: Arc<Connection>,
    role: Arc<ServerRole>,
}

impl ServerSession {
    pub(crate) fn new(connection: Arc<Connection>, role: Arc<ServerRole>) -> Self {
        Self { connection, role }
    }

    /// The session at a server's end of a connection.
    pub(crate) fn of(connection: &Arc<Connection>) -> Option<Self> {
        let role = Arc::clone(connection.role()).into_any().downcast().ok()?;
        Some(Self::new(Arc::clone(connection.trunk()), role))
    }

    /// Runs a hook with the session at a server's end of a connection. The hook is not called before the future is polled,
    /// since the caller of this function does not catch panics, and the code that polls the future does.
    pub(super) fn run_hook<F>(
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
    pub(super) fn erased<F, Fut>(hook: F) -> SessionHook
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

    pub(super) fn role(&self) -> &ServerRole {
        &self.role
    }

    /// The client that has opened the session with `initialize`.
    pub(super) fn client(&self) -> Option<&Arc<Peer>> {
        self.role.legacy_session().client()
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The server that this session belongs to.
    #[must_use]
    pub fn server(&self) -> Server {
        self.role.server().clone()
    }

    /// The revision that `initialize` negotiated. `None` before that, and for a client that makes only modern requests.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.client().map(|client| client.revision)
    }

    /// The name and version that the client has declared.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.client()?.implementation.as_ref()
    }

    /// The capabilities that the client has declared.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<&ClientCapabilities> {
        self.client().map(|client| &client.capabilities)
    }

    /// Pings the client, and waits for its answer for a minute at most.
    /// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
    ///
    /// # Errors
    /// If the client does not answer, or is modern: servers make no requests to modern clients.
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

    /// Reports the progress of one of the client's requests, by the progress token that came with the request. In a handler,
    /// [`RequestContext::progress`] knows the token; this method is for reports from elsewhere. If no request in flight has the
    /// token, nothing is sent.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// # Errors
    /// If the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for room in the queue, nothing has been sent.
    pub async fn notify_progress(&self, params: ProgressParams) -> Result<()> {
        self.connection.report(params).await
    }

    /// Sends a notification of an extension to a client that has opened a session with `initialize` (2025-11-25 and earlier).
    /// Modern clients are notified by [`RequestContext::notify`] of matters of a request, and by [`Server::publish`] of matters
    /// that they have subscribed to.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern, or its revision does not have the notification
    /// ([`Extension::notifies`](crate::Extension::notifies)). Also if the notification is the protocol's own, or if the session
    /// has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for room in the queue, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let name = N::NAME;
        let params = notification_params::<N>(params)?;
        let modern = "modern clients hear of their requests and subscriptions only: use RequestContext::notify or \
                      Server::publish";
        let client = self.require_client(name, modern)?;
        let declared = client.capabilities.extensions.as_ref();
        let features = self.role.server().features();
        let extensions = &features.extensions;
        extensions.may_notify_client(name, client.revision, declared)?;
        send_notification(self.connection(), name, params, JsonObject::new()).await
    }

    /// The client that has opened the session; only such a client takes requests.
    fn require_client(&self, method: &str, advice: &str) -> Result<&Arc<Peer>> {
        self.client().ok_or_else(|| {
            Error::unsupported(format!(
                "{method} needs a client that opened a session with initialize; {advice}"
            ))
        })
    }

    /// The revision and the capabilities of the client, which must take requests.
    ///
    /// # Errors
    /// [`Error::is_unsupported`] if the client is modern.
    pub(super) fn takes_requests(&self, method: &str) -> Result<&Arc<Peer>> {
        self.require_client(method, "modern clients take no requests")
    }

    /// Checks that the client knows the extension that a message belongs to. `advice` is for clients that opened no session.
    pub(super) fn check_extension(
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

    /// Closes the session: no new requests are begun, and requests in flight may finish within
    /// [`Limits::drain`](crate::Limits::drain) before they are cancelled and answered with an error. The answers are written
    /// within [`Limits::flush`](crate::Limits::flush), as long as the client reads them. Returns when the transport is closed.
    /// Can be called repeatedly and concurrently.
    ///
    /// # Errors
    /// If the connection broke before it could be closed, or the client stopped reading: the error then says how many messages
    /// were not written.
    ///
    /// # Cancel safety
    /// Closing continues in the background if the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection.begin_close();
        self.wait().await
    }

    /// Waits until the session has ended, for any reason.
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
    /// [`MISSING_CLIENT_CAPABILITY`](crate::ErrorCode::MISSING_CLIENT_CAPABILITY), with the missing capabilities, as the error
    /// to answer the request with. Also if the server itself does not have the extension.
    pub fn expect_extension(&self, id: &str) -> Result<()> {
        self.server()?.features().extensions.expect(self, id)
    }

    /// The [state](crate::Extension::state) of an extension of this server. `None` if there is no such extension, or if its
    /// state is of another type.
    #[must_use]
    pub fn extension_state<T: Send + Sync + 'static>(&self, id: &str) -> Option<Arc<T>> {
        self.server().ok()?.extension_state(id)
    }

    /// The work that this handler belongs to since it was [detached](crate::DetachableCall::detach) from its request. `None`
    /// before that, and if the work is of another type.
    #[must_use]
    pub fn detached_work<T: DetachedWork>(&self) -> Option<Arc<T>> {
        let work: Arc<dyn Any + Send + Sync> = Arc::clone(self.parts().detached.get()?) as _;
        work.downcast().ok()
    }
}

impl RequestContext {
    /// The session over which the request came, on a server: to reach the [`Server`] itself, or the client beyond this request.
    /// `None` in the handlers of a client.
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

    /// Whether the server refuses invalid arguments, even if they could be mended.
    pub(super) fn has_strict_arguments(&self) -> bool {
        let session = self.server_session();
        session.is_some_and(|it| it.server().features().has_strict_arguments)
    }

    /// The server that received the request. A handler that changes the features of the server needs no clone of it.
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
            .ok_or_else(|| Error::misuse("the request came to a client, and not to a server"))?;
        Ok(session.server())
    }

    /// Notifies the clients that are subscribed to a resource that it was updated, as [`Server::resource_updated`] does. Does
    /// nothing in a handler of a client.
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

    /// Sends a notification of an extension that belongs to this request. A notification that is sent before the handler
    /// returns is written before the response; one that is sent later is dropped. For servers only.
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
    /// an extension that [requires it](crate::Extension::requires_client). Also if the notification is the protocol's own.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped while it waits for room in the queue, nothing has been sent.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<()> {
        let params = notification_params::<N>(params)?;
        let session = self
            .server_session()
            .ok_or_else(|| Error::misuse("only servers send what belongs to a request"))?;
        let declared = self.client_capabilities().extensions.as_ref();
        let features = session.server().features().clone();
        let extensions = &features.extensions;
        extensions.may_notify_client(N::NAME, self.revision(), declared)?;
        self.send_notification(N::NAME, &params).await
    }
}

impl Server {
    /// Sets the handler that is called when a client has opened a session and is ready, that is when
    /// `notifications/initialized` has arrived (2025-11-25 and earlier; modern clients open no session). From then on the
    /// client can be asked and notified. The handler runs before those of later notifications of the client.
    /// See [initialization](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization).
    ///
    /// ```
    /// use oxmcp::{Server, ServerSession};
    ///
    /// let server = Server::new("greeter", "1.0.0").on_initialized(|session: ServerSession| async move {
    ///     let name = session.client_info().map_or("somebody", |client| &client.name);
    ///     eprintln!("{name} is here");
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

    /// The sessions that are open now.
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
    /// If the server was [built wrongly](Self::check), or the transport does not connect.
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing remains.
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

    /// Connects to a client and serves it until it disconnects. Requests that are in flight then may finish within
    /// [`Limits::drain`](crate::Limits::drain) and are answered with an error otherwise, and all answers are written within
    /// [`Limits::flush`](crate::Limits::flush), as long as the client reads them. Over standard input and output the process is
    /// expected to end then, unless the server has other clients or an HTTP endpoint: tasks that still run are handed over to
    /// other nodes, and extensions [shut down](crate::Extension::on_shutdown).
    ///
    /// Blocking work belongs in [`spawn_blocking`](tokio::task::spawn_blocking): a handler that blocks its thread cannot be
    /// cancelled, and when `main` returns, tokio waits for it. So over standard input and output, if a handler still blocks its
    /// thread five seconds after this returned, the process is ended, with a failure as its exit code: what `main` does then must
    /// not take longer. A runtime with a single thread does not even notice the end of the input while a handler blocks it. In both
    /// cases a warning names the handler.
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
    /// Sets the handler of [`Server::on_initialized`], which takes the state as its first argument.
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

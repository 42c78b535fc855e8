//! The connection, and the types that refer to each other with it: its role, the contexts of its requests, the messages in the
//! middleware.
//!
//! They are defined together because each holds another. Their methods are elsewhere: those of a connection for receiving in
//! `inbound/receive.rs`, for calls in `outbound/call.rs` and for closing in `driver/shutdown.rs`; those of a [`RequestContext`]
//! in `handler/context.rs`, and of [`Request`] and [`Next`] in `middleware/`.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

#[cfg(feature = "server")]
use oxmcp_protocol::InputRequest;
use oxmcp_protocol::{
    ClientCapabilities, ErrorCode, Implementation, LoggingLevel, Payload, ProgressToken, RequestId,
    Revision, TraceContext,
    internal::{RawNotification, RequestParams},
    lenient::Tolerated,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

#[cfg(feature = "server")]
use crate::session::handler::journal::Journal;
#[cfg(feature = "client")]
use crate::transport::traits::UserWaits;
use crate::{
    debug::opaque_debug,
    error::Result,
    limits::Limits,
    session::{
        driver::outbox::Outbox,
        handler::detached::Detached,
        inbound::{batch::Batch, in_flight::InFlight},
        middleware::response::Response,
        notifications::{
            progress_rate::ProgressRate, progress_tokens::ProgressTokens, queue::NotificationQueue,
        },
        outbound::{calls::PendingCalls, deadline::PausedDeadlines, outgoing::Outgoing},
        task::{BoxFuture, Latch},
        tolerance::Tolerance,
    },
    sync::Mutex,
    transport::principal::Principal,
};

/// One connection, or a branch of one: over HTTP each request of a session has its own outbox, and shares the rest with the
/// session.
pub(crate) struct Connection {
    role: Arc<dyn Role>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) outbox: Outbox,
    /// The connection of which this is a branch.
    trunk: Option<Arc<Self>>,
    caller: Caller,
    /// The pending calls, allocated lazily: most connections of servers make none.
    calls: OnceLock<Box<PendingCalls>>,
    in_flight: InFlight,
    progress_tokens: ProgressTokens,
    notifications: OnceLock<Arc<NotificationQueue>>,
    paused_deadlines: PausedDeadlines,
    /// The runtime of the driver.
    pub(crate) runtime: Handle,
    /// The code of the last error response, or 0.
    last_error: AtomicI64,
    /// Whether reading from the peer is paused.
    held: AtomicBool,
    /// Whether other nodes notify the same client, too.
    #[cfg(feature = "http-server")]
    is_shared: AtomicBool,
    /// The state of its shutdown; see `driver/shutdown.rs`.
    pub(crate) shutdown: Shutdown,
    /// The first line from the peer that was not a message. It often shows why the connection does not work.
    pub(crate) stray_line: Mutex<Option<String>>,
}

/// The state of a connection's shutdown.
#[derive(Default)]
pub(crate) struct Shutdown {
    /// Set when this side wants to close.
    pub(crate) closing: Latch,
    /// A callback for that moment, if no driver waits for it.
    #[cfg(feature = "http-server")]
    pub(crate) on_closing: Mutex<Option<OnClosing>>,
    /// Set when the driver has ended. `outcome` then has the reason.
    pub(crate) ended: Latch,
    pub(crate) outcome: OnceLock<Outcome>,
}

/// A callback for when a connection must close.
#[cfg(feature = "http-server")]
pub(crate) type OnClosing = Box<dyn FnOnce() + Send>;

/// The reason why a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// One of the two sides closed it.
    Closed,
    /// The connection failed, with this message.
    Failed(String),
}

/// The caller: the sender of the messages on a connection, as far as the transport knows. Over pipes nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The principal that authentication has established.
    pub(crate) principal: Option<Principal>,
    /// The transport's own request that carried the message.
    #[cfg(feature = "http-server")]
    pub(crate) request: Option<Arc<dyn RequestHead>>,
    /// The trace context of that request, for messages without their own.
    pub(crate) trace: Option<Box<TraceContext>>,
    /// Whether no other message can arrive on this connection before the response, so that a slow handler delays none.
    pub(crate) is_alone: bool,
}

/// The head of an HTTP request that carried messages.
#[cfg(feature = "http-server")]
pub(crate) trait RequestHead: Send + Sync {
    fn parts(&self) -> &http::request::Parts;
}

#[cfg(feature = "http-server")]
impl fmt::Debug for dyn RequestHead {
    /// Nothing of it is shown: its headers contain the caller's token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestHead")
    }
}

impl Connection {
    /// A connection that will be driven on the current runtime.
    pub(crate) fn new(role: Arc<dyn Role>, limits: impl Into<Arc<Limits>>) -> Arc<Self> {
        Self::of(role, limits.into(), Caller::default())
    }

    /// Like [`new`](Self::new), for a known caller.
    pub(crate) fn of(role: Arc<dyn Role>, limits: Arc<Limits>, caller: Caller) -> Arc<Self> {
        let max_unsent = limits.max_unsent_bytes;
        Self::build(role, limits, max_unsent, caller, None)
    }

    /// Reads params or a result of the peer.
    ///
    /// # Errors
    /// If the text cannot be read, not even leniently.
    pub(crate) fn read<T: Payload + DeserializeOwned>(
        &self,
        method: &str,
        json: &str,
    ) -> serde_json::Result<T> {
        self.read_noting(method, json, |_| ())
    }

    /// [`read`](Self::read), with what was tolerated for `note`.
    ///
    /// # Errors
    /// If the text cannot be read, not even leniently.
    pub(crate) fn read_noting<T: Payload + DeserializeOwned>(
        &self,
        method: &str,
        json: &str,
        note: impl FnOnce(&[Tolerated]),
    ) -> serde_json::Result<T> {
        let role = self.role();
        role.tolerance()
            .read(|| role.peer_name(), method, json, note)
    }

    /// Reads what could not be read strictly, if anything is tolerated: `read` returns the value with what was tolerated.
    pub(crate) fn read_by<T>(
        &self,
        method: &str,
        read: impl FnOnce() -> Option<(T, Vec<Tolerated>)>,
    ) -> Option<T> {
        let role = self.role();
        role.tolerance().read_by(|| role.peer_name(), method, read)
    }

    /// Checks an answer of the peer against its question, and normalizes it. One that does not fit is read leniently, if that is
    /// tolerated.
    ///
    /// # Errors
    /// If the answer does not fit, with a description of the problem.
    #[cfg(feature = "server")]
    pub(crate) fn check_answer(
        &self,
        request: &InputRequest,
        answer: &RawValue,
        revision: Revision,
    ) -> std::result::Result<Box<RawValue>, String> {
        request.check_answer(answer, revision).or_else(|problem| {
            let mend = || request.mend_answer(answer, revision);
            let mended = self.read_by(request.method(), mend).ok_or(problem)?;
            request.check_answer(&mended, revision)
        })
    }

    /// A branch of this connection: output for the requests that arrive on it goes to its own outbox. It has no driver.
    pub(crate) fn branch(self: &Arc<Self>, caller: Caller) -> Arc<Self> {
        let (role, limits) = (Arc::clone(self.role()), Arc::clone(&self.limits));
        let max_unsent = limits.max_unsent_bytes;
        let branch = Self::build(role, limits, max_unsent, caller, Some(Arc::clone(self)));
        #[cfg(feature = "http-server")]
        if let Some(budget) = self.outbox.budget() {
            branch.outbox.count_in(budget, true);
        }
        branch
    }

    /// A connection that is only the trunk of its branches, for messages that belong to no request. So `max_unsent` is small.
    #[cfg(feature = "http-server")]
    pub(crate) fn trunk_of(
        role: Arc<dyn Role>,
        limits: Arc<Limits>,
        max_unsent: usize,
    ) -> Arc<Self> {
        Self::build(role, limits, max_unsent, Caller::default(), None)
    }

    fn build(
        role: Arc<dyn Role>,
        limits: Arc<Limits>,
        max_unsent: usize,
        caller: Caller,
        trunk: Option<Arc<Self>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            role,
            outbox: Outbox::new(max_unsent),
            trunk,
            caller,
            calls: OnceLock::new(),
            in_flight: InFlight::new(limits.max_in_flight),
            progress_tokens: ProgressTokens::default(),
            notifications: OnceLock::new(),
            paused_deadlines: PausedDeadlines::default(),
            runtime: Handle::current(),
            last_error: AtomicI64::new(0),
            held: AtomicBool::new(false),
            #[cfg(feature = "http-server")]
            is_shared: AtomicBool::new(false),
            shutdown: Shutdown::default(),
            stray_line: Mutex::default(),
            limits,
        })
    }

    pub(crate) fn role(&self) -> &Arc<dyn Role> {
        &self.role
    }

    /// The role, if it is of this type: a server's or a client's.
    ///
    /// This is the only downcast of a role, and cannot be avoided: a handler's context leads to its server, whose features
    /// contain the handler, so one of these types must not name the next.
    pub(crate) fn role_as<R: Role>(&self) -> Option<Arc<R>> {
        let role: Arc<dyn Any + Send + Sync> = Arc::clone(&self.role) as _;
        role.downcast().ok()
    }

    /// The connection of which this is a branch, or this one if it is a trunk.
    pub(crate) fn trunk(self: &Arc<Self>) -> &Arc<Self> {
        self.trunk.as_ref().unwrap_or(self)
    }

    /// The part that all branches share: the trunk.
    pub(crate) fn shared(&self) -> &Self {
        self.trunk.as_deref().unwrap_or(self)
    }

    /// Records that from here on other nodes notify the same client, too.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// Whether other nodes notify the same client, too.
    #[cfg(feature = "server")]
    pub(crate) fn is_shared(&self) -> bool {
        #[cfg(feature = "http-server")]
        return self.is_shared.load(Ordering::Relaxed);
        #[cfg(not(feature = "http-server"))]
        false
    }

    /// The calls of this side that wait for an answer.
    pub(crate) fn calls(&self) -> &PendingCalls {
        self.shared().calls.get_or_init(Box::default)
    }

    /// The peer's requests that are being served.
    pub(crate) fn in_flight(&self) -> &InFlight {
        &self.shared().in_flight
    }

    /// The peer's requests in flight that have a progress token.
    pub(crate) fn progress_tokens(&self) -> &ProgressTokens {
        &self.shared().progress_tokens
    }

    /// The queue of the users' handlers of notifications.
    pub(crate) fn notifications(&self) -> &Arc<NotificationQueue> {
        let shared = self.shared();
        shared
            .notifications
            .get_or_init(|| NotificationQueue::new(&shared.limits, &self.runtime))
    }

    /// The notification queue, if an answer that arrives now may have to wait until handlers have begun.
    pub(crate) fn awaited_notifications(&self) -> Option<&Arc<NotificationQueue>> {
        let queue = self.shared().notifications.get();
        queue.filter(|queue| queue.is_awaited())
    }

    /// Pauses the timeouts of calls while the transport waits for a person.
    #[cfg(feature = "client")]
    pub(crate) fn pause_for(&self, waits: UserWaits) {
        self.shared().paused_deadlines.count_waits(waits);
    }

    /// The questions of the peer during which no call of this side times out.
    pub(crate) fn paused_deadlines(&self) -> &PausedDeadlines {
        &self.shared().paused_deadlines
    }

    /// Records the code of an error answer.
    pub(crate) fn note_failure(&self, code: ErrorCode) {
        self.last_error.store(code.value(), Ordering::Relaxed);
    }

    /// The code of the last error answer.
    #[cfg(feature = "http-server")]
    pub(crate) fn failed_with(&self) -> Option<ErrorCode> {
        let code = self.last_error.load(Ordering::Relaxed);
        (code != 0).then(|| ErrorCode::from(code))
    }

    /// The caller: the sender of the messages on this connection.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Pauses reading from the peer until the returned guard is dropped, because later messages rely on the current work.
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        self.held.store(true, Ordering::Relaxed);
        Hold(Arc::clone(self))
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }
}

/// A guard that pauses reading from the peer; created by [`Connection::hold`].
#[derive(Debug)]
pub(crate) struct Hold(Arc<Connection>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Relaxed);
        self.0.outbox.wake_driver();
    }
}

opaque_debug!(Connection, |it| {
    side: it.role.side(),
    unsent: it.outbox.unsent(),
    closing: it.shared().shutdown.closing.is_set(),
    ended: it.shared().shutdown.ended.is_set(),
});

/// A client or a server at one end of one connection.
///
/// Its implementations dispatch requests further, in `server/` and in `client/`.
pub(crate) trait Role: Any + fmt::Debug + Send + Sync {
    fn side(&self) -> Side;

    /// The revision of the session, once it is negotiated.
    fn revision(&self) -> Option<Revision>;

    /// The tolerance for messages of the peer that do not follow the specification.
    fn tolerance(&self) -> Arc<Tolerance>;

    /// The name of the peer, for logs.
    fn peer_name(&self) -> Option<String>;

    /// Serves a request, through [`run`](crate::session::inbound::run::run) or
    /// [`respond_inline`](crate::session::inbound::run::respond_inline). Does not block.
    fn request(&self, connection: &Arc<Connection>, arrival: Arrival<'_>);

    /// Takes a notification. Its effects on the session are complete when this returns; users' handlers wait in the
    /// [`NotificationQueue`]. `sender` is given if the transport knows the sender of each message.
    fn notification(
        &self,
        connection: &Arc<Connection>,
        notification: RawNotification<'_, RequestParams<'_>>,
        sender: Option<&Principal>,
    );

    /// Handles a cancellation that names none of the peer's own requests. Returns whether it names a request of this side:
    /// servers end the subscriptions of clients in this way.
    fn ended(&self, connection: &Arc<Connection>, id: &RequestId) -> bool {
        let _ = (connection, id);
        false
    }

    /// Whether the peer speaks a revision with batches.
    fn has_batches(&self) -> bool {
        false
    }

    /// The `serverInfo` that is added to every result, as a JSON object, if the peer expects one.
    fn server_info(&self) -> Option<&str> {
        None
    }

    /// Whether there is incoming middleware.
    fn has_incoming(&self) -> bool {
        false
    }

    /// Whether there is outgoing middleware.
    fn has_outgoing(&self) -> bool {
        false
    }

    /// Passes a message through the outgoing middleware, which ends at the outlet of the message.
    fn pass_outgoing(&self, message: Outgoing) -> BoxFuture<Result<Response>> {
        message.send()
    }

    /// The `_meta` members that every request has, as JSON members without braces.
    fn envelope(&self) -> Option<&str> {
        None
    }

    /// Whether the session survives the end of this connection and continues over another one to the same peer: it is open, and
    /// the peer keeps none of its state.
    fn outlives_peer(&self) -> bool {
        false
    }

    /// Handles the restart of the peer, if the session [outlives](Self::outlives_peer) it.
    #[cfg(feature = "client")]
    fn restarted(&self, _connection: &Arc<Connection>) {}

    /// Whether a key of `_meta` belongs to an extension of this side.
    fn has_meta_key(&self, key: &str) -> bool;

    /// Cleans up after the connection has ended.
    fn closed(&self, connection: &Arc<Connection>);
}

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// An admitted request that waits to be served.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RequestParams<'a>>,
    /// The sender, if the transport knows the sender of each message.
    pub(crate) sender: Option<Principal>,
    /// The batch that the answer belongs to.
    pub(crate) batch: Option<Arc<Batch>>,
}

/// The context of a request, with which its handler learns about the caller and sends messages.
///
/// A handler that needs it takes it as the first argument. It is cheap to clone, and may outlive the handler; later messages
/// are dropped.
///
/// ```
/// use oxmcp::{RequestContext, Tool, ToolError};
///
/// #[derive(serde::Deserialize, oxmcp::JsonSchema)]
/// struct Copy { files: u32 }
///
/// async fn copy(cx: RequestContext, Copy { files }: Copy) -> Result<String, ToolError> {
///     for file in 1..=files {
///         // … copy it …
///         cx.progress(file).total(files).await;
///     }
///     Ok(format!("copied {files} files"))
/// }
/// # let _ = Tool::new("copy", "Copy files", copy);
/// ```
#[derive(Clone)]
pub struct RequestContext {
    pub(crate) parts: Arc<ContextParts>,
}

impl RequestContext {
    /// Returns the authenticated caller. `None` over stdio, and on endpoints without authentication.
    ///
    /// ```
    /// use oxmcp::{Principal, RequestContext, Tool};
    ///
    /// let tool = Tool::new("whoami", "Say who is calling", |cx: RequestContext| async move {
    ///     cx.principal().map_or("anonymous", Principal::as_str).to_owned()
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.parts().principal()
    }
}

/// The shared data of a [`RequestContext`].
#[derive(Debug)]
pub(crate) struct ContextParts {
    pub(crate) connection: Arc<Connection>,
    /// `None` for a notification.
    pub(crate) id: Option<RequestId>,
    /// The sender, if the transport knows the sender of each message. Otherwise the connection's caller counts.
    pub(crate) sender: Option<Principal>,
    pub(crate) batch: Option<Arc<Batch>>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) progress_rate: ProgressRate,
    pub(crate) log_level: Option<LoggingLevel>,
    /// The request's `_meta`, as it arrived.
    pub(crate) meta: Option<Box<str>>,
    pub(crate) cancel: Latch,
    /// The questions of the handler, once it may have asked one.
    #[cfg(feature = "server")]
    pub(crate) journal: OnceLock<Arc<Journal>>,
    /// Receives the handler's progress and questions after it is detached from its request.
    pub(crate) detached: Detached,
    /// The client's metadata for the task of the request (2025-11-25 only).
    #[cfg(feature = "server")]
    pub(crate) task: OnceLock<oxmcp_protocol::TaskMetadata>,
    /// Set with the answer, which no more messages of the request may follow.
    pub(crate) answered: AtomicBool,
}

/// The peer's metadata: sent with each request in modern revisions, or when the session opens in legacy ones.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) revision: Revision,
    pub(crate) implementation: Option<Implementation>,
    /// The capabilities of the client, which is the peer or, as declared to the server, this side.
    pub(crate) capabilities: ClientCapabilities,
}

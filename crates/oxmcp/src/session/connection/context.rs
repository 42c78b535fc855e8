//! The context of a request, with which its handler learns about the caller and sends messages.

#[cfg(feature = "server")]
use std::sync::OnceLock;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

#[cfg(feature = "server")]
use oxmcp_protocol::TaskMetadata;
use oxmcp_protocol::{
    ClientCapabilities, Implementation, LoggingLevel, Meta, ProgressToken, RequestId, Revision,
};

#[cfg(feature = "server")]
use crate::session::handler::journal::Journal;
use crate::{
    debug::opaque_debug,
    session::{
        connection::role::Connection, handler::detached::Detached, inbound::batch::Batch,
        notifications::progress_rate::ProgressRate, task::Latch,
    },
    transport::principal::Principal,
};

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
    pub(crate) fn new(parts: Arc<ContextParts>) -> Self {
        Self { parts }
    }

    pub(crate) fn parts(&self) -> &Arc<ContextParts> {
        &self.parts
    }

    /// Whether a slow handler delays no other messages.
    pub(crate) fn is_alone(&self) -> bool {
        self.parts.connection.caller().is_alone
    }

    /// The approximate number of bytes from the peer that are kept with the context.
    pub(crate) fn bytes_kept(&self) -> usize {
        let id = self.parts.id.as_ref().and_then(RequestId::as_str);
        id.map_or(0, str::len) + self.parts.meta.as_ref().map_or(0, |meta| meta.len())
    }

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

    /// Returns the revision in which this request is served.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.parts.peer.revision
    }

    /// Returns the ID of the request. `None` for a notification. For a question in the result of a modern server, it is the
    /// question's key.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        self.parts.id.as_ref()
    }

    /// Returns the peer's name and version, as it declared them. They are not verified.
    #[must_use]
    pub fn peer_info(&self) -> Option<&Implementation> {
        self.parts.peer.implementation.as_ref()
    }

    /// Returns the client's capabilities, as it declared them for this request.
    #[must_use]
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.parts.peer.capabilities
    }

    /// Returns the request's [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
    #[must_use]
    pub fn meta(&self) -> Meta {
        let meta = self.parts.meta.as_ref();
        meta.and_then(|meta| serde_json::from_str(meta).ok())
            .unwrap_or_default()
    }

    /// Returns whether the caller has cancelled the request, or the session ends.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.parts.cancel.is_set()
    }

    /// Waits until the caller cancels the request or the session ends. A handler that does not wait for this is dropped at its
    /// next `await` after [`Limits::cancel_grace`](crate::Limits::cancel_grace).
    /// See [cancellation](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation).
    ///
    /// # Cancel safety
    /// Cancel safe.
    #[doc(alias = "notifications/cancelled")]
    pub async fn cancelled(&self) {
        self.parts.cancel.wait().await;
    }

    /// Returns whether progress is wanted: the caller asked for it, or the handler is or may be
    /// [detached](crate::traits::DetachedWork) from its request.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.parts.progress_token.is_some() || self.parts.detached.wants_progress()
    }
}

opaque_debug!(RequestContext, |it| { id: it.parts.id, revision: it.revision() });

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
    pub(crate) task: OnceLock<TaskMetadata>,
    /// Set with the answer, which no more messages of the request may follow.
    pub(crate) answered: AtomicBool,
}

impl ContextParts {
    /// A context for a message that `peer` sent, to be completed by the caller.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        id: Option<RequestId>,
        peer: Arc<Peer>,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            id,
            sender: None,
            batch: None,
            peer,
            progress_token: None,
            progress_rate: ProgressRate::default(),
            log_level: None,
            meta: None,
            cancel: Latch::default(),
            #[cfg(feature = "server")]
            journal: OnceLock::new(),
            detached: Detached::default(),
            #[cfg(feature = "server")]
            task: OnceLock::new(),
            answered: AtomicBool::new(false),
        }
    }

    /// The questions of the handler.
    #[cfg(feature = "server")]
    pub(crate) fn journal(&self) -> &Arc<Journal> {
        self.journal.get_or_init(Arc::default)
    }

    /// The authenticated caller.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        let of_connection = || self.connection.caller().principal.as_ref();
        self.sender.as_ref().or_else(of_connection)
    }

    /// Records that the response is being written. Called under the outbox's lock, like [`is_over`](Self::is_over), so that
    /// both agree with the order on the wire.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// The connection for output: the branch of the request, and for a notification the trunk.
    pub(crate) fn outlet(&self) -> &Arc<Connection> {
        match self.id {
            Some(_) => &self.connection,
            None => self.connection.trunk(),
        }
    }

    /// Marks the request as answered. Returns true for the first caller, the only one that may answer it.
    pub(crate) fn claim_answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    /// Whether the request was answered or cancelled, so that no more messages are sent for it.
    pub(crate) fn is_over(&self) -> bool {
        self.answered.load(Ordering::Relaxed) || self.cancel.is_set()
    }
}

/// The peer's metadata: sent with each request in modern revisions, or when the session opens in legacy ones.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) revision: Revision,
    pub(crate) implementation: Option<Implementation>,
    /// The capabilities of the client, which is the peer or, as declared to the server, this side.
    pub(crate) capabilities: ClientCapabilities,
}

impl Peer {
    /// A peer about which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            revision: Revision::LATEST_LEGACY,
            implementation: None,
            capabilities: ClientCapabilities::default(),
        }
    }

    /// A peer about which it is only known that it is modern.
    pub(crate) fn unknown_modern() -> Self {
        Self {
            revision: Revision::LATEST,
            ..Self::unknown()
        }
    }
}

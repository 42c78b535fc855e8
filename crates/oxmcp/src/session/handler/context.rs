//! What a handler can know and do while it serves one request.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    jsonrpc::RequestId,
    protocol::{ClientCapabilities, Implementation, LoggingLevel, Meta, ProgressToken, Revision},
    session::{Batch, Connection, Progress, ProgressAmount, cancel::CancelSignal},
};

/// What a handler can know and do while it serves one request.
///
/// A handler takes it as its first argument where it wants it. It is cheap to clone, and may outlive the handler; then
/// what it sends is dropped.
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
    parts: Arc<ContextParts>,
}

/// The inside of a [`RequestContext`].
#[derive(Debug)]
pub(crate) struct ContextParts {
    pub(crate) connection: Arc<Connection>,
    /// `None` for a notification.
    pub(crate) id: Option<RequestId>,
    pub(crate) batch: Option<Arc<Batch>>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) log_level: Option<LoggingLevel>,
    /// The request's `_meta`, as it arrived.
    pub(crate) meta: Option<Box<str>>,
    pub(crate) cancel: CancelSignal,
    /// What the role keeps for the handler, where it keeps anything.
    pub(crate) kept: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Set with the answer: nothing that belongs to the request may follow it.
    answered: AtomicBool,
}

impl ContextParts {
    /// The context of what `peer` sent, to be filled in.
    pub(crate) fn new(
        connection: &Arc<Connection>,
        id: Option<RequestId>,
        peer: Arc<Peer>,
    ) -> Self {
        Self {
            connection: Arc::clone(connection),
            id,
            batch: None,
            peer,
            progress_token: None,
            log_level: None,
            meta: None,
            cancel: CancelSignal::default(),
            kept: OnceLock::new(),
            answered: AtomicBool::new(false),
        }
    }

    /// The answer is being written. Called under the outbox's lock, as [`is_over`](Self::is_over) is: so what one of
    /// them sees is what is on the wire.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Where what is sent goes: to the stream of the request, and for a notification to that of its session.
    pub(crate) fn outlet(&self) -> &Arc<Connection> {
        match self.id {
            Some(_) => &self.connection,
            None => self.connection.trunk(),
        }
    }

    /// Whether nobody wants to hear of the request any more.
    pub(crate) fn is_over(&self) -> bool {
        self.answered.load(Ordering::Relaxed) || self.cancel.is_set()
    }
}

/// What the peer said of itself: with each request where the revision is modern, else when the session was opened.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) revision: Revision,
    pub(crate) implementation: Option<Implementation>,
    /// What the client can do, be it the peer or, as the server was told, this side.
    pub(crate) capabilities: ClientCapabilities,
}

impl Peer {
    /// A peer of which nothing is known.
    pub(crate) fn stranger() -> Self {
        Self {
            revision: Revision::LATEST_LEGACY,
            implementation: None,
            capabilities: ClientCapabilities::default(),
        }
    }

    /// A peer of which nothing is known but that it is modern.
    pub(crate) fn modern_stranger() -> Self {
        Self {
            revision: Revision::LATEST,
            ..Self::stranger()
        }
    }
}

impl RequestContext {
    pub(crate) fn new(parts: Arc<ContextParts>) -> Self {
        Self { parts }
    }

    pub(crate) fn parts(&self) -> &Arc<ContextParts> {
        &self.parts
    }

    /// Whether nothing is held up while the handler takes its time.
    pub(crate) fn is_alone(&self) -> bool {
        self.parts.connection.origin().is_alone
    }

    /// How many bytes of the peer are kept with it, roughly.
    pub(crate) fn bytes_kept(&self) -> usize {
        let id = match &self.parts.id {
            Some(RequestId::String(id)) => id.len(),
            _ => 0,
        };
        id + self.parts.meta.as_ref().map_or(0, |meta| meta.len())
    }

    /// The revision in which this request is served.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.parts.peer.revision
    }

    /// The id of the request. `None` where a notification is being handled. What a modern server asks within a result has
    /// the key of the question for its id.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        self.parts.id.as_ref()
    }

    /// Name and version of the peer, as it says itself. Nothing vouches for them.
    #[must_use]
    pub fn peer_info(&self) -> Option<&Implementation> {
        self.parts.peer.implementation.as_ref()
    }

    /// What the client can do, as it declared for this request.
    #[must_use]
    pub fn client_capabilities(&self) -> &ClientCapabilities {
        &self.parts.peer.capabilities
    }

    /// The request's [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
    #[must_use]
    pub fn meta(&self) -> Meta {
        let meta = self.parts.meta.as_ref();
        meta.and_then(|meta| serde_json::from_str(meta).ok())
            .unwrap_or_default()
    }

    /// Whether the caller has cancelled the request, or the session ends.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.parts.cancel.is_set()
    }

    /// Waits until the caller cancels the request or the session ends. A handler that does not listen is dropped at its
    /// next `await` after [`Limits::cancel_grace`](crate::Limits::cancel_grace).
    /// See [cancellation](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/cancellation).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn cancelled(&self) {
        self.parts.cancel.wait().await;
    }

    /// Reports progress: how much is done. Say more of it, then await it.
    ///
    /// It is sent only if the caller asked for progress, and costs next to nothing if not. It waits while the caller
    /// reads slower than this writes.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// ```no_run
    /// # async fn handler(cx: oxmcp::RequestContext) {
    /// cx.progress(3).total(10).message("reading the third file").await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits, nothing has been sent.
    pub fn progress(&self, done: impl ProgressAmount) -> Progress<'_> {
        Progress::new(self, done.to_f64())
    }

    /// Whether the caller asked for progress.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.parts.progress_token.is_some()
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("id", &self.parts.id)
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

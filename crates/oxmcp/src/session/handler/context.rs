//! The context of a request: what a handler can know and do while it serves one.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use oxmcp_protocol::{ClientCapabilities, Implementation, Meta, RequestId, Revision};

use crate::{
    debug::opaque_debug,
    session::{
        connection::{Connection, ContextParts, Peer, RequestContext},
        handler::detached::Detached,
        notifications::progress_rate::ProgressRate,
        task::Latch,
    },
    transport::principal::Principal,
};

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
            sender: None,
            batch: None,
            peer,
            progress_token: None,
            progress_rate: ProgressRate::default(),
            log_level: None,
            meta: None,
            cancel: Latch::default(),
            role_state: OnceLock::new(),
            detached: Detached::default(),
            #[cfg(feature = "server")]
            task: OnceLock::new(),
            answered: AtomicBool::new(false),
        }
    }

    /// The caller, as authentication has established it.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        let of_connection = || self.connection.caller().principal.as_ref();
        self.sender.as_ref().or_else(of_connection)
    }

    /// The answer is being written. Called under the outbox's lock, as [`is_over`](Self::is_over) is: so what one of
    /// them sees is what is on the wire.
    pub(crate) fn set_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// The connection that what is sent goes to: the branch of the request, and for a notification the trunk.
    pub(crate) fn outlet(&self) -> &Arc<Connection> {
        match self.id {
            Some(_) => &self.connection,
            None => self.connection.trunk(),
        }
    }

    /// Marks the request as answered, by the one who asks first: nobody else may answer it then.
    pub(in crate::session) fn claim_answer(&self) -> bool {
        !self.answered.swap(true, Ordering::AcqRel)
    }

    /// Whether the request was answered or cancelled, so that nothing more is sent for it.
    pub(crate) fn is_over(&self) -> bool {
        self.answered.load(Ordering::Relaxed) || self.cancel.is_set()
    }
}

impl Peer {
    /// A peer of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            revision: Revision::LATEST_LEGACY,
            implementation: None,
            capabilities: ClientCapabilities::default(),
        }
    }

    /// A peer of which nothing is known but that it is modern.
    pub(crate) fn unknown_modern() -> Self {
        Self {
            revision: Revision::LATEST,
            ..Self::unknown()
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

    /// Whether a slow handler holds up nothing.
    pub(crate) fn is_alone(&self) -> bool {
        self.parts.connection.caller().is_alone
    }

    /// How many bytes of the peer are kept with it, roughly.
    pub(crate) fn bytes_kept(&self) -> usize {
        let id = self.parts.id.as_ref().and_then(RequestId::as_str);
        id.map_or(0, str::len) + self.parts.meta.as_ref().map_or(0, |meta| meta.len())
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
    #[doc(alias = "notifications/cancelled")]
    pub async fn cancelled(&self) {
        self.parts.cancel.wait().await;
    }

    /// Whether anybody is told of progress: the caller asked for it, or the handler goes on [detached](crate::traits::DetachedWork)
    /// from its request, or may yet.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.parts.progress_token.is_some() || self.parts.detached.wants_progress()
    }
}

opaque_debug!(RequestContext, |it| { id: it.parts.id, revision: it.revision() });

//! A server's end of a session.

use std::{fmt, sync::Arc};

use crate::{
    Error, Result, Revision,
    protocol::{
        ClientCapabilities, EmptyParams, Implementation, Method, ProgressParams, method::Ping,
    },
    server::{Server, peer::ServerPeer, sessions::WeakSession},
    session::{CallOptions, Connection, Outcome, RequestContext},
};

/// A server's end of a connection to one client. Cheap to clone; all clones are the same session.
///
/// On one pipe a client may open a session with `initialize`, or make modern requests that know of no session, or both.
/// What this says of the client ([`client_info`](Self::client_info) and so on) is what `initialize` said; in a handler
/// the [`RequestContext`] says it for the request, whatever the revision.
#[derive(Clone)]
pub struct ServerSession {
    connection: Arc<Connection>,
    peer: Arc<ServerPeer>,
}

impl ServerSession {
    pub(crate) fn new(connection: Arc<Connection>, peer: Arc<ServerPeer>) -> Self {
        Self { connection, peer }
    }

    /// The session at a server's end of a connection.
    pub(crate) fn of(connection: &Arc<Connection>) -> Option<Self> {
        let peer = Arc::clone(connection.role()).into_any().downcast().ok()?;
        Some(Self::new(Arc::clone(connection.trunk()), peer))
    }

    pub(super) fn downgrade(&self) -> WeakSession {
        (Arc::downgrade(&self.connection), Arc::downgrade(&self.peer))
    }

    pub(crate) fn peer(&self) -> &ServerPeer {
        &self.peer
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The server that this session belongs to.
    #[must_use]
    pub fn server(&self) -> Server {
        self.peer.server().clone()
    }

    /// The revision that `initialize` agreed on. `None` before that, and for a client that is modern throughout.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.peer.callers().legacy().map(|peer| peer.revision)
    }

    /// Name and version of the client, as it says itself.
    #[must_use]
    pub fn client_info(&self) -> Option<&Implementation> {
        self.peer.callers().legacy()?.implementation.as_ref()
    }

    /// What the client can do.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<&ClientCapabilities> {
        self.peer.callers().legacy().map(|peer| &peer.capabilities)
    }

    /// Asks the client for a sign of life, and waits for it for a minute at most.
    /// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
    ///
    /// # Errors
    /// Where the client does not answer, or is modern: then servers make no requests.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call on the wire.
    pub async fn ping(&self) -> Result<()> {
        self.legacy_only(Ping::NAME)?;
        let options = CallOptions::default();
        self.connection
            .call(Ping::NAME, EmptyParams::default(), options)
            .await
            .map(drop)
    }

    /// Tells the client how far a request of its is, by the token that came with it. In a handler,
    /// [`RequestContext::progress`] knows the token; this is for who reports on from elsewhere. Where no request that is being
    /// served came with the token, nothing is sent.
    /// See [progress](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress).
    ///
    /// # Errors
    /// Where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify_progress(&self, params: ProgressParams) -> Result<()> {
        self.connection.report(params).await
    }

    fn legacy_only(&self, method: &str) -> Result<()> {
        if self.peer.callers().legacy().is_some() {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{method} needs a client that opened a session with initialize; modern clients take no requests"
        )))
    }

    /// Closes the session: nothing new is begun, what runs may finish within
    /// [`Limits::drain`](crate::Limits::drain), then it is cancelled. Returns when the transport is closed. It may be
    /// called again, and by several at once.
    ///
    /// # Errors
    /// Where the connection broke before it could be closed.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection.begin_close();
        self.wait().await
    }

    /// Waits until the session has ended, whoever ends it.
    ///
    /// # Errors
    /// Where the connection broke.
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

impl RequestContext {
    /// The session that the request came over, on a server: for the [`Server`] itself, and for what concerns the client
    /// beyond the request. `None` where a client handles what a server sent.
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
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSession")
            .field("revision", &self.revision())
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

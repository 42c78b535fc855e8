//! A client's end of a session.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use crate::{
    client::{
        client::Client,
        peer::{ClientPeer, Negotiated},
    },
    error::{Error, Result},
    protocol::{
        ClientCapabilities, Implementation, Notification, ProgressParams, Revision,
        ServerCapabilities, method,
    },
    session::{Connection, Outcome, RequestContext},
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

/// Closes the session when it is dropped, with the last session that refers to it.
struct Handle {
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connection.begin_close();
        self.peer.client().response_cache().forget(self.peer.seat());
    }
}

/// A session that others may hold on to or not.
#[derive(Clone)]
pub(crate) struct WeakSession(Weak<Handle>);

impl WeakSession {
    /// The session, while it is open and somebody holds on to it.
    pub(crate) fn upgrade(&self) -> Option<ClientSession> {
        let handle = self.0.upgrade()?;
        (!handle.connection.is_ended()).then_some(ClientSession { handle })
    }

    /// Whether it is the session over `connection`, or of nobody any more.
    pub(crate) fn is_over(&self, connection: &Arc<Connection>) -> bool {
        let handle = self.0.upgrade();
        handle.is_none_or(|handle| Arc::ptr_eq(&handle.connection, connection))
    }
}

impl ClientSession {
    pub(crate) fn new(connection: Arc<Connection>, peer: Arc<ClientPeer>) -> Self {
        Self {
            handle: Arc::new(Handle { connection, peer }),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.handle))
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.handle.connection
    }

    /// What the server was told that this client can do.
    pub(crate) fn declared(&self) -> &ClientCapabilities {
        &self.negotiated().declared
    }

    pub(crate) fn peer(&self) -> &Arc<ClientPeer> {
        &self.handle.peer
    }

    /// How long a call may take that is not told otherwise.
    pub(crate) fn default_timeout(&self) -> Duration {
        self.handle.peer.client().for_calls().timeout()
    }

    fn negotiated(&self) -> &Negotiated {
        self.handle
            .peer
            .negotiated()
            .expect("a session is handed out after it was negotiated")
    }

    /// The client that this session belongs to.
    #[must_use]
    pub fn client(&self) -> Client {
        self.handle.peer.client().clone()
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.negotiated().revision
    }

    /// Name and version of the server, as it says itself. Modern servers need not say.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.negotiated().server_info.as_ref()
    }

    /// What the server can do.
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.negotiated().capabilities
    }

    /// How to use the server, for a model to read.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.negotiated().instructions.as_deref()
    }

    /// Tells the server how far a request of its is, by the token that came with it (2025-11-25 and earlier: modern
    /// servers make no requests). Where no request that is being served came with the token, nothing is sent.
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where the server is modern; and where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
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

    /// Closes the session: calls in flight may finish within [`Limits::drain`](crate::Limits::drain), with what the server
    /// asks until then, and fail after it; and notifications that have arrived are handled, within the same time. Returns when the transport is closed, and a server that was started has exited. It may be called again, and by
    /// several at once.
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

    /// Waits until the session has ended, whoever ends it.
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

impl RequestContext {
    /// The session that a server asks over, on a client. `None` where a server handles what a client sent, and where
    /// nobody holds on to the session any more.
    #[must_use]
    pub fn client_session(&self) -> Option<ClientSession> {
        let role = Arc::clone(self.parts().connection.role());
        let peer: Arc<ClientPeer> = role.into_any().downcast().ok()?;
        peer.session()?.upgrade()
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession")
            .field("revision", &self.revision())
            .field("server", &self.server_info())
            .finish_non_exhaustive()
    }
}

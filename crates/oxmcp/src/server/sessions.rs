//! Who is connected to a server, or wants to hear of it.

use std::sync::{Arc, PoisonError, Weak};

use crate::{
    server::{Server, ServerSession, callers::KnownCallers, listen::Listens, peer::ServerPeer},
    session::{Connection, keep_alive},
};

/// A session that its connection alone keeps.
pub(super) type WeakSession = (Weak<Connection>, Weak<ServerPeer>);

impl Server {
    /// The sessions that are open now.
    pub fn sessions(&self) -> impl Iterator<Item = ServerSession> + use<> {
        let open: Vec<_> = self.lock_sessions().clone();
        open.into_iter().filter_map(|(connection, peer)| {
            let (connection, peer) = (connection.upgrade()?, peer.upgrade()?);
            (!connection.is_ended()).then(|| ServerSession::new(connection, peer))
        })
    }

    /// Tells the session what changes from now on.
    pub(crate) fn remember(&self, session: &ServerSession) {
        self.lock_sessions().push(session.downgrade());
        self.will_tell();
    }

    /// Somebody within the current runtime wants to hear of changes.
    pub(super) fn will_tell(&self) {
        self.0.changes.connected();
    }

    /// The modern clients that made requests of late.
    pub(super) fn known_callers(&self) -> &KnownCallers {
        &self.0.known
    }

    /// The subscriptions of requests that have no connection to stay on.
    pub(crate) fn listens(&self) -> &Arc<Listens> {
        &self.0.listens
    }

    /// Forgets the session of a connection that has ended, and all others that are gone.
    pub(crate) fn forget(&self, ended: &Arc<Connection>) {
        let ended = Arc::downgrade(ended);
        self.lock_sessions()
            .retain(|(connection, _)| connection.strong_count() > 0 && !connection.ptr_eq(&ended));
    }

    /// Pings the client of a session that was just opened, where that is wanted.
    pub(crate) fn watch(&self, connection: &Arc<Connection>) {
        if let Some(interval) = self.features().keep_alive {
            tokio::spawn(keep_alive(Arc::clone(connection), interval));
        }
    }

    fn lock_sessions(&self) -> std::sync::MutexGuard<'_, Vec<WeakSession>> {
        self.0
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

//! The roots of a client, remembered until they change.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    protocol::Root,
    server::{Server, ServerSession},
    session::{BoxFuture, Connection},
};

/// The roots that a client has told of, and how often it has said that they have changed.
#[derive(Debug, Default)]
pub(crate) struct RootsCache(Mutex<(u64, Option<Arc<[Root]>>)>);

impl RootsCache {
    /// They have changed: what is remembered is old from here on, whenever the handler comes to its turn.
    pub(crate) fn changed(&self, connection: &Arc<Connection>, handler: Option<&OnRootsChanged>) {
        let mut state = self.lock();
        state.0 += 1;
        state.1 = None;
        drop(state);
        if let Some(OnRootsChanged(handler)) = handler
            && let Some(session) = ServerSession::of(connection)
        {
            connection.lane().push(handler(session), 0);
        }
    }

    pub(super) fn get(&self) -> Option<Arc<[Root]>> {
        self.lock().1.clone()
    }

    pub(super) fn version(&self) -> u64 {
        self.lock().0
    }

    /// Remembers roots that were asked for when the version was `as_of`. If they have changed since, they are old.
    pub(super) fn set(&self, as_of: u64, roots: &Arc<[Root]>) {
        let mut state = self.lock();
        if state.0 == as_of {
            state.1 = Some(Arc::clone(roots));
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Option<Arc<[Root]>>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler that is told when the roots of a client have changed.
#[derive(Clone)]
pub(crate) struct OnRootsChanged(Arc<dyn Fn(ServerSession) -> BoxFuture<()> + Send + Sync>);

impl fmt::Debug for OnRootsChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRootsChanged")
    }
}

impl Server {
    /// Is told when the roots of a client have changed (until 2025-11-25; modern clients do not say so). Handlers run one
    /// after another, and [`ServerSession::roots`] gives the new roots.
    /// See [root list changes](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#root-list-changes).
    ///
    /// ```
    /// use oxmcp::{Server, ServerSession};
    ///
    /// let server = Server::new("files", "1.0.0").on_roots_changed(|session: ServerSession| async move {
    ///     if let Ok(roots) = session.roots().await {
    ///         eprintln!("there are {} roots now", roots.len());
    ///     }
    /// });
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn on_roots_changed<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ServerSession) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let handler = OnRootsChanged(Arc::new(move |session| Box::pin(handler(session))));
        self.change(|features| features.on_roots_changed = Some(handler));
        self
    }
}

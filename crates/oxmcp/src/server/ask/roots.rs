//! Roots of a client, cached until they change.

use std::{fmt, sync::Arc};

use oxmcp_protocol::Root;

use crate::{
    session::{connection::Connection, task::BoxFuture},
    sync::Mutex,
};

/// The roots of a client, and a version that counts their changes.
#[derive(Debug, Default)]
pub(crate) struct RootsCache(Mutex<(u64, Option<Arc<[Root]>>)>);

impl RootsCache {
    /// The roots have changed. The cache is invalid from here on, before the handler runs.
    pub(crate) fn changed(&self, connection: &Arc<Connection>, handler: Option<&OnRootsChanged>) {
        let mut state = self.0.lock();
        state.0 += 1;
        state.1 = None;
        drop(state);
        if let Some(OnRootsChanged(handler)) = handler {
            connection.notifications().push(handler(connection), 0);
        }
    }

    pub(super) fn get(&self) -> Option<Arc<[Root]>> {
        self.0.lock().1.clone()
    }

    pub(super) fn version(&self) -> u64 {
        self.0.lock().0
    }

    /// Stores roots that were asked for when the version was `as_of`, unless they have changed since.
    pub(super) fn set(&self, as_of: u64, roots: &Arc<[Root]>) {
        let mut state = self.0.lock();
        if state.0 == as_of {
            state.1 = Some(Arc::clone(roots));
        }
    }
}

/// The handler that is called when the roots of a client have changed.
#[derive(Clone)]
pub(crate) struct OnRootsChanged(pub(super) Arc<ErasedHandler>);

/// It takes the connection, of which a session is made above this.
type ErasedHandler = dyn Fn(&Arc<Connection>) -> BoxFuture<()> + Send + Sync;

impl fmt::Debug for OnRootsChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRootsChanged")
    }
}

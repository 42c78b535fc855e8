//! Cache of a client's roots.

use std::sync::Arc;

use oxmcp_protocol::Root;

use crate::{server::dispatch::SessionHook, session::connection::Connection, sync::Mutex};

/// The roots of a client, and a version that counts their changes.
#[derive(Debug, Default)]
pub(crate) struct RootsCache(Mutex<(u64, Option<Arc<[Root]>>)>);

impl RootsCache {
    /// Invalidates the cache after a change of the roots, and then runs the hook.
    pub(crate) fn changed(&self, connection: &Arc<Connection>, hook: Option<&SessionHook>) {
        let mut state = self.0.lock();
        state.0 += 1;
        state.1 = None;
        drop(state);
        if let Some(hook) = hook {
            connection.notifications().push(hook.call(connection), 0);
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<[Root]>> {
        self.0.lock().1.clone()
    }

    pub(crate) fn version(&self) -> u64 {
        self.0.lock().0
    }

    /// Stores roots that were requested at version `as_of`, unless they have changed since.
    pub(crate) fn set(&self, as_of: u64, roots: &Arc<[Root]>) {
        let mut state = self.0.lock();
        if state.0 == as_of {
            state.1 = Some(Arc::clone(roots));
        }
    }
}

//! Hook that takes a session: a type-erased function of the server's author.

use std::sync::Arc;

use crate::{
    debug::opaque_debug,
    session::{connection::Connection, task::BoxFuture},
};

/// A function of the server's author that is called with a session.
#[derive(Clone)]
pub(crate) struct SessionHook(Arc<ErasedHook>);

/// The function takes the connection, since only a layer above can make a session of it.
type ErasedHook = dyn Fn(&Arc<Connection>) -> BoxFuture<()> + Send + Sync;

impl SessionHook {
    pub(crate) fn new(
        hook: impl Fn(&Arc<Connection>) -> BoxFuture<()> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(hook))
    }

    pub(crate) fn call(&self, connection: &Arc<Connection>) -> BoxFuture<()> {
        (self.0)(connection)
    }
}

opaque_debug!(SessionHook);

//! Calls that are made again, with answers to what the peer asked within a result.

use std::{fmt, sync::Arc};

use crate::session::Connection;

/// A call that goes on: as long as this lives, a connection that is being closed waits for it as for one that is on its way.
pub(crate) struct GoingOn(Arc<Connection>);

impl GoingOn {
    pub(crate) fn new(connection: &Arc<Connection>) -> Self {
        connection.calls().goes_on();
        Self(Arc::clone(connection))
    }
}

impl Drop for GoingOn {
    fn drop(&mut self) {
        self.0.calls().goes_on_no_more();
        if self.0.is_closing() {
            // It may have been the last that the driver was waiting for.
            self.0.outbox.call_attention();
        }
    }
}

impl fmt::Debug for GoingOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoingOn").finish_non_exhaustive()
    }
}

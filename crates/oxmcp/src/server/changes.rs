//! Telling clients that a list has changed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

use crate::{protocol::EmptyParams, server::Server};

/// Changes that come this soon after the first are told together with it.
const COALESCED: Duration = Duration::from_millis(10);

/// A list that can change.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whether somebody is about to tell the clients.
    pending: AtomicBool,
}

impl Changes {
    /// The list of tools has changed: all who want to know are told soon.
    ///
    /// Without a runtime there is nobody to tell.
    pub(crate) fn tools_changed(self: &Arc<Self>, server: &Server) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if server.sessions().next().is_none() || self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let changes = Arc::clone(self);
        let server = server.clone();
        runtime.spawn(async move {
            sleep(COALESCED).await;
            // Before telling: what changes from here on is told again.
            changes.pending.store(false, Ordering::Release);
            tell(&server);
        });
    }
}

/// Tells each session in a task of its own: a client that reads slowly must not hold up the others.
fn tell(server: &Server) {
    for session in server.sessions() {
        if session.peer().is_initialized() {
            tokio::spawn(async move {
                let method = "notifications/tools/list_changed";
                // A client that is gone need not know.
                let _ = session
                    .connection()
                    .notify(method, EmptyParams::default())
                    .await;
            });
        }
    }
}

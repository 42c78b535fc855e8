//! Telling clients that a list has changed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

use crate::{
    protocol::{EmptyParams, Notification, method::ToolListChanged},
    server::Server,
};

/// Changes that come this soon after the first are told together with it.
const COALESCED: Duration = Duration::from_millis(10);

/// A list that can change.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whether somebody is about to tell the clients.
    pending: AtomicBool,
    /// Where the newest connection runs: features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// A client has connected within the current runtime.
    pub(crate) fn connected(&self) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Handle::try_current().ok();
    }

    /// The list of tools has changed: all who want to know are told soon.
    pub(crate) fn tools_changed(self: &Arc<Self>, server: &Server) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = Handle::try_current().ok().or_else(|| runtime.clone()) else {
            return;
        };
        if server.sessions().next().is_none() || self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let pending = Pending(Arc::clone(self));
        let server = server.clone();
        runtime.spawn(async move {
            sleep(COALESCED).await;
            // Before telling: what changes from here on is told again.
            drop(pending);
            tell(&server);
        });
    }
}

/// Somebody is about to tell the clients. Dropped with a runtime that ends before they were told, it lets others do it.
struct Pending(Arc<Changes>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.store(false, Ordering::Release);
    }
}

/// Tells each session in a task of its own: a client that reads slowly must not hold up the others.
fn tell(server: &Server) {
    for session in server.sessions() {
        if session.peer().awaits_tool_changes() {
            tokio::spawn(async move {
                // A client that is gone need not know.
                let _ = session
                    .connection()
                    .notify(ToolListChanged::NAME, EmptyParams::default())
                    .await;
            });
        }
    }
}

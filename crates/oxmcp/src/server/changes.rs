//! Telling clients what has changed, whatever way they asked to be told.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

use crate::{
    Result,
    protocol::{
        Meta, Notification, NotificationParams, ResourceUpdatedParams, SubscriptionFilter,
        method::{PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged},
    },
    server::Server,
    session::Connection,
};

/// Changes that come this soon after the first are told together with it.
const COALESCED: Duration = Duration::from_millis(10);

/// What has changed and was not told yet.
///
/// A [`SubscriptionFilter`] says here what has changed, as it says elsewhere who wants to hear of what: where both agree
/// something is told.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Unless it is empty, somebody is about to tell it.
    pending: Mutex<SubscriptionFilter>,
    /// Where the newest connection runs: features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// A client has connected within the current runtime.
    pub(crate) fn connected(&self) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Handle::try_current().ok();
    }

    /// Something has changed: all who want to know are told soon.
    pub(crate) fn changed(self: &Arc<Self>, server: &Server, what: SubscriptionFilter) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = Handle::try_current().ok().or_else(|| runtime.clone()) else {
            return;
        };
        if server.sessions().next().is_none() || !self.is_first(what) {
            return;
        }
        let pending = Pending(Some(Arc::clone(self)));
        let server = server.clone();
        runtime.spawn(async move {
            sleep(COALESCED).await;
            tell(&server, &pending.take());
        });
    }

    /// Adds to what is pending. Returns whether there was nothing before.
    fn is_first(&self, what: SubscriptionFilter) -> bool {
        let mut pending = self.lock();
        let first = pending.is_empty();
        pending.merge(what);
        first
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionFilter> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is about to tell the clients. Dropped with a runtime that ends before they were told, it lets others do it.
struct Pending(Option<Arc<Changes>>);

impl Pending {
    /// What is to be told. What changes from here on is told again.
    fn take(mut self) -> SubscriptionFilter {
        let changes = self.0.take();
        changes.map_or_else(Default::default, |changes| mem::take(&mut *changes.lock()))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(changes) = &self.0 {
            *changes.lock() = SubscriptionFilter::default();
        }
    }
}

/// Tells each session in a task of its own: a client that reads slowly must not hold up the others.
fn tell(server: &Server, changed: &SubscriptionFilter) {
    for session in server.sessions() {
        session.peer().listens().tell(changed);
        let awaited = session.peer().awaited().and(changed);
        if !awaited.is_empty() {
            tokio::spawn(async move {
                notify(session.connection(), &awaited, &Meta::default()).await;
            });
        }
    }
}

/// Tells one client.
pub(super) async fn notify(
    connection: &Arc<Connection>,
    changed: &SubscriptionFilter,
    meta: &Meta,
) {
    let lists = [
        (changed.tools_list_changed, ToolListChanged::NAME),
        (changed.prompts_list_changed, PromptListChanged::NAME),
        (changed.resources_list_changed, ResourceListChanged::NAME),
    ];
    for (_, name) in lists.into_iter().filter(|(is_changed, _)| *is_changed) {
        let meta = meta.clone();
        log(connection.notify(name, NotificationParams { meta }).await);
    }
    for uri in &changed.resource_subscriptions {
        let mut params = ResourceUpdatedParams::new(uri);
        params.meta = meta.clone();
        log(connection.notify(ResourceUpdated::NAME, params).await);
    }
}

fn log(told: Result<()>) {
    if let Err(error) = told {
        tracing::debug!(%error, "a client was not told of a change");
    }
}

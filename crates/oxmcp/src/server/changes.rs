//! Telling clients what has changed, whatever way they asked to be told.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};

use crate::{
    Result,
    json::Logged,
    protocol::{
        Meta, Notification, NotificationParams, ResourceUpdatedParams,
        method::{PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged},
    },
    server::{Server, subscription::Topics},
    session::Connection,
};

/// Changes that come this soon after the first are told together with it.
const COALESCED: Duration = Duration::from_millis(10);

/// What has changed and was not told yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Unless it is empty, somebody is about to tell it.
    pending: Mutex<Topics>,
    /// Where the newest connection runs: features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// A client has connected within the current runtime.
    pub(crate) fn connected(&self) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Handle::try_current().ok();
    }

    /// Something has changed: all who want to know are told soon.
    pub(crate) fn changed(self: &Arc<Self>, server: &Server, what: Topics) {
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = Handle::try_current().ok().or_else(|| runtime.clone()) else {
            return;
        };
        let nobody = server.listens().is_empty() && server.sessions().next().is_none();
        if nobody || !self.is_first(what) {
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
    fn is_first(&self, what: Topics) -> bool {
        let mut pending = self.lock();
        let first = pending.is_empty();
        pending.merge(what);
        first
    }

    fn lock(&self) -> MutexGuard<'_, Topics> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody is about to tell the clients. Dropped with a runtime that ends before they were told, it lets others do it.
struct Pending(Option<Arc<Changes>>);

impl Pending {
    /// What is to be told. What changes from here on is told again.
    fn take(mut self) -> Topics {
        let changes = self.0.take();
        changes.map_or_else(Default::default, |changes| mem::take(&mut *changes.lock()))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(changes) = &self.0 {
            *changes.lock() = Topics::default();
        }
    }
}

/// Tells each session in a task of its own: a client that reads slowly must not hold up the others.
fn tell(server: &Server, changed: &Topics) {
    server.listens().tell(changed);
    for session in server.sessions() {
        session.peer().listens().tell(changed);
        let awaited = session.peer().awaited(session.connection(), changed);
        if !awaited.is_empty() && session.peer().due().add(awaited) {
            tokio::spawn(async move {
                let mut teller = Teller(Some(session.peer().due()));
                while let Some(due) = teller.next() {
                    notify(session.connection(), &due, &Meta::default()).await;
                }
            });
        }
    }
}

/// What a session is to be told. It cannot grow beyond what the client wants to hear of, however slowly it reads.
#[derive(Debug, Default)]
pub(crate) struct Due(Mutex<DueState>);

#[derive(Debug, Default)]
struct DueState {
    topics: Topics,
    /// Whether somebody is at it.
    is_told: bool,
}

impl Due {
    /// Returns whether somebody must begin to tell it.
    fn add(&self, topics: Topics) -> bool {
        let mut due = self.lock();
        due.topics.merge(topics);
        !due.topics.is_empty() && !mem::replace(&mut due.is_told, true)
    }

    /// What is to be told next. `None` where nothing is, and whoever asks is done.
    fn next(&self) -> Option<Topics> {
        let mut due = self.lock();
        due.is_told = !due.topics.is_empty();
        due.is_told.then(|| mem::take(&mut due.topics))
    }

    fn lock(&self) -> MutexGuard<'_, DueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who tells a session. Dropped with a runtime that ends meanwhile, it lets others do it.
struct Teller<'a>(Option<&'a Due>);

impl Teller<'_> {
    fn next(&mut self) -> Option<Topics> {
        let due = self.0.and_then(Due::next);
        if due.is_none() {
            self.0 = None;
        }
        due
    }
}

impl Drop for Teller<'_> {
    fn drop(&mut self) {
        if let Some(due) = self.0 {
            due.lock().is_told = false;
        }
    }
}

/// Tells one client.
pub(super) async fn notify(connection: &Arc<Connection>, changed: &Topics, meta: &Meta) {
    let Topics { lists, uris } = changed;
    let lists = [
        (lists.tools_list_changed, ToolListChanged::NAME),
        (lists.prompts_list_changed, PromptListChanged::NAME),
        (lists.resources_list_changed, ResourceListChanged::NAME),
    ];
    for (_, name) in lists.into_iter().filter(|(is_changed, _)| *is_changed) {
        let meta = meta.clone();
        let mut params = NotificationParams::default();
        params.meta = meta;
        log(connection.notify(name, params).await);
    }
    for uri in uris {
        let mut params = ResourceUpdatedParams::new(&**uri);
        params.meta = meta.clone();
        log(connection.notify(ResourceUpdated::NAME, params).await);
    }
}

/// What cannot be told is nobody's fault here: the session ends.
pub(super) fn log(told: Result<()>) {
    if let Err(error) = told {
        tracing::debug!(error = %Logged(&error), "a client was not told of a change");
    }
}

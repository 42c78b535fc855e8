//! Resources that clients watch, and the hooks for the start and the end of a watch.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard},
};

use super::{Topics, quota::Reserved};
use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    logged::Logged,
    session::{
        connection::{Caller, Connection, ContextParts, Peer, RequestContext},
        panics,
        task::{BoxFuture, spawn_on},
    },
    sync::Mutex,
};

/// The setting that clients can subscribe to resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceSubscriptions {
    pub(crate) hooks: Option<Arc<Hooks>>,
}

/// The functions to call when a watch begins, and after it has ended.
pub(crate) struct Hooks {
    pub(crate) subscribe: Box<Subscribe>,
    pub(crate) unsubscribe: Box<Unsubscribe>,
}

type Subscribe = dyn Fn(RequestContext, String) -> BoxFuture<Result<()>> + Send + Sync;

/// The function takes the connection; a layer above makes a session of it.
type Unsubscribe = dyn Fn(&Arc<Connection>, String) -> BoxFuture<()> + Send + Sync;

opaque_debug!(Hooks);

/// A watch that has ended, with the hooks to call.
pub(crate) type EndedWatch = (Arc<Hooks>, Arc<str>);

/// Calls the hooks of watches that have ended.
pub(crate) fn release(connection: &Arc<Connection>, ended: Vec<EndedWatch>) {
    // Without a runtime, no task can call them.
    let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) else {
        return;
    };
    let connection = Arc::clone(connection);
    spawn_on(&runtime, async move {
        for (hooks, uri) in ended {
            let unsubscribe = async { (hooks.unsubscribe)(&connection, uri.to_string()).await };
            if let Err(panic) = panics::catch(Box::pin(unsubscribe)).await {
                tracing::error!(panic = %Logged(panic.text()), "an unsubscribe handler panicked");
            }
        }
    });
}

/// The resources that a session watches, by `resources/subscribe`.
#[derive(Debug, Default)]
pub(crate) struct WatchedResources {
    state: Mutex<State>,
    /// Held by one request at a time, in the order of arrival, so that an unsubscribe request finds the earlier subscription.
    requests: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<Arc<str>, Watch>,
    /// The caller of the last request. Its visibility is checked again before each update.
    caller: Option<Caller>,
    is_closed: bool,
}

#[derive(Debug)]
struct Watch {
    _reserved: Reserved,
    /// The hooks to call when the watch ends. `None` until `subscribe` has succeeded, or without hooks.
    hooks: Option<Arc<Hooks>>,
}

impl WatchedResources {
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.state.lock().watched.contains_key(uri)
    }

    /// The URIs of all watched resources.
    #[cfg(feature = "http-server")]
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.state.lock();
        state.watched.keys().map(|uri| uri.to_string()).collect()
    }

    /// The watched resources among the topics.
    pub(crate) fn of(&self, topics: &Topics) -> BTreeSet<Arc<str>> {
        let state = self.state.lock();
        let watched = topics.uris.iter();
        let watched = watched.filter(|uri| state.watched.contains_key(*uri));
        watched.cloned().collect()
    }

    /// A context for deciding visibility. `None` if no resource is watched.
    pub(crate) fn context(
        &self,
        connection: &Arc<Connection>,
        peer: &Arc<Peer>,
    ) -> Option<RequestContext> {
        let caller = self.state.lock().caller.clone()?;
        let branch = connection.branch(caller);
        let context = ContextParts::new(&branch, None, Arc::clone(peer));
        Some(RequestContext::new(Arc::new(context)))
    }

    /// Ends all watches with the session. Returns the ended watches that have hooks.
    pub(crate) fn close(&self) -> Vec<EndedWatch> {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.caller = None;
        let ended = state.watched.drain();
        ended
            .filter_map(|(uri, watch)| Some((watch.hooks?, uri)))
            .collect()
    }

    /// Waits until no other request changes a watch.
    pub(crate) async fn lock_requests(&self) -> AsyncMutexGuard<'_, ()> {
        self.requests.lock().await
    }

    /// Ends a watch. Returns the hooks to call for it.
    pub(crate) fn end(&self, uri: &str) -> Option<Arc<Hooks>> {
        let mut state = self.state.lock();
        let ended = state.watched.remove(uri);
        if state.watched.is_empty() {
            // The caller is needed only while there are watches.
            state.caller = None;
        }
        ended?.hooks
    }

    /// Begins a watch immediately, so that no change is missed. `None` if the resource is already watched.
    ///
    /// # Errors
    /// If the session has ended, or the quota or the budget of the endpoint is used up.
    pub(crate) fn begin(
        &self,
        uri: &Arc<str>,
        caller: Caller,
        reserve: impl FnOnce() -> Result<Reserved>,
    ) -> Result<Option<PendingWatch<'_>>> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::closed("the session has ended"));
        }
        state.caller = Some(caller);
        if state.watched.contains_key(uri) {
            return Ok(None);
        }
        let watch = Watch {
            _reserved: reserve()?,
            hooks: None,
        };
        state.watched.insert(Arc::clone(uri), watch);
        Ok(Some(PendingWatch {
            resources: self,
            uri: Some(Arc::clone(uri)),
        }))
    }
}

/// A watch that the hook has not accepted yet. Dropping this ends the watch.
pub(crate) struct PendingWatch<'a> {
    resources: &'a WatchedResources,
    uri: Option<Arc<str>>,
}

impl PendingWatch<'_> {
    /// Keeps the watch, which needs no hook's consent.
    pub(crate) fn keep(mut self) {
        self.uri = None;
    }

    /// Keeps the watch, which the hook has accepted. Returns the watch if it has ended meanwhile.
    pub(crate) fn agreed(mut self, hooks: Arc<Hooks>) -> Option<EndedWatch> {
        let uri = self.uri.take()?;
        match self.resources.state.lock().watched.get_mut(&uri) {
            Some(watch) => {
                watch.hooks = Some(hooks);
                None
            }
            None => Some((hooks, uri)),
        }
    }
}

impl Drop for PendingWatch<'_> {
    fn drop(&mut self) {
        if let Some(uri) = self.uri.take() {
            self.resources.state.lock().watched.remove(&uri);
        }
    }
}

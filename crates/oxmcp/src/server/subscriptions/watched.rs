//! Resources that clients watch, and the hooks that are called when a watch begins and ends.

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
    pub(super) hooks: Option<Arc<Hooks>>,
}

/// The functions that are called when a watch begins and when it has ended.
pub(crate) struct Hooks {
    pub(super) subscribe: Box<Subscribe>,
    pub(super) unsubscribe: Box<Unsubscribe>,
}

type Subscribe = dyn Fn(RequestContext, String) -> BoxFuture<Result<()>> + Send + Sync;

/// It takes the connection, of which a session is made above this.
type Unsubscribe = dyn Fn(&Arc<Connection>, String) -> BoxFuture<()> + Send + Sync;

opaque_debug!(Hooks);

/// A watch that has ended, and the hooks that are called then.
pub(crate) type EndedWatch = (Arc<Hooks>, Arc<str>);

/// Calls the hooks of watches that have ended.
pub(crate) fn release(connection: &Arc<Connection>, ended: Vec<EndedWatch>) {
    // Where the runtime has ended, no task is left to do it.
    let (false, Ok(runtime)) = (ended.is_empty(), Handle::try_current()) else {
        return;
    };
    let connection = Arc::clone(connection);
    spawn_on(&runtime, async move {
        for (hooks, uri) in ended {
            let unsubscribe = async { (hooks.unsubscribe)(&connection, uri.to_string()).await };
            if let Err(panic) = panics::catch(Box::pin(unsubscribe)).await {
                tracing::error!(panic = %Logged(panic.text()), "a handler of the end of a subscription panicked");
            }
        }
    });
}

/// The resources that a session watches, by `resources/subscribe`.
#[derive(Debug, Default)]
pub(crate) struct WatchedResources {
    state: Mutex<State>,
    /// Held by one request at a time, in the order of arrival: unsubscribing relies on having subscribed.
    requests: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    watched: HashMap<Arc<str>, Watch>,
    /// The caller of the last request, for which visibility is decided again before each update.
    caller: Option<Caller>,
    is_closed: bool,
}

#[derive(Debug)]
struct Watch {
    _reserved: Reserved,
    /// The hooks that are called when it ends. `None` before `subscribe` has succeeded, and where there are none.
    hooks: Option<Arc<Hooks>>,
}

impl WatchedResources {
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.state.lock().watched.contains_key(uri)
    }

    /// All that are watched.
    #[cfg(feature = "http-server")]
    pub(crate) fn uris(&self) -> Vec<String> {
        let state = self.state.lock();
        state.watched.keys().map(|uri| uri.to_string()).collect()
    }

    /// Which of these are watched.
    pub(crate) fn of(&self, topics: &Topics) -> BTreeSet<Arc<str>> {
        let state = self.state.lock();
        let watched = topics.uris.iter();
        let watched = watched.filter(|uri| state.watched.contains_key(*uri));
        watched.cloned().collect()
    }

    /// A context in which visibility is decided.
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

    /// The session has ended. Returns what ends with it.
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
    pub(super) async fn lock_requests(&self) -> AsyncMutexGuard<'_, ()> {
        self.requests.lock().await
    }

    /// Ends a watch. Returns the hooks that are called then.
    pub(super) fn end(&self, uri: &str) -> Option<Arc<Hooks>> {
        let mut state = self.state.lock();
        let ended = state.watched.remove(uri);
        if state.watched.is_empty() {
            // Nothing is left that is decided for it.
            state.caller = None;
        }
        ended?.hooks
    }

    /// Watches from now on, so that nothing is missed. `None` where it is watched already.
    ///
    /// # Errors
    /// Where the session has ended, the quota is used up, or the endpoint has no room.
    pub(super) fn begin(
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

/// A resource whose hook has not agreed yet: dropped before, it is not watched.
pub(super) struct PendingWatch<'a> {
    resources: &'a WatchedResources,
    uri: Option<Arc<str>>,
}

impl PendingWatch<'_> {
    /// There is no hook that has to agree.
    pub(super) fn keep(mut self) {
        self.uri = None;
    }

    /// The hook has agreed. Returns what has ended meanwhile.
    pub(super) fn agreed(mut self, hooks: Arc<Hooks>) -> Option<EndedWatch> {
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

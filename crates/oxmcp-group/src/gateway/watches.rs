//! The resources that clients of a gateway watch. Each is watched once for all requests without a session, and once for each session
//! of a client: in its own session with the upstream, because an update may concern only that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{Error, ResourceWatch, Result, ServerSession, WeakServer};
use tokio::{sync::OnceCell, task::AbortHandle, time::sleep};

use super::links::Link;
use crate::group::GroupSession;

/// The pause before a resource is watched again whose upstream was lost. It doubles with each attempt.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// The URI of a watched resource that clients use, and the session of the client, if it has one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    uri: String,
    front: Option<ServerSession>,
}

impl WatchKey {
    pub(super) fn new(session: Option<ServerSession>, is_shared: bool, uri: String) -> Self {
        Self {
            uri,
            front: session.filter(|_| !is_shared),
        }
    }
}

/// The watched resources.
pub(super) struct Watches {
    watched: Mutex<HashMap<WatchKey, Watched>>,
    max: usize,
}

struct Watched {
    count: usize,
    following: Arc<OnceCell<Following>>,
}

/// A task that ends when this is dropped.
struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watches {
    pub(super) fn new(max: usize) -> Self {
        Self {
            watched: Mutex::default(),
            max,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WatchKey, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client that watches a resource. Returns once the upstream has agreed. `open` opens the session in which the resource
    /// is watched if it is not yet; the gateway's own session is used without it, and after its end, unless the upstream has a
    /// session for each client: then the watch ends with it.
    ///
    /// # Errors
    /// If the upstream refuses, or there are too many watches.
    pub(super) async fn add(
        &self,
        group: &GroupSession,
        server: &WeakServer,
        key: WatchKey,
        open: impl Future<Output = Result<(Option<Arc<Link>>, bool)>>,
    ) -> Result<()> {
        let following = {
            let mut watched = self.lock();
            if !watched.contains_key(&key) && watched.len() >= self.max {
                return Err(Error::limit(format!(
                    "the gateway already watches {} resources; unsubscribe from some",
                    self.max
                )));
            }
            let entry = watched.entry(key.clone()).or_insert_with(|| Watched {
                count: 0,
                following: Arc::default(),
            });
            entry.count += 1;
            Arc::clone(&entry.following)
        };
        let begun = following.get_or_try_init(|| async {
            let uri = &key.uri;
            let (link, is_own) = open.await?;
            let watch = watch(group, uri, link.as_deref()).await?;
            let follow = follow(
                group.clone(),
                server.clone(),
                uri.clone(),
                (link, is_own, watch),
            );
            Ok::<_, Error>(Following(tokio::spawn(follow).abort_handle()))
        });
        // A client that goes away while it waits takes its count along.
        let mut added = Added {
            watches: self,
            key: &key,
            is_done: false,
        };
        begun.await?;
        added.is_done = true;
        Ok(())
    }

    /// Removes a client that watched a resource.
    pub(super) fn remove(&self, key: &WatchKey) {
        // Dropped after the lock: the last handle of a session may be in it.
        let mut _ended = None;
        let mut watched = self.lock();
        // A connection with a session may also have made the request without it.
        let shared = WatchKey {
            uri: key.uri.clone(),
            front: None,
        };
        let key = match watched.contains_key(key) {
            true => key,
            false => &shared,
        };
        if let Some(entry) = watched.get_mut(key) {
            entry.count -= 1;
            if entry.count == 0 {
                _ended = watched.remove(key);
            }
        }
    }
}

struct Added<'a> {
    watches: &'a Watches,
    key: &'a WatchKey,
    is_done: bool,
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.watches.remove(self.key);
        }
    }
}

async fn watch(group: &GroupSession, uri: &str, link: Option<&Link>) -> Result<ResourceWatch> {
    let (server, uri) = group.uri_route(uri)?;
    match link {
        Some(link) => link.session.watch_resource(uri).await,
        None => group.session_at(server).await?.watch_resource(uri).await,
    }
}

/// Notifies the clients of updates, and watches again when the upstream comes back.
async fn follow(
    group: GroupSession,
    server: WeakServer,
    uri: String,
    (link, is_own, mut watch_open): (Option<Arc<Link>>, bool, ResourceWatch),
) {
    // It keeps the session open.
    let mut link = link;
    loop {
        while watch_open.next().await.is_some() {
            match server.upgrade() {
                Some(server) => server.resource_updated(&uri),
                None => return,
            }
        }
        drop(link.take());
        if is_own {
            return;
        }
        let mut pause = PAUSE;
        watch_open = loop {
            sleep(pause).await;
            pause = MAX_PAUSE.min(pause * 2);
            if let Ok(watch) = watch(&group, &uri, None).await {
                break watch;
            }
        };
        // It may have changed in between.
        if let Some(server) = server.upgrade() {
            server.resource_updated(&uri);
        }
    }
}

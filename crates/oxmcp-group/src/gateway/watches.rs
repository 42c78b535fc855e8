//! The resources that clients of a gateway watch: each is watched once at its upstream.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use oxmcp::{Error, ResourceWatch, Result, WeakServer};
use tokio::{sync::OnceCell, task::AbortHandle, time::sleep};

use crate::group::GroupSession;

/// The pause before a resource is watched again whose upstream was lost.
const PAUSE: Duration = Duration::from_secs(5);

/// The watched resources, by the URIs that clients use.
pub(super) struct Watches {
    watched: Mutex<HashMap<String, Watched>>,
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

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client that watches a resource. Returns once the upstream has agreed.
    ///
    /// # Errors
    /// If the upstream refuses, or there are too many watches.
    pub(super) async fn add(
        &self,
        group: &GroupSession,
        server: &WeakServer,
        uri: String,
    ) -> Result<()> {
        let following = {
            let mut watched = self.lock();
            if !watched.contains_key(&uri) && watched.len() >= self.max {
                return Err(Error::limit(format!(
                    "the gateway watches more than {} resources; unsubscribe from some",
                    self.max
                )));
            }
            let entry = watched.entry(uri.clone()).or_insert_with(|| Watched {
                count: 0,
                following: Arc::default(),
            });
            entry.count += 1;
            Arc::clone(&entry.following)
        };
        let begun = following.get_or_try_init(|| async {
            let watch = watch(group, &uri).await?;
            let follow = follow(group.clone(), server.clone(), uri.clone(), watch);
            Ok::<_, Error>(Following(tokio::spawn(follow).abort_handle()))
        });
        // A client that goes away while it waits takes its count along.
        let mut added = Added {
            watches: self,
            uri: &uri,
            is_done: false,
        };
        begun.await?;
        added.is_done = true;
        Ok(())
    }

    /// Removes a client that watched a resource.
    pub(super) fn remove(&self, uri: &str) {
        let mut watched = self.lock();
        if let Some(entry) = watched.get_mut(uri) {
            entry.count -= 1;
            if entry.count == 0 {
                watched.remove(uri);
            }
        }
    }
}

struct Added<'a> {
    watches: &'a Watches,
    uri: &'a str,
    is_done: bool,
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.watches.remove(self.uri);
        }
    }
}

async fn watch(group: &GroupSession, uri: &str) -> Result<ResourceWatch> {
    let (server, uri) = group.uri_route(uri)?;
    let session = group.session_at(server).await?;
    session.watch_resource(uri).await
}

/// Notifies the clients of updates, and watches again when the upstream comes back.
async fn follow(
    group: GroupSession,
    server: WeakServer,
    uri: String,
    mut watch_open: ResourceWatch,
) {
    loop {
        while watch_open.next().await.is_some() {
            match server.upgrade() {
                Some(server) => server.resource_updated(&uri),
                None => return,
            }
        }
        watch_open = loop {
            sleep(PAUSE).await;
            if let Ok(watch) = watch(&group, &uri).await {
                break watch;
            }
        };
        // It may have changed in between.
        if let Some(server) = server.upgrade() {
            server.resource_updated(&uri);
        }
    }
}

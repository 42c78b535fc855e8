//! What a session hears of for all who do not subscribe by themselves: handlers of changes, and those who watch a
//! resource.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::{
    client::subscriptions::{
        events::{SubscriptionEnd, SubscriptionEvent},
        listener::Listener,
    },
    error::Error,
    protocol::{ResourceUpdatedParams, SubscriptionFilter, covers},
};

/// Who wants to hear of what. Whoever changes it calls the attention of the task that asks the server.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// What there are handlers for.
    lists: SubscriptionFilter,
    watched: BTreeMap<String, Watched>,
    /// Whether there is a task that asks the server.
    running: bool,
    /// Whether nothing is heard of any more.
    over: bool,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: Vec<Arc<Listener>>,
    /// Whether the server tells of it.
    heard: bool,
}

impl Updates {
    /// Handlers want to hear of these lists.
    pub(crate) fn want_lists(&self, lists: SubscriptionFilter) {
        self.lock().lists = lists;
        self.changed.notify_one();
    }

    /// Adds who wants to hear of a resource. Returns whether a task must be begun that asks the server for it.
    pub(crate) fn join(&self, uri: &str, watcher: &Arc<Listener>) -> bool {
        let mut state = self.lock();
        if state.over {
            drop(state);
            watcher.finish(
                SubscriptionEnd::Local,
                Some(Error::closed("the session has ended")),
            );
            return false;
        }
        let watched = state.watched.entry(uri.to_owned()).or_default();
        watched.watchers.push(Arc::clone(watcher));
        let heard = watched.heard;
        drop(state);
        if heard {
            watcher.acknowledge(only(uri));
        }
        self.changed.notify_one();
        self.must_begin()
    }

    /// Takes away who wanted to hear of a resource.
    pub(crate) fn leave(&self, uri: &str, watcher: &Arc<Listener>) {
        let mut state = self.lock();
        if let Some(watched) = state.watched.get_mut(uri) {
            watched.watchers.retain(|it| !Arc::ptr_eq(it, watcher));
            if watched.watchers.is_empty() {
                state.watched.remove(uri);
                self.changed.notify_one();
            }
        }
    }

    /// Whether a task must be begun that asks the server. It is said once.
    pub(crate) fn must_begin(&self) -> bool {
        let mut state = self.lock();
        let begins = !state.running && !state.over;
        state.running |= begins;
        begins
    }

    /// Waits until somebody wants something else. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// All that anybody wants to hear of.
    pub(crate) fn wanted(&self) -> SubscriptionFilter {
        let state = self.lock();
        let mut wanted = state.lists.clone();
        wanted.resource_subscriptions = state.watched.keys().cloned().collect();
        wanted
    }

    /// The server tells of these resources, of those that were asked for.
    pub(crate) fn heard(&self, asked: &[String], told: &HashSet<&String>) {
        for uri in asked {
            if told.contains(uri) {
                self.acknowledge(uri);
            } else {
                self.refuse(uri, &|| {
                    Error::unsupported(format!(
                        "the server does not tell of changes of {uri}: it left it out of what it agreed to"
                    ))
                });
            }
        }
    }

    /// The server tells of these resources, as it was asked to before. Who has watched one may have left, and another come
    /// at once: then the server is asked nothing, and nobody else would tell the new one.
    pub(crate) fn still_heard<'a>(&self, uris: impl IntoIterator<Item = &'a String>) {
        for uri in uris {
            let is_new = |watched: &Watched| !watched.heard;
            let is_new = self.lock().watched.get(uri).is_some_and(is_new);
            if is_new {
                self.acknowledge(uri);
            }
        }
    }

    /// The server tells of a resource.
    pub(crate) fn acknowledge(&self, uri: &str) {
        let mut state = self.lock();
        let Some(watched) = state.watched.get_mut(uri) else {
            return;
        };
        watched.heard = true;
        let watchers = watched.watchers.clone();
        drop(state);
        for watcher in watchers {
            watcher.acknowledge(only(uri));
        }
    }

    /// The server does not tell of a resource.
    pub(crate) fn refuse(&self, uri: &str, error: &dyn Fn() -> Error) {
        let watched = self.lock().watched.remove(uri);
        for watcher in watched.map(|it| it.watchers).unwrap_or_default() {
            watcher.finish(SubscriptionEnd::Remote, Some(error()));
        }
    }

    /// The server does not tell of what was never heard of before.
    pub(crate) fn refuse_new(&self, error: &dyn Fn() -> Error) {
        let mut refused = Vec::new();
        self.lock().watched.retain(|_, watched| {
            let new = watched.watchers.iter().filter(|it| !it.was_acknowledged());
            refused.extend(new.cloned());
            watched.watchers.retain(|it| it.was_acknowledged());
            !watched.watchers.is_empty()
        });
        for watcher in refused {
            watcher.finish(SubscriptionEnd::Remote, Some(error()));
        }
    }

    /// Nothing is heard of for a while.
    pub(crate) fn interrupted(&self) {
        for watched in self.lock().watched.values_mut() {
            watched.heard = false;
        }
    }

    /// A resource has changed, or may have.
    pub(crate) fn updated(&self, update: &ResourceUpdatedParams) {
        let state = self.lock();
        if state.watched.is_empty() {
            return;
        }
        let concerned = state
            .watched
            .iter()
            .filter(|(uri, _)| covers(uri, &update.uri));
        let watchers: Vec<_> = concerned.flat_map(|(_, it)| it.watchers.clone()).collect();
        drop(state);
        for watcher in watchers {
            watcher.push(SubscriptionEvent::ResourceUpdated(update.clone()));
        }
    }

    /// Nothing is heard of any more.
    pub(crate) fn finish(&self, end: SubscriptionEnd) {
        let mut state = self.lock();
        state.over = true;
        let watched = std::mem::take(&mut state.watched);
        drop(state);
        for watcher in watched.into_values().flat_map(|it| it.watchers) {
            watcher.finish(end, Some(Error::closed("the session has ended")));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn only(uri: &str) -> SubscriptionFilter {
    SubscriptionFilter::default().with_resource_subscription(uri)
}

//! The subscriptions that a session should have: those of the handlers of list changes, and of watched resources.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use oxmcp_protocol::{ResourceUpdatedParams, SubscriptionFilter, internal::uri_covers};
use tokio::sync::Notify;

use crate::{
    client::{
        cache::key::ResponseKind,
        subscriptions::{
            events::{SubscriptionEnd, SubscriptionEvent},
            listener::Listener,
        },
    },
    error::Error,
    sync::Mutex,
};

/// The wanted subscriptions. The task in `sync.rs`, which requests them from the server, is notified when they change.
#[derive(Debug, Default)]
pub(crate) struct DesiredSubscriptions {
    state: Mutex<State>,
    changed: Notify,
    requested: RequestedLists,
}

/// The lists that were requested in the session. A change can have been missed only in one of them.
#[derive(Debug, Default)]
struct RequestedLists {
    tools: AtomicBool,
    prompts: AtomicBool,
    resources: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// The list changes that have a handler.
    lists: SubscriptionFilter,
    watched: HashMap<String, Watched>,
    /// Whether the sync task was started.
    syncing: bool,
    /// Whether the session has ended.
    ended: bool,
}

#[derive(Debug, Default)]
struct Watched {
    watchers: Vec<Arc<Listener>>,
    /// Whether the server has agreed to notify of changes of the resource.
    subscribed: bool,
}

impl DesiredSubscriptions {
    /// Records a request whose response can be cached, if it is for a list.
    pub(crate) fn note_request(&self, kind: ResponseKind) {
        let requested = match kind {
            ResponseKind::Tools => &self.requested.tools,
            ResponseKind::Prompts => &self.requested.prompts,
            ResponseKind::Resources | ResponseKind::Templates => &self.requested.resources,
            ResponseKind::Discover | ResponseKind::Read => return,
        };
        requested.store(true, Ordering::Relaxed);
    }

    /// The part of a filter that is for lists which were requested.
    pub(crate) fn requested_lists(&self, filter: &SubscriptionFilter) -> SubscriptionFilter {
        let was_requested = |list: &AtomicBool| list.load(Ordering::Relaxed);
        let mut requested = SubscriptionFilter::default();
        requested.tools_list_changed =
            filter.tools_list_changed && was_requested(&self.requested.tools);
        requested.prompts_list_changed =
            filter.prompts_list_changed && was_requested(&self.requested.prompts);
        requested.resources_list_changed =
            filter.resources_list_changed && was_requested(&self.requested.resources);
        requested
    }

    pub(crate) fn set_lists(&self, lists: SubscriptionFilter) {
        self.state.lock().lists = lists;
        self.changed.notify_one();
    }

    /// Adds a watcher of a resource. Returns whether the sync task must be started.
    pub(crate) fn add_watcher(&self, uri: &str, watcher: &Arc<Listener>) -> bool {
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            let error = Error::closed("the session has ended");
            watcher.finish(SubscriptionEnd::Local, Some(error));
            return false;
        }
        let watched = state.watched.entry(uri.to_owned()).or_default();
        watched.watchers.push(Arc::clone(watcher));
        let subscribed = watched.subscribed;
        drop(state);
        if subscribed {
            watcher.acknowledge(only(uri));
        }
        self.changed.notify_one();
        self.start_sync()
    }

    /// Removes a watcher of a resource.
    pub(crate) fn remove_watcher(&self, uri: &str, watcher: &Arc<Listener>) {
        let mut state = self.state.lock();
        if let Some(watched) = state.watched.get_mut(uri) {
            watched.watchers.retain(|it| !Arc::ptr_eq(it, watcher));
            if watched.watchers.is_empty() {
                state.watched.remove(uri);
                self.changed.notify_one();
            }
        }
    }

    /// Whether the sync task must be started. Returns `true` once.
    pub(crate) fn start_sync(&self) -> bool {
        let mut state = self.state.lock();
        let begins = !state.syncing && !state.ended;
        state.syncing |= begins;
        begins
    }

    /// Waits until the wanted subscriptions change. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The filter of all wanted subscriptions, with the resources in order.
    pub(crate) fn filter(&self) -> SubscriptionFilter {
        let state = self.state.lock();
        let mut filter = state.lists.clone();
        filter.resource_subscriptions = state.watched.keys().cloned().collect();
        filter.resource_subscriptions.sort_unstable();
        filter
    }

    /// Acknowledges the resources that the server has agreed to, and refuses the others.
    pub(crate) fn settle(&self, asked: &[String], agreed: &HashSet<&String>) {
        for uri in asked {
            if agreed.contains(uri) {
                self.acknowledge(uri);
            } else {
                self.refuse(uri, &|| {
                    Error::unsupported(format!(
                        "the server did not subscribe to {uri}: its acknowledgment leaves the resource out"
                    ))
                });
            }
        }
    }

    /// Acknowledges new watchers of resources that are subscribed to already. The last watcher of a resource may have left
    /// and another come before the task has run: in this case the server is not asked again.
    pub(crate) fn acknowledge_new<'a>(&self, uris: impl IntoIterator<Item = &'a String>) {
        for uri in uris {
            let is_new = |watched: &Watched| !watched.subscribed;
            let is_new = self.state.lock().watched.get(uri).is_some_and(is_new);
            if is_new {
                self.acknowledge(uri);
            }
        }
    }

    /// Tells the watchers of a resource that the server has agreed.
    pub(crate) fn acknowledge(&self, uri: &str) {
        let mut state = self.state.lock();
        let Some(watched) = state.watched.get_mut(uri) else {
            return;
        };
        watched.subscribed = true;
        let watchers = watched.watchers.clone();
        drop(state);
        for watcher in watchers {
            watcher.acknowledge(only(uri));
        }
    }

    /// Ends the watchers of a resource that the server has refused.
    pub(crate) fn refuse(&self, uri: &str, error: &dyn Fn() -> Error) {
        let watched = self.state.lock().watched.remove(uri);
        for watcher in watched.map(|it| it.watchers).unwrap_or_default() {
            watcher.finish(SubscriptionEnd::Remote, Some(error()));
        }
    }

    /// Ends the watchers that were never acknowledged.
    pub(crate) fn refuse_new(&self, error: &dyn Fn() -> Error) {
        let mut refused = Vec::new();
        self.state.lock().watched.retain(|_, watched| {
            let new = watched.watchers.iter().filter(|it| !it.was_acknowledged());
            refused.extend(new.cloned());
            watched.watchers.retain(|it| it.was_acknowledged());
            !watched.watchers.is_empty()
        });
        for watcher in refused {
            watcher.finish(SubscriptionEnd::Remote, Some(error()));
        }
    }

    /// Marks all resources as not subscribed to.
    pub(crate) fn interrupt(&self) {
        for watched in self.state.lock().watched.values_mut() {
            watched.subscribed = false;
        }
    }

    /// Tells the watchers of a resource that it may have changed.
    pub(crate) fn push_update(&self, update: &ResourceUpdatedParams) {
        let state = self.state.lock();
        if state.watched.is_empty() {
            return;
        }
        let concerned = state
            .watched
            .iter()
            .filter(|(uri, _)| uri_covers(uri, &update.uri));
        let watchers: Vec<_> = concerned.flat_map(|(_, it)| it.watchers.clone()).collect();
        drop(state);
        for watcher in watchers {
            watcher.push(SubscriptionEvent::ResourceUpdated(update.clone()));
        }
    }

    /// Ends all watchers.
    pub(crate) fn finish(&self, end: SubscriptionEnd) {
        let mut state = self.state.lock();
        state.ended = true;
        let watched = std::mem::take(&mut state.watched);
        drop(state);
        for watcher in watched.into_values().flat_map(|it| it.watchers) {
            watcher.finish(end, Some(Error::closed("the session has ended")));
        }
    }
}

fn only(uri: &str) -> SubscriptionFilter {
    SubscriptionFilter::default().with_resource_subscription(uri)
}

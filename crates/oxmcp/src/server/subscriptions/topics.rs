//! Topics of notifications: sets of what has changed, or of what a client wants to hear of, and the changes that wait to be
//! sent.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::Handle;

use crate::protocol::SubscriptionFilter;

/// Lists and resources that clients are notified of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    /// The lists. The URIs of the filter are moved to `uris`, where they are found quickly.
    pub(crate) lists: SubscriptionFilter,
    /// The resources, in the order in which they are sent.
    pub(crate) uris: BTreeSet<Arc<str>>,
}

impl Topics {
    /// A single resource.
    pub(crate) fn of_resource(uri: &str) -> Self {
        Self {
            lists: SubscriptionFilter::default(),
            uris: BTreeSet::from([uri.into()]),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty()
    }

    /// What is in both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let (fewer, more) = if self.uris.len() < other.uris.len() {
            (self, other)
        } else {
            (other, self)
        };
        let both = fewer.uris.iter().filter(|uri| more.uris.contains(*uri));
        Self {
            lists: self.lists.and(&other.lists),
            uris: both.cloned().collect(),
        }
    }

    /// Adds what is in `other`.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.lists.merge(other.lists);
        self.uris.append(&mut other.uris);
    }
}

impl From<SubscriptionFilter> for Topics {
    fn from(mut lists: SubscriptionFilter) -> Self {
        let uris = mem::take(&mut lists.resource_subscriptions);
        Self {
            lists,
            uris: uris.into_iter().map(Into::into).collect(),
        }
    }
}

/// Changes of a server that no client was notified of yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Unless it is empty, a task is about to send them.
    pending: Mutex<Topics>,
    /// The runtime of the newest connection, since features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// A client has connected within the current runtime.
    pub(crate) fn connected(&self) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Handle::try_current().ok();
    }

    /// The runtime to send from, where there is any.
    pub(super) fn runtime(&self) -> Option<Handle> {
        let newest = || {
            let runtime = self.runtime.lock();
            runtime.unwrap_or_else(PoisonError::into_inner).clone()
        };
        Handle::try_current().ok().or_else(newest)
    }

    /// Adds to the pending changes. Where there were none, the caller must send them.
    pub(super) fn add(self: &Arc<Self>, topics: Topics) -> Option<PendingChanges> {
        let mut pending = self.lock();
        let is_first = pending.is_empty();
        pending.merge(topics);
        is_first.then(|| PendingChanges(Some(Arc::clone(self))))
    }

    fn lock(&self) -> MutexGuard<'_, Topics> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to send pending changes. Dropped with a runtime that ends before, it drops them, so that the next change begins
/// anew.
pub(super) struct PendingChanges(Option<Arc<Changes>>);

impl PendingChanges {
    /// The changes so far. What changes from here on is sent again.
    pub(super) fn take(mut self) -> Topics {
        let changes = self.0.take();
        changes.map_or_else(Topics::default, |changes| mem::take(&mut *changes.lock()))
    }
}

impl Drop for PendingChanges {
    fn drop(&mut self) {
        if let Some(changes) = &self.0 {
            *changes.lock() = Topics::default();
        }
    }
}

/// Changes that a session is to be notified of. They cannot grow beyond what the client wants to hear of, however slowly it
/// reads.
#[derive(Debug, Default)]
pub(crate) struct DueTopics(Mutex<DueState>);

#[derive(Debug, Default)]
struct DueState {
    topics: Topics,
    /// Whether a task is sending them.
    is_sending: bool,
}

impl DueTopics {
    /// Adds topics. Returns whether the caller must begin to send them.
    pub(super) fn add(&self, topics: Topics) -> bool {
        let mut due = self.lock();
        due.topics.merge(topics);
        !due.topics.is_empty() && !mem::replace(&mut due.is_sending, true)
    }

    pub(super) fn sender(&self) -> DueSender<'_> {
        DueSender(Some(self))
    }

    fn lock(&self) -> MutexGuard<'_, DueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to send due topics. Dropped with a runtime that ends meanwhile, it leaves them to another task.
pub(super) struct DueSender<'a>(Option<&'a DueTopics>);

impl DueSender<'_> {
    /// The topics to send next. `None` where there are none, which ends the duty.
    pub(super) fn next(&mut self) -> Option<Topics> {
        let mut due = self.0?.lock();
        due.is_sending = !due.topics.is_empty();
        if due.is_sending {
            return Some(mem::take(&mut due.topics));
        }
        drop(due);
        self.0 = None;
        None
    }
}

impl Drop for DueSender<'_> {
    fn drop(&mut self) {
        if let Some(due) = self.0 {
            due.lock().is_sending = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(uris: &[&str]) -> Topics {
        let filter = SubscriptionFilter::default().with_tools_list_changed(true);
        let filter = uris.iter().fold(filter, |filter, uri| {
            filter.with_resource_subscription(*uri)
        });
        filter.into()
    }

    #[test]
    fn topics_are_sets() {
        let mut one = topics(&["b:", "a:", "b:"]);
        assert_eq!(one.uris.len(), 2);
        let other = Topics::of_resource("b:");
        assert!(one.and(&Topics::of_resource("c:")).is_empty());
        assert_eq!(one.and(&other).uris, other.uris);
        assert!(!one.and(&other).lists.tools_list_changed);
        assert!(one.and(&one).lists.tools_list_changed);
        one.merge(topics(&["c:"]));
        let uris: Vec<_> = one.uris.iter().map(|uri| &**uri).collect();
        assert_eq!(uris, ["a:", "b:", "c:"]);
    }
}

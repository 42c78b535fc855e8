//! Topics of notifications: sets of what has changed, or of what a client has subscribed to, and the changes that wait to be
//! sent.

use std::{collections::BTreeSet, mem, ops::Deref, sync::Arc};

use oxmcp_protocol::SubscriptionFilter;
use tokio::runtime::Handle;

use crate::sync::Mutex;

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
    pub(super) due: Arc<DueTopics>,
    /// The runtime of the newest connection, since features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// A client has connected within the current runtime.
    pub(crate) fn connected(&self) {
        *self.runtime.lock() = Handle::try_current().ok();
    }

    /// The runtime to send from, where there is any.
    pub(super) fn runtime(&self) -> Option<Handle> {
        let newest = || {
            let runtime = self.runtime.lock();
            runtime.clone()
        };
        Handle::try_current().ok().or_else(newest)
    }
}

/// Topics of which notifications are to be sent, as a set: it does not grow with the number of changes, however slowly a client
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
        let mut due = self.0.lock();
        due.topics.merge(topics);
        !due.topics.is_empty() && !mem::replace(&mut due.is_sending, true)
    }
}

/// The duty to send due topics. Dropped with a runtime that ends meanwhile, it leaves them to another task.
pub(super) struct DueSender<D: Deref<Target = DueTopics>>(Option<D>);

impl<D: Deref<Target = DueTopics>> DueSender<D> {
    pub(super) fn new(due: D) -> Self {
        Self(Some(due))
    }

    /// The topics to send next. `None` where there are none, which ends the duty.
    pub(super) fn next(&mut self) -> Option<Topics> {
        let mut state = self.0.as_ref()?.0.lock();
        state.is_sending = !state.topics.is_empty();
        if state.is_sending {
            return Some(mem::take(&mut state.topics));
        }
        drop(state);
        self.0 = None;
        None
    }

    /// The topics so far, which ends the duty: what comes from here on is sent anew.
    pub(super) fn finish(mut self) -> Topics {
        let Some(due) = self.0.take() else {
            return Topics::default();
        };
        let DueState { topics, .. } = mem::take(&mut *due.0.lock());
        topics
    }
}

impl<D: Deref<Target = DueTopics>> Drop for DueSender<D> {
    fn drop(&mut self) {
        if let Some(due) = &self.0 {
            due.0.lock().is_sending = false;
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

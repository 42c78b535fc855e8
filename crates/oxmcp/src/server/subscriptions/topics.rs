//! Topics of notifications: sets of topics that have changed, or that a client has subscribed to, and the changes to send.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    ops::Deref,
    sync::Arc,
};

use oxmcp_protocol::{
    Notification, SubscriptionFilter,
    method::{PromptListChanged, ResourceListChanged, ToolListChanged},
};
use tokio::runtime::Handle;

use crate::sync::Mutex;

/// Whether a set of topics has a list.
pub(crate) type HasList = fn(&SubscriptionFilter) -> bool;

/// The notification of each list, and whether a set of topics has it.
pub(crate) const LISTS: [(&str, HasList); 3] = [
    (ToolListChanged::NAME, |lists| lists.tools_list_changed),
    (PromptListChanged::NAME, |lists| lists.prompts_list_changed),
    (ResourceListChanged::NAME, |lists| {
        lists.resources_list_changed
    }),
];

/// A change at a node. Each change of a node has a unique number.
#[cfg(feature = "http-server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) node: u64,
    pub(crate) number: u64,
}

/// Lists and resources of which to notify clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    /// The lists. The URIs of the filter are moved to `uris`, where they are found quickly.
    pub(crate) lists: SubscriptionFilter,
    /// The resources, in the order in which they are sent.
    pub(crate) uris: BTreeSet<Arc<str>>,
    /// The changes that have made each topic due, if other nodes also send them: the number of the last change at each node. The
    /// key is the notification of a list, or the URI.
    changes: BTreeMap<Arc<str>, BTreeMap<u64, u64>>,
}

impl Topics {
    /// A single resource.
    pub(crate) fn of_resource(uri: &str) -> Self {
        Self {
            uris: BTreeSet::from([uri.into()]),
            ..Self::default()
        }
    }

    /// These lists, and these resources.
    #[cfg(feature = "http-server")]
    pub(crate) fn new(
        lists: SubscriptionFilter,
        uris: impl IntoIterator<Item = impl Into<Arc<str>>>,
    ) -> Self {
        Self {
            lists,
            uris: uris.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Records for all topics the change that has made them due, if other nodes are notified of it.
    #[cfg(feature = "http-server")]
    pub(crate) fn due_to(mut self, change: impl Into<Option<Change>>) -> Self {
        let Some(change) = change.into() else {
            return self;
        };
        let lists = self.lists().map(Into::into);
        let all: Vec<Arc<str>> = lists.chain(self.uris.iter().cloned()).collect();
        for topic in all {
            self.note_change(topic, change);
        }
        self
    }

    /// Records a change that has made one of the topics due.
    #[cfg(feature = "http-server")]
    pub(crate) fn note_change(&mut self, topic: Arc<str>, change: Change) {
        self.note_changes(topic, [(change.node, change.number)]);
    }

    fn note_changes(&mut self, topic: Arc<str>, changes: impl IntoIterator<Item = (u64, u64)>) {
        let known = self.changes.entry(topic).or_default();
        for (node, number) in changes {
            let last = known.entry(node).or_default();
            *last = number.max(*last);
        }
    }

    /// The same topics, with the changes that have made them due in `others`.
    pub(crate) fn due_as(mut self, others: &Self) -> Self {
        let is_list = |topic: &str| self.lists().any(|list| list == topic);
        let changes = others.changes.iter();
        let changes = changes.filter(|(topic, _)| self.uris.contains(*topic) || is_list(topic));
        self.changes = changes
            .map(|(topic, changes)| (Arc::clone(topic), changes.clone()))
            .collect();
        self
    }

    /// The changes that have made a topic due, as text for its notification. Equal changes give equal texts.
    pub(crate) fn changes_of(&self, topic: &str) -> Option<String> {
        let changes = self.changes.get(topic)?.iter();
        let changes = changes.map(|(node, number)| format!("{node:x}.{number}"));
        Some(changes.collect::<Vec<_>>().join(" "))
    }

    /// The notifications of the lists.
    fn lists(&self) -> impl Iterator<Item = &'static str> {
        let lists = LISTS.into_iter().filter(|(_, has)| has(&self.lists));
        lists.map(|(name, _)| name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty()
    }

    /// The topics that are in both sets, without their changes.
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
            ..Self::default()
        }
    }

    /// Adds the topics of `other`.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.lists.merge(other.lists);
        self.uris.append(&mut other.uris);
        for (topic, changes) in other.changes {
            self.note_changes(topic, changes);
        }
    }
}

impl From<SubscriptionFilter> for Topics {
    fn from(mut lists: SubscriptionFilter) -> Self {
        let uris = mem::take(&mut lists.resource_subscriptions);
        Self {
            lists,
            uris: uris.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// The changes of a server that clients have not been notified of yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) due: Arc<DueTopics>,
    /// The runtime of the newest connection, since features may be changed from any thread.
    runtime: Mutex<Option<Handle>>,
}

impl Changes {
    /// Records the current runtime, in which a client has connected.
    pub(crate) fn connected(&self) {
        *self.runtime.lock() = Handle::try_current().ok();
    }

    /// The runtime to send from, if there is one.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        let newest = || {
            let runtime = self.runtime.lock();
            runtime.clone()
        };
        Handle::try_current().ok().or_else(newest)
    }
}

/// The topics with notifications to send, as a set: it does not grow with the number of changes, however slowly a client reads.
#[derive(Debug, Default)]
pub(crate) struct DueTopics(Mutex<DueState>);

#[derive(Debug, Default)]
struct DueState {
    topics: Topics,
    /// Whether a task is sending them.
    is_sending: bool,
}

impl DueTopics {
    /// Adds topics. Returns whether the caller must start sending them.
    pub(crate) fn add(&self, topics: Topics) -> bool {
        let mut due = self.0.lock();
        due.topics.merge(topics);
        !due.topics.is_empty() && !mem::replace(&mut due.is_sending, true)
    }
}

/// The duty to send due topics. If it is dropped with its runtime, another task may send them.
pub(crate) struct DueSender<D: Deref<Target = DueTopics>>(Option<D>);

impl<D: Deref<Target = DueTopics>> DueSender<D> {
    pub(crate) fn new(due: D) -> Self {
        Self(Some(due))
    }

    /// The topics to send next. `None` means that no topics are due, and ends the duty.
    pub(crate) fn next(&mut self) -> Option<Topics> {
        let mut state = self.0.as_ref()?.0.lock();
        state.is_sending = !state.topics.is_empty();
        if state.is_sending {
            return Some(mem::take(&mut state.topics));
        }
        drop(state);
        self.0 = None;
        None
    }

    /// Returns the topics so far and ends the duty: later topics are sent by another task.
    pub(crate) fn finish(mut self) -> Topics {
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

    #[cfg(feature = "http-server")]
    #[test]
    fn topics_record_the_cause_of_each_change() {
        let due = |topics: Topics, node, number| topics.due_to(Change { node, number });
        let mut all = due(topics(&["a:", "b:"]), 10, 2);
        all.merge(due(Topics::of_resource("a:"), 7, 1));
        all.merge(due(Topics::of_resource("a:"), 10, 1));
        all.merge(Topics::of_resource("c:"));
        let changes = |topics: &Topics| {
            ["a:", "b:", "c:", ToolListChanged::NAME].map(|topic| topics.changes_of(topic))
        };
        let [one, both] = ["a.2", "7.1 a.2"].map(|text| Some(text.to_owned()));
        assert_eq!(
            changes(&all),
            [both.clone(), one.clone(), None, one.clone()]
        );
        // The changes of topics of which a session is not notified are not kept.
        let mut told = Topics::of_resource("a:").due_as(&all);
        assert_eq!(changes(&told), [both.clone(), None, None, None]);
        told.lists.tools_list_changed = true;
        assert_eq!(changes(&told.due_as(&all)), [both, None, None, one]);
    }
}

use std::{collections::BTreeSet, mem, sync::Arc};

use crate::protocol::SubscriptionFilter;

/// What can be told, as sets: what has changed, or what somebody wants to hear of. Where both agree something is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    /// The lists. The URIs that a filter can hold are beside it, where they are found quickly.
    pub(crate) lists: SubscriptionFilter,
    /// The resources, in the order in which they are told.
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

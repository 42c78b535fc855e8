//! The events of a subscription, and the queue in which they wait for its reader.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use oxmcp_json::Text;
use oxmcp_protocol::{
    Notification, RawJson, ResourceUpdatedParams, SubscriptionFilter,
    method::{PromptListChanged, ResourceListChanged, ResourceUpdated, ToolListChanged},
};

use crate::{
    limits::Limits,
    session::{connection::Connection, notifications::queue::BoundedQueue},
};

/// An event of a [`Subscription`](crate::Subscription).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriptionEvent {
    /// The list of tools has changed.
    ToolsListChanged,
    /// The list of prompts has changed.
    PromptsListChanged,
    /// The list of resources or of resource templates has changed.
    ResourcesListChanged,
    /// A resource has changed.
    ResourceUpdated(ResourceUpdatedParams),
    /// The subscription was interrupted, and is open again with this filter. Anything that passes the filter may have
    /// changed meanwhile.
    Resumed(SubscriptionFilter),
    /// A notification that this version of the crate does not know.
    #[non_exhaustive]
    Other {
        /// The name of the notification.
        method: String,
        /// The params of the notification.
        params: Option<RawJson>,
    },
}

impl SubscriptionEvent {
    /// The event of a notification. A notification that cannot be read is kept as it is.
    pub(crate) fn read(connection: &Connection, method: &str, params: Option<Text<'_>>) -> Self {
        let updated = || params.and_then(|params| connection.read(method, params.get()).ok());
        let other = || Self::Other {
            method: method.to_owned(),
            params: params.map(|params| params.to_raw().into()),
        };
        match method {
            ToolListChanged::NAME => Self::ToolsListChanged,
            PromptListChanged::NAME => Self::PromptsListChanged,
            ResourceListChanged::NAME => Self::ResourcesListChanged,
            ResourceUpdated::NAME => updated().map_or_else(other, Self::ResourceUpdated),
            _ => other(),
        }
    }
}

/// The end of a [`Subscription`](crate::Subscription).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionEnd {
    /// The server ended the subscription properly, as it does when it shuts down.
    Graceful,
    /// The server aborted the subscription, or went away.
    Remote,
    /// This side ended the subscription, or closed the session.
    Local,
}

/// Events in the order of arrival, without duplicates.
#[derive(Debug)]
pub(crate) struct EventQueue {
    waiting: BoundedQueue<QueuedEvent>,
    hasher: RandomState,
}

#[derive(Debug)]
struct QueuedEvent {
    event: SubscriptionEvent,
    /// A keyed hash, so that few events are compared in full: a peer may send events that differ only at their ends.
    hash: u64,
}

impl EventQueue {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            waiting: BoundedQueue::new(limits),
            hasher: RandomState::new(),
        }
    }

    /// Adds an event; if the queue is full, the oldest is dropped. Returns `false` if an equal one is queued already.
    pub(crate) fn push(&mut self, event: SubscriptionEvent) -> bool {
        let text = text(&event);
        let (bytes, hash) = (text.len(), self.hasher.hash_one(&text));
        let is_known = |it: &QueuedEvent| it.hash == hash && it.event == event;
        if self.waiting.iter().any(is_known) {
            return false;
        }
        let lost = "dropping the oldest event of a subscription that is not read";
        self.waiting.push(QueuedEvent { event, hash }, bytes, lost);
        true
    }

    pub(crate) fn pop(&mut self) -> Option<SubscriptionEvent> {
        self.waiting.pop().map(|waiting| waiting.event)
    }
}

/// The text of an event, to be hashed and counted. An event that was read from JSON can always be written.
fn text(event: &SubscriptionEvent) -> Vec<u8> {
    match event {
        SubscriptionEvent::ToolsListChanged => b"tools".to_vec(),
        SubscriptionEvent::PromptsListChanged => b"prompts".to_vec(),
        SubscriptionEvent::ResourcesListChanged => b"resources".to_vec(),
        SubscriptionEvent::ResourceUpdated(update) => {
            serde_json::to_vec(update).unwrap_or_default()
        }
        SubscriptionEvent::Resumed(filter) => serde_json::to_vec(filter).unwrap_or_default(),
        SubscriptionEvent::Other { method, params } => {
            let params = params.as_ref().map_or("", |params| params.get());
            [method, params].concat().into_bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxmcp_protocol::ResourceUpdatedParams;

    fn updated(uri: &str) -> SubscriptionEvent {
        SubscriptionEvent::ResourceUpdated(ResourceUpdatedParams::new(uri))
    }

    fn queue(limit: usize, max_bytes: usize) -> EventQueue {
        EventQueue::new(
            &Limits::default()
                .max_queued_notifications(limit)
                .max_message_bytes(max_bytes),
        )
    }

    #[test]
    fn queued_events_are_bounded_in_number_and_bytes() {
        let mut events = queue(3, 1000);
        for uri in ["a", "b", "a", "c", "d"] {
            events.push(updated(uri));
        }
        assert_eq!(events.waiting.len(), 3);
        assert_eq!(events.pop(), Some(updated("b")));
        // There is room for one of these.
        for letter in ["x", "y"] {
            assert!(events.push(updated(&letter.repeat(700))));
        }
        assert_eq!(events.pop(), Some(updated(&"y".repeat(700))));
        assert_eq!((events.pop(), events.waiting.bytes()), (None, 0));
        // An event that is longer than the bound is queued by itself.
        assert!(events.push(SubscriptionEvent::ToolsListChanged));
        assert!(events.push(updated(&"z".repeat(2000))));
        assert!(events.pop().is_some() && events.pop().is_none());
    }

    /// A comparison of each event with all queued events would take minutes here: they differ only at their ends.
    #[test]
    fn similar_events_are_compared_in_bounded_time() {
        let mut events = queue(1 << 13, usize::MAX);
        let long = "x".repeat(1 << 14);
        let other = |index: usize| SubscriptionEvent::Other {
            method: format!("{long}{index:06}"),
            params: None,
        };
        for index in 0..1 << 14 {
            assert!(events.push(other(index)));
        }
        assert!(!events.push(other((1 << 14) - 1)));
        assert_eq!(events.waiting.len(), 1 << 13);
    }
}

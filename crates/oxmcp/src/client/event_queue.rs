//! The events of a subscription that wait to be taken.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use crate::{client::subscription::SubscriptionEvent, limits::Limits, session::Bounded};

/// Events in the order in which they came, each once.
#[derive(Debug)]
pub(super) struct EventQueue {
    waiting: Bounded<Waiting>,
    keys: RandomState,
}

#[derive(Debug)]
struct Waiting {
    event: SubscriptionEvent,
    /// Equal events have equal ones, so that few are compared in full: what comes from a peer may be made to be alike.
    key: u64,
}

impl EventQueue {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            waiting: Bounded::new(limits),
            keys: RandomState::new(),
        }
    }

    /// Keeps an event; where there is no room the oldest gives way. `false` where what is waiting already says the same.
    pub(super) fn push(&mut self, event: SubscriptionEvent) -> bool {
        let text = text(&event);
        let (bytes, key) = (text.len(), self.keys.hash_one(&text));
        let is_known = |it: &Waiting| it.key == key && it.event == event;
        if self.waiting.iter().any(is_known) {
            return false;
        }
        let lost = "a subscription is not read; its oldest event is dropped";
        self.waiting.push(Waiting { event, key }, bytes, lost);
        true
    }

    pub(super) fn pop(&mut self) -> Option<SubscriptionEvent> {
        self.waiting.pop().map(|waiting| waiting.event)
    }
}

/// What an event says. What it cannot be written of, which is nothing that was ever read, says nothing.
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
    use crate::protocol::ResourceUpdatedParams;

    fn updated(uri: &str) -> SubscriptionEvent {
        SubscriptionEvent::ResourceUpdated(ResourceUpdatedParams::new(uri))
    }

    fn queue(limit: usize, max_bytes: usize) -> EventQueue {
        EventQueue::new(&Limits {
            max_queued_notifications: limit,
            max_message_bytes: max_bytes,
            ..Limits::default()
        })
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes() {
        let mut events = queue(3, 1000);
        for uri in ["a", "b", "a", "c", "d"] {
            events.push(updated(uri));
        }
        assert_eq!(events.waiting.len(), 3);
        assert_eq!(events.pop(), Some(updated("b")));
        // Two of these have no room beside each other.
        for letter in ["x", "y"] {
            assert!(events.push(updated(&letter.repeat(700))));
        }
        assert_eq!(events.pop(), Some(updated(&"y".repeat(700))));
        assert_eq!((events.pop(), events.waiting.bytes()), (None, 0));
        // What is longer than all room waits alone.
        assert!(events.push(SubscriptionEvent::ToolsListChanged));
        assert!(events.push(updated(&"z".repeat(2000))));
        assert!(events.pop().is_some() && events.pop().is_none());
    }

    /// That each that comes is compared with all that wait would be seen: they differ at their ends.
    #[test]
    fn events_that_are_alike_cost_no_more_than_others() {
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

//! The progress tokens of the peer's requests, for reports that do not come from the request's handler.

use std::sync::{Arc, Weak};

use crate::sync::Mutex;

/// The contexts `C` of the requests with a token: those that are being served, and at most as many that have ended.
#[derive(Debug)]
pub(crate) struct ProgressTokens<C>(Mutex<Vec<Weak<C>>>);

impl<C> Default for ProgressTokens<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C> ProgressTokens<C> {
    /// Adds a request, and removes those for which `is_over` when the list must grow.
    pub(crate) fn add(&self, context: &Arc<C>, is_over: impl Fn(&C) -> bool) {
        let mut contexts = self.0.lock();
        // Checking all of them each time would cost more than keeping some that have ended.
        if contexts.len() == contexts.capacity() {
            contexts.retain(|it| it.upgrade().is_some_and(|it| !is_over(&it)));
            let more = contexts.len().max(4);
            contexts.reserve_exact(more);
        }
        contexts.push(Arc::downgrade(context));
    }

    /// The newest request for which `is_meant` is true.
    pub(crate) fn find(&self, is_meant: impl Fn(&C) -> bool) -> Option<Arc<C>> {
        let contexts = self.0.lock();
        let mut contexts = contexts.iter().rev().filter_map(Weak::upgrade);
        contexts.find(|it| is_meant(it))
    }
}

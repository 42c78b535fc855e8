//! Counts client messages that wait to be passed to other nodes.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The messages of a session, or of an endpoint, that wait for the store or the bus. The count goes down when a message is dropped.
#[derive(Debug)]
pub(crate) struct Undelivered {
    waiting: AtomicUsize,
    max: usize,
}

impl Undelivered {
    /// The messages of one session. A call asks only a few questions at once.
    pub(crate) const fn of_session() -> Self {
        Self::at_most(64)
    }

    /// The messages of all sessions.
    pub(crate) const fn of_endpoint() -> Self {
        Self::at_most(4096)
    }

    const fn at_most(max: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            max,
        }
    }

    pub(crate) fn enter(&self) -> bool {
        let more = |waiting| (waiting < self.max).then_some(waiting + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.waiting.fetch_update(set, fetch, more).is_ok()
    }

    pub(crate) fn leave(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

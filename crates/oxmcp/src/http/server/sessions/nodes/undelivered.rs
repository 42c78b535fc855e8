//! Client messages that wait to be passed to other nodes: how many there are, and which of them have arrived.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{session::task::Latch, sync::Mutex};

/// The messages of a session, or of an endpoint, that wait for the store or the bus. The count goes down when a message is dropped.
#[derive(Debug)]
pub(crate) struct Undelivered {
    waiting: AtomicUsize,
    max: usize,
}

impl Undelivered {
    /// The messages of one session. A call asks only a few questions at once, but a host may make many calls.
    pub(crate) const fn of_session() -> Self {
        Self::at_most(256)
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

/// Answers that this node passes on. Over the bus they may reach nobody, so they are repeated until the node that asked confirms
/// that it has them.
#[derive(Debug, Default)]
pub(crate) struct Confirmations(Arc<Mutex<HashMap<i64, Arc<Latch>>>>);

impl Confirmations {
    /// Expects a confirmation of the answer to the question with this ID, as long as the returned guard exists.
    pub(crate) fn expect(&self, id: i64) -> Confirmation {
        let arrived = Arc::<Latch>::default();
        self.0.lock().insert(id, Arc::clone(&arrived));
        Confirmation {
            expected: Self(Arc::clone(&self.0)),
            id,
            arrived,
        }
    }

    /// Records that the answer to the question with this ID has arrived.
    pub(crate) fn confirm(&self, id: i64) {
        if let Some(arrived) = self.0.lock().get(&id) {
            arrived.set();
        }
    }
}

/// The confirmation that an answer has arrived.
#[derive(Debug)]
pub(crate) struct Confirmation {
    expected: Confirmations,
    id: i64,
    arrived: Arc<Latch>,
}

impl Confirmation {
    pub(crate) fn has_arrived(&self) -> bool {
        self.arrived.is_set()
    }

    /// Waits until the answer has arrived. Cancel safe.
    pub(crate) async fn arrival(&self) {
        self.arrived.wait().await;
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        let mut expected = self.expected.0.lock();
        // The client may have answered twice.
        if expected
            .get(&self.id)
            .is_some_and(|it| Arc::ptr_eq(it, &self.arrived))
        {
            expected.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_answers_are_confirmed() {
        let confirmations = Confirmations::default();
        confirmations.confirm(1);
        let (first, other) = (confirmations.expect(1), confirmations.expect(2));
        assert!(!first.has_arrived());
        confirmations.confirm(1);
        assert!(first.has_arrived() && !other.has_arrived());
        let again = confirmations.expect(1);
        drop(first);
        confirmations.confirm(1);
        assert!(again.has_arrived(), "the guard of another answer is kept");
        drop((again, other));
        assert!(confirmations.0.lock().is_empty());
    }
}

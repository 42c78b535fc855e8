//! Answers that arrive together, and are handed in together.

use std::task::Waker;

use crate::session::calls::{Answer, Calls};

/// Answers to calls of this side, on their way to who waits for them. To lock the [table](Calls) for each, and to wake a
/// caller before the next is looked at, would be a good part of what an answer costs.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    arrived: Vec<(i64, Answer)>,
    /// Who waits for them; it is here to be used again.
    wakers: Vec<Waker>,
}

impl Answers {
    pub(crate) fn push(&mut self, id: i64, answer: Answer) {
        self.arrived.push((id, answer));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Hands all in, and wakes who waits for them. Those come back for which nobody waits.
    pub(crate) fn hand_in(&mut self, calls: &Calls) -> Vec<(i64, Answer)> {
        let unknown = calls.answer_all(self.arrived.drain(..), &mut self.wakers);
        self.wakers.drain(..).for_each(Waker::wake);
        unknown
    }
}

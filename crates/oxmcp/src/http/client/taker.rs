//! What becomes of the messages that an answer brings.

use bytes::Bytes;
use http::HeaderValue;

use super::{engine::Event, link::Link};
use crate::jsonrpc::{RequestId, answered};

/// Takes the messages of one exchange.
pub(super) struct Taker {
    /// The request that is to be answered.
    awaits: Option<RequestId>,
    then: Then,
    /// Whether the answer was among them.
    pub(super) has_answer: bool,
}

/// What is done with the answer.
pub(super) enum Then {
    /// Whoever reads is told, as of all other messages.
    Tell,
    /// It opens a session, with this id.
    Open(Option<HeaderValue>),
    /// It is kept.
    Keep(Option<Bytes>),
}

impl Taker {
    pub(super) fn new(awaits: RequestId, then: Then) -> Self {
        Self {
            awaits: Some(awaits),
            then,
            has_answer: false,
        }
    }

    /// For messages of which none is an answer.
    pub(super) fn of_all() -> Self {
        Self {
            awaits: None,
            then: Then::Tell,
            has_answer: false,
        }
    }

    pub(super) async fn take(&mut self, link: &Link, message: Bytes) {
        if !self.has_answer && self.is_answer(&message) {
            self.has_answer = true;
            match &mut self.then {
                Then::Tell => {}
                // It is open before whoever waits for it goes on.
                Then::Open(id) => link.agree(&message, id.take()),
                Then::Keep(kept) => {
                    *kept = Some(message);
                    return;
                }
            }
        }
        link.inlet.tell(Event::Message(message)).await;
    }

    fn is_answer(&self, message: &[u8]) -> bool {
        let awaits = self.awaits.as_ref();
        awaits.is_some_and(|id| answered(message).any(|it| it == *id))
    }

    /// The answer that was kept.
    pub(super) fn into_kept(self) -> Option<Bytes> {
        match self.then {
            Then::Keep(kept) => kept,
            _ => None,
        }
    }
}

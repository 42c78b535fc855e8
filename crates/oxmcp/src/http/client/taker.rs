//! What becomes of the messages that an answer brings.

use bytes::Bytes;
use http::HeaderValue;

use super::{
    engine::Event,
    link::Link,
    outgoing::Outgoing,
    session::{changes_session, outcome},
};

/// Takes the messages of one exchange.
pub(super) struct Taker<'a> {
    /// The request that is to be answered.
    asked: Option<&'a Outgoing>,
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

impl<'a> Taker<'a> {
    pub(super) fn new(asked: &'a Outgoing, then: Then) -> Self {
        Self {
            asked: Some(asked),
            then,
            has_answer: false,
        }
    }

    /// For messages of which none is an answer.
    pub(super) fn of_all() -> Self {
        Self {
            asked: None,
            then: Then::Tell,
            has_answer: false,
        }
    }

    pub(super) async fn take(&mut self, link: &Link, message: Bytes) {
        if let Some(asked) = self.asked.filter(|_| !self.has_answer)
            && asked.is_answered_by(&message)
        {
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
            if changes_session(asked) && outcome(&message).is_ok() {
                link.state().restore.agreed(asked);
            }
        }
        link.inlet.tell(Event::Message(message)).await;
    }

    /// The answer that was kept.
    pub(super) fn into_kept(self) -> Option<Bytes> {
        match self.then {
            Then::Keep(kept) => kept,
            _ => None,
        }
    }
}

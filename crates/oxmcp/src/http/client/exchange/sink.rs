//! What becomes of the messages that an answer brings.

use bytes::Bytes;
use http::HeaderValue;

use crate::http::client::exchange::engine::Event;
use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::session::{changes_session, outcome};
use crate::http::client::exchange::shared::Link;

/// Takes the messages of one exchange.
pub(crate) struct Taker<'a> {
    /// The request that is to be answered.
    asked: Option<&'a Outgoing>,
    then: Then,
    /// Whether the answer was among them.
    pub(crate) has_answer: bool,
}

/// What is done with the answer.
pub(crate) enum Then {
    /// Whoever reads is told, as of all other messages.
    Tell,
    /// It opens a session, with this id.
    Open(Option<HeaderValue>),
    /// It is kept.
    Keep(Option<Bytes>),
}

impl<'a> Taker<'a> {
    pub(crate) fn new(asked: &'a Outgoing, then: Then) -> Self {
        Self {
            asked: Some(asked),
            then,
            has_answer: false,
        }
    }

    /// For messages of which none is an answer.
    pub(crate) fn of_all() -> Self {
        Self {
            asked: None,
            then: Then::Tell,
            has_answer: false,
        }
    }

    pub(crate) async fn take(&mut self, link: &Link, message: Bytes) {
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
    pub(crate) fn into_kept(self) -> Option<Bytes> {
        match self.then {
            Then::Keep(kept) => kept,
            _ => None,
        }
    }
}

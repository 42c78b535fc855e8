//! The sink of the messages in a response, which finds the answer among them.

use bytes::Bytes;
use http::HeaderValue;

use crate::http::client::exchange::{
    executor::Event,
    message::OutgoingMessage,
    session::{Session, changes_session, error_without_id, negotiated_revision, result_of},
    shared::Exchanges,
};

/// The sink of one exchange.
pub(crate) struct MessageSink<'a> {
    /// The request that is to be answered, if there is one.
    request: Option<&'a OutgoingMessage>,
    on_answer: OnAnswer,
    /// Whether the answer was among the messages.
    pub(crate) has_answer: bool,
}

/// The treatment of the answer.
pub(crate) enum OnAnswer {
    /// The answer is sent to the reader, as all other messages are.
    Forward,
    /// The same, after a session with this id was opened.
    OpenSession(Option<HeaderValue>),
    /// The answer is kept.
    Keep(Option<Bytes>),
}

impl<'a> MessageSink<'a> {
    pub(crate) fn new(request: &'a OutgoingMessage, on_answer: OnAnswer) -> Self {
        Self {
            request: Some(request),
            on_answer,
            has_answer: false,
        }
    }

    /// The sink of a stream that belongs to no request.
    pub(crate) fn without_request() -> Self {
        Self {
            request: None,
            on_answer: OnAnswer::Forward,
            has_answer: false,
        }
    }

    pub(crate) async fn take(&mut self, exchanges: &Exchanges, message: Bytes) {
        let open = self.request.filter(|_| !self.has_answer);
        if let Some(request) = open
            && request.is_answered_by(&message)
        {
            self.has_answer = true;
            match &mut self.on_answer {
                OnAnswer::Forward => {}
                OnAnswer::OpenSession(id) => exchanges.open_session(&message, id.take()),
                OnAnswer::Keep(kept) => {
                    *kept = Some(message);
                    return;
                }
            }
            if changes_session(request) && result_of(&message).is_ok() {
                exchanges.state.lock().setup.record(request);
            }
        } else if let Some(id) = open.and_then(|request| request.id.clone())
            && let Some(error) = error_without_id(&message)
        {
            // Each HTTP request has one message, so the error is the answer to it.
            self.has_answer = true;
            match &mut self.on_answer {
                OnAnswer::Keep(kept) => *kept = Some(message),
                _ => exchanges.spawner.send_event(Event::Failed(id, error)).await,
            }
            return;
        }
        exchanges.spawner.send_event(Event::Message(message)).await;
    }

    /// The answer that was kept.
    pub(crate) fn into_kept(self) -> Option<Bytes> {
        match self.on_answer {
            OnAnswer::Keep(kept) => kept,
            _ => None,
        }
    }
}

impl Exchanges {
    /// Opens the session to which an answer to `initialize` has agreed.
    fn open_session(&self, answer: &Bytes, id: Option<HeaderValue>) {
        let Some(revision) = negotiated_revision(answer) else {
            return;
        };
        let mut state = self.state.lock();
        let generation = state.session.generation + 1;
        state.session = Session::new(generation, id, Some(revision));
    }
}

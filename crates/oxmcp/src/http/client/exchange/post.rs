//! The exchange of one message: a POST and its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response};
use tokio::time::sleep;

use crate::http::client::exchange::event_stream::{Ended, Stream};
use crate::http::client::exchange::message::Outgoing;
use crate::http::client::exchange::response::{self, Form, read_body, refusal};
use crate::http::client::exchange::session::{Session, agreed_revision};
use crate::http::client::exchange::shared::Link;
use crate::http::client::exchange::sink::{Taker, Then};
use crate::http::client::reconnect::retry::Attempts;
use crate::http::client::transport::http_client::HttpBody;
use crate::{Error, Result, http::names::SESSION_ID, protocol::method};

/// Why an exchange did not end with an answer.
pub(crate) enum Missed {
    /// The server does not know the session: whether it had begun to serve the message, and what it says.
    Lost {
        begun: bool,
        error: Error,
    },
    Failed(Error),
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Link {
    /// Sends a message, until its answer is there, by way of another session where the server has lost the one that was
    /// open.
    pub(crate) async fn exchange(self: &Arc<Self>, message: &Outgoing) -> Result<()> {
        if message.modern().is_some() || message.is("initialize") {
            let missed = self.attempt(message, &Session::default()).await;
            return match missed {
                Err(Missed::Failed(error)) if message.is("initialize") => {
                    Box::pin(self.initialize_2024(message, error)).await
                }
                Err(Missed::Failed(error) | Missed::Lost { error, .. }) => Err(error),
                Ok(()) => Ok(()),
            };
        }
        if !message.is("notifications/initialized") {
            self.gate.pass().await;
        }
        let session = self.session();
        let begun = match self.attempt(message, &session).await {
            Ok(()) => return Ok(()),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Lost { begun, .. }) => begun,
        };
        Box::pin(self.renew(session.generation)).await?;
        if message.method().is_none() || message.is("notifications/cancelled") {
            // What it is about has gone with the session.
            return Ok(());
        }
        if begun && !is_repeatable(message) {
            return Err(lost_at_work());
        }
        match self.attempt(message, &self.session()).await {
            Ok(()) => Ok(()),
            Err(Missed::Lost { begun: true, .. }) if !is_repeatable(message) => Err(lost_at_work()),
            Err(Missed::Failed(error) | Missed::Lost { error, .. }) => Err(error),
        }
    }

    /// Sends a message and takes its answer.
    pub(crate) async fn attempt(
        self: &Arc<Self>,
        message: &Outgoing,
        session: &Session,
    ) -> Result<(), Missed> {
        let response = self.send(message, session).await?;
        if !response.status().is_success() {
            let refusal = refusal(response).await;
            let is_lost = session.id.is_some() && refusal.is_session_lost(message.id.as_ref());
            let error = refusal.error;
            return Err(if is_lost {
                let begun = false;
                Missed::Lost { begun, error }
            } else {
                error.into()
            });
        }
        if self.state().messages_2024.is_some() && message.modern().is_none() {
            response::discard(response.into_body()).await;
            return Ok(());
        }
        if message.id.is_none() {
            response::discard(response.into_body()).await;
            return Ok(());
        }
        let then = if message.is("initialize") {
            Then::Open(response.headers().get(SESSION_ID).cloned())
        } else {
            Then::Tell
        };
        let taker = Taker::new(message, then);
        self.take_answer(message, taker, session, response).await?;
        Ok(())
    }

    /// Sends a message. A server that was there before and cannot be reached now is waited for.
    pub(crate) async fn send(
        &self,
        message: &Outgoing,
        session: &Session,
    ) -> Result<Response<HttpBody>> {
        let mut attempts = Attempts::new(&self.reconnect);
        loop {
            let target = self.state().messages_2024.clone();
            let target = target.filter(|_| message.modern().is_none());
            let target = target.as_ref().unwrap_or(&self.wire.target);
            let headers = || self.headers(message, session);
            let sent = self.wire.post(target, headers, message.body.clone());
            let sent = sent.await;
            let error = match sent {
                Ok(response) => {
                    self.state().reached = true;
                    return Ok(response);
                }
                Err(error) => error,
            };
            let wait = error.is_unreachable() && self.state().reached;
            match attempts.next(None).filter(|_| wait) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// Takes the answer to a request. Returns what was to be kept of it.
    pub(crate) async fn take_answer(
        self: &Arc<Self>,
        message: &Outgoing,
        mut taker: Taker<'_>,
        session: &Session,
        response: Response<HttpBody>,
    ) -> Result<Option<Bytes>, Missed> {
        // An `initialize` knows its session from the answer, also where that breaks off.
        let opened = message.is("initialize").then(|| Session {
            id: response.headers().get(SESSION_ID).cloned(),
            ..Session::default()
        });
        match Form::of(&response) {
            Form::Json => {
                let body = self.whole(response).await?;
                taker.take(self, body).await;
                if !taker.has_answer {
                    return Err(unanswered().into());
                }
                Ok(taker.into_kept())
            }
            Form::Events => {
                let mut stream = Stream::new(taker);
                match stream.read(self, response.into_body()).await {
                    Ended::Answered => {}
                    Ended::Overlong(error) => return Err(error.into()),
                    Ended::Cut { .. } if message.modern().is_none() && stream.is_resumable() => {
                        let session = opened.as_ref().unwrap_or(session);
                        Box::pin(self.resume(&mut stream, session)).await?;
                    }
                    Ended::Cut { why, .. } => return Err(cut(&why).into()),
                }
                Ok(stream.taker.into_kept())
            }
            Form::Other => {
                let status = response.status();
                response::discard(response.into_body()).await;
                Err(Error::decode(format!(
                    "the server answered a request with {status} and neither JSON nor a stream of events; is this the URL \
                     of an MCP server?"
                ))
                .into())
            }
        }
    }

    async fn whole(&self, response: Response<HttpBody>) -> Result<Bytes> {
        let limit = self.max_message;
        match read_body(&mut response.into_body(), limit).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(Error::limit(format!(
                "the answer is longer than {limit} bytes, which is the limit; it was not read"
            ))),
            Err(error) => {
                let why = error.message();
                Err(Error::network(format!("the answer broke off: {why}")))
            }
        }
    }

    /// The server has agreed to a session.
    pub(crate) fn agree(&self, answer: &Bytes, id: Option<HeaderValue>) {
        let Some(revision) = agreed_revision(answer) else {
            return;
        };
        let mut state = self.state();
        let generation = state.session.generation + 1;
        state.session = Session::new(generation, id, Some(revision), &self.wire.posted);
    }
}

/// Whether a request that may have been served can be made again.
fn is_repeatable(message: &Outgoing) -> bool {
    let row = message
        .method()
        .and_then(|name| method::find(method::REQUESTS_TO_SERVER, name));
    row.is_some_and(|row| row.repeatable)
}

fn lost_at_work() -> Error {
    Error::network(
        "the server lost the session while it worked on this request, so nobody knows what of it was done: ask again where \
         that can do no harm",
    )
}

fn unanswered() -> Error {
    Error::decode("the answer of the server does not answer the request that was made")
}

fn cut(why: &Error) -> Error {
    Error::network(format!(
        "{} before the answer was there, and it cannot be taken up again: call again where that can do no harm",
        why.message()
    ))
}

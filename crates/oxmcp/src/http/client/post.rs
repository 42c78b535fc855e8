//! The exchange of one message: a POST and its answer.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::Abortable;
use http::{Response, StatusCode};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{
    answer::{self, Form, read_body, refusal},
    engine::Event,
    http_client::HttpBody,
    link::{Link, Running, SESSION_ID},
    outgoing::{Kind, Outgoing},
    reconnect::Attempts,
    session::{Session, agreed_revision},
    stream::{Ended, Stream},
    taker::{Taker, Then},
};
use crate::{Error, ErrorCode, Result, jsonrpc::RequestId};

/// How long a server may take to accept what it does not answer.
const ACCEPTANCE: Duration = Duration::from_secs(60);
/// How long the first call waits for the stream on which the server says what belongs to no request: what it says
/// meanwhile would be lost.
const LISTENING: Duration = Duration::from_millis(250);

/// Why an exchange did not end with an answer.
pub(super) enum Missed {
    /// The server does not know the session. Whether it had begun to serve the message is said here.
    Lost {
        begun: bool,
    },
    Failed(Error),
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Link {
    /// Begins the exchange of a message. Waits only where too much is on its way.
    pub(super) async fn begin(self: &Arc<Self>, message: Outgoing) {
        if let Some(id) = message.cancels() {
            let cancelled = self.state().calls.remove(&id);
            if let Some(running) = &cancelled {
                running.abort.abort();
            }
            let modern = cancelled.map_or_else(|| !self.is_legacy(), |running| running.modern);
            if modern {
                // The end of the exchange says it.
                return;
            }
        }
        match message.id() {
            Some(id) => self.begin_call(id.clone(), message),
            None => self.begin_telling(message).await,
        }
    }

    fn begin_call(self: &Arc<Self>, id: RequestId, message: Outgoing) {
        let link = Arc::clone(self);
        let modern = message.modern.is_some();
        let name = id.clone();
        let call = async move {
            let outcome = link.exchange(&message).await;
            link.state().calls.remove(&id);
            if let Err(error) = outcome {
                link.inlet.tell(Event::Failed(id, error)).await;
            }
        };
        let (abort, registration) = futures_util::future::AbortHandle::new_pair();
        self.state().calls.insert(name, Running { abort, modern });
        self.inlet.begin(async move {
            let _ = Abortable::new(call, registration).await;
        });
    }

    async fn begin_telling(self: &Arc<Self>, message: Outgoing) {
        let Ok(place) = Arc::clone(&self.untaken).acquire_owned().await else {
            return;
        };
        let link = Arc::clone(self);
        // What follows it on the wire must not come before it.
        let first = message
            .is("notifications/initialized")
            .then(|| self.gate.close());
        self.inlet.begin(async move {
            let told = timeout(ACCEPTANCE, link.exchange(&message)).await;
            drop(place);
            match told {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the server did not take a message"),
                Err(_) => tracing::warn!("the server did not take a message in time"),
            }
            if first.is_some() {
                link.opened(&message).await;
            }
        });
    }

    /// A legacy session is open: listens to what the server says beside its answers.
    async fn opened(self: &Arc<Self>, initialized: &Outgoing) {
        let generation = {
            let mut state = self.state();
            state.restore.agreed(initialized);
            if state.messages_2024.is_some() || state.session.revision.is_none() {
                return;
            }
            state.session.generation
        };
        let (listening, heard) = oneshot::channel();
        self.listen(generation, listening);
        let _ = timeout(LISTENING, heard).await;
    }

    fn is_legacy(&self) -> bool {
        let state = self.state();
        state.session.revision.is_some() || state.messages_2024.is_some()
    }

    async fn exchange(self: &Arc<Self>, message: &Outgoing) -> Result<()> {
        if message.modern.is_some() || message.is("initialize") {
            let missed = self.attempt(message, &Session::default()).await;
            return match missed {
                Err(Missed::Failed(error)) if message.is("initialize") => {
                    self.initialize_2024(message, error).await
                }
                Err(Missed::Failed(error)) => Err(error),
                // There is no session that could be lost.
                Ok(()) | Err(Missed::Lost { .. }) => Ok(()),
            };
        }
        if !message.is("notifications/initialized") {
            self.gate.pass().await;
        }
        let session = self.session();
        let begun = match self.attempt(message, &session).await {
            Ok(()) => return Ok(()),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Lost { begun }) => begun,
        };
        self.renew(session.generation).await?;
        if message.kind == Kind::Response || message.is("notifications/cancelled") {
            // What it is about has gone with the session.
            return Ok(());
        }
        if begun && message.is("tools/call") {
            return Err(Error::network(
                "the server lost the session while it worked on this call, so nobody knows what of it was done; another \
                 session is open: call again where that can do no harm",
            ));
        }
        match self.attempt(message, &self.session()).await {
            Ok(()) => Ok(()),
            Err(Missed::Failed(error)) => Err(error),
            Err(Missed::Lost { .. }) => Err(Error::http(
                404,
                "the server lost the session, and the one that was opened in its place as well",
            )),
        }
    }

    /// Sends a message and takes its answer.
    pub(super) async fn attempt(
        self: &Arc<Self>,
        message: &Outgoing,
        session: &Session,
    ) -> Result<(), Missed> {
        let response = self.send(message, session).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.id.is_some() {
            let error = refusal(response).await;
            // One that knows the session but not the method.
            if error.is_protocol() && error.code() == ErrorCode::METHOD_NOT_FOUND {
                return Err(error.into());
            }
            return Err(Missed::Lost { begun: false });
        }
        if !status.is_success() {
            return Err(refusal(response).await.into());
        }
        if self.state().messages_2024.is_some() && message.modern.is_none() {
            answer::discard(response.into_body()).await;
            return Ok(());
        }
        match &message.kind {
            Kind::Request { id, .. } => {
                let then = if message.is("initialize") {
                    Then::Open(response.headers().get(SESSION_ID).cloned())
                } else {
                    Then::Tell
                };
                let taker = Taker::new(id.clone(), then);
                self.take_answer(message, taker, session, response).await?;
            }
            _ => answer::discard(response.into_body()).await,
        }
        if message.modern.is_none() {
            self.state().restore.agreed(message);
        }
        Ok(())
    }

    /// Sends a message. A server that was there before and cannot be reached now is waited for.
    pub(super) async fn send(
        &self,
        message: &Outgoing,
        session: &Session,
    ) -> Result<Response<HttpBody>> {
        let mut attempts = Attempts::new(&self.reconnect);
        loop {
            let url = self.state().messages_2024.clone();
            let url = url.filter(|_| message.modern.is_none());
            let url = url.as_ref().unwrap_or(&self.wire.url);
            let headers = Self::headers(message, session);
            let sent = self.wire.post(url, headers, message.body.clone()).await;
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
    pub(super) async fn take_answer(
        self: &Arc<Self>,
        message: &Outgoing,
        mut taker: Taker,
        session: &Session,
        response: Response<HttpBody>,
    ) -> Result<Option<Bytes>, Missed> {
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
                    Ended::Cut { .. } if message.modern.is_none() && stream.is_resumable() => {
                        self.resume(&mut stream, session).await?;
                    }
                    Ended::Cut { why, .. } => return Err(cut(&why).into()),
                }
                Ok(stream.taker.into_kept())
            }
            Form::Other => {
                let status = response.status();
                answer::discard(response.into_body()).await;
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
    pub(super) fn agree(&self, answer: &Bytes, id: Option<http::HeaderValue>) {
        let Some(revision) = agreed_revision(answer) else {
            return;
        };
        let mut state = self.state();
        state.session = Session {
            generation: state.session.generation + 1,
            id: id.map(|mut id| {
                id.set_sensitive(true);
                id
            }),
            revision: Some(revision),
        };
    }
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

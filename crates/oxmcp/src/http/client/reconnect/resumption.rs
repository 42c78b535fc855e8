//! Resumption of streams with GET and the id of their last event, and the standalone stream of a session.
//! See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use oxmcp_protocol::lenient::Leniency;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::{
    error::{Error, Result},
    http::{
        client::{
            exchange::{
                event_stream::{EventStream, StreamEnd},
                post::ExchangeError,
                response::{self, Form, refusal},
                session::Session,
                shared::Exchanges,
                sink::MessageSink,
            },
            reconnect::retry::{Attempts, STABLE},
            transport::http_client::HttpBody,
        },
        names::LAST_EVENT_ID,
    },
    logged::Logged,
    transport::mirror::HeaderMirror,
};

/// The response to a GET.
enum GetOutcome {
    Stream(HttpBody),
    /// The stream may open later.
    Retry(Error),
    /// The server does not offer the stream.
    Refused(Error),
    /// The server does not know the session.
    SessionLost(Error),
}

impl Exchanges {
    /// Resumes the response to a request, until the answer is received.
    pub(crate) async fn resume(
        &self,
        stream: &mut EventStream<'_>,
        session: &Session,
    ) -> Result<(), ExchangeError> {
        let mut attempts = Attempts::new(&self.reconnect);
        let mut why = Error::network("the event stream ended");
        while let Some(pause) = attempts.next(stream.retry) {
            sleep(pause).await;
            match self.open_stream(stream, session).await {
                GetOutcome::Stream(body) => match stream.read(self, body).await {
                    StreamEnd::Answered => return Ok(()),
                    StreamEnd::TooLong(error) => return Err(error.into()),
                    StreamEnd::Interrupted {
                        progressed,
                        why: reason,
                    } => {
                        if progressed {
                            attempts.progressed();
                        }
                        why = reason;
                    }
                },
                GetOutcome::Retry(error) => why = error,
                GetOutcome::Refused(error) => {
                    why = error;
                    break;
                }
                GetOutcome::SessionLost(error) => {
                    return Err(ExchangeError::SessionLost {
                        begun: true,
                        is_certain: true,
                        error,
                    });
                }
            }
        }
        let why = why.message();
        let text = format!(
            "the response was interrupted and could not be resumed: {why}; retry only if the call is idempotent"
        );
        Err(Error::network(text).into())
    }

    /// Opens the stream of messages that belong to no request, and keeps it open for as long as the session lasts. `responded` is
    /// dropped when the server has responded for the first time.
    pub(crate) fn open_standalone_stream(
        self: &Arc<Self>,
        generation: u64,
        responded: oneshot::Sender<()>,
    ) {
        if !self.opens_standalone_stream {
            return;
        }
        let exchanges = Arc::clone(self);
        let mut state = self.state.lock();
        let abort = self.spawner.spawn(async move {
            let stream = Box::pin(exchanges.keep_standalone_stream(generation, responded));
            if let Ok(true) = stream.await
                && let Err(error) = exchanges.recover_session(generation).await
            {
                tracing::warn!(error = %Logged(&error), "could not replace a session that the server lost");
            }
        });
        if let Some(before) = state.standalone_stream.replace(abort) {
            before.abort();
        }
    }

    /// Keeps the standalone stream open. Returns whether the session is lost.
    async fn keep_standalone_stream(
        &self,
        generation: u64,
        responded: oneshot::Sender<()>,
    ) -> Result<bool> {
        let session = self.session();
        if session.generation != generation {
            return Ok(false);
        }
        let mut attempts = Attempts::new(&self.reconnect);
        let mut stream = EventStream::new(MessageSink::without_request());
        let mut responded = Some(responded);
        let mut was_open = false;
        loop {
            let opened = self.open_stream(&stream, &session).await;
            drop(responded.take());
            let why = match opened {
                GetOutcome::Stream(body) => {
                    was_open = true;
                    let since = Instant::now();
                    match stream.read(self, body).await {
                        StreamEnd::Interrupted { progressed, why } => {
                            if progressed || since.elapsed() >= STABLE {
                                attempts.progressed();
                            }
                            why
                        }
                        StreamEnd::TooLong(error) => error,
                        StreamEnd::Answered => return Ok(false),
                    }
                }
                GetOutcome::Retry(error) => error,
                // A server without such a stream may also answer with 404, as for a lost session.
                GetOutcome::SessionLost(_) => return Ok(was_open),
                GetOutcome::Refused(error) => {
                    tracing::debug!(error = %Logged(&error), "the server offers no notification stream");
                    return Ok(false);
                }
            };
            let Some(pause) = attempts.next(stream.retry) else {
                tracing::warn!(error = %Logged(&why), "lost the server's notification stream");
                return Err(why);
            };
            tracing::debug!(error = %Logged(&why), ?pause, "notification stream interrupted; reopening it after a pause");
            sleep(pause).await;
        }
    }

    async fn open_stream(&self, stream: &EventStream<'_>, session: &Session) -> GetOutcome {
        let resumed = stream.is_resumable().then_some(&stream.last_id);
        let Ok(last_id) = resumed.map(|id| HeaderValue::from_str(id)).transpose() else {
            return GetOutcome::Refused(Error::network(
                "the server sent an event ID that is not valid in a header",
            ));
        };
        let add_headers = |headers: &mut HeaderMap| {
            session.add_headers(headers);
            if let Some(id) = &last_id {
                headers.insert(LAST_EVENT_ID, id.clone());
            }
        };
        match self.requests.get(add_headers).await {
            Ok(response) => outcome_of(response, session, &self.mirror).await,
            Err(error) => GetOutcome::Retry(error),
        }
    }
}

async fn outcome_of(
    mut response: Response<HttpBody>,
    session: &Session,
    mirror: &HeaderMirror,
) -> GetOutcome {
    let status = response.status();
    if status.is_success() {
        // A stream that is labelled as one may be silent at first.
        let is_stream = Form::of(&response) == Form::Events
            || Form::of_body(&mut response, mirror).await == Form::Events;
        if is_stream {
            return GetOutcome::Stream(response.into_body());
        }
        response::discard(response.into_body()).await;
        return GetOutcome::Refused(Error::decode(format!(
            "the server returned {status} without an event stream"
        )));
    }
    let refusal = refusal(response).await;
    let is_lost = session.id.is_some()
        && refusal.is_session_lost(None)
        && (status == StatusCode::NOT_FOUND || mirror.tolerates(Leniency::LostSession, false));
    let error = refusal.error;
    match status {
        _ if is_lost => GetOutcome::SessionLost(error),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => GetOutcome::Retry(error),
        status if status.is_server_error() => GetOutcome::Retry(error),
        _ => GetOutcome::Refused(error),
    }
}

//! Streams that go on after their connection is gone: by GET, with the id of the last event.
//! See [resumability](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery).

use std::sync::Arc;

use futures_util::future::{AbortHandle, Abortable};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use crate::http::client::exchange::event_stream::{Ended, Stream};
use crate::http::client::exchange::post::Missed;
use crate::http::client::exchange::response::{self, Form, refusal};
use crate::http::client::exchange::session::Session;
use crate::http::client::exchange::shared::Link;
use crate::http::client::exchange::sink::Taker;
use crate::http::client::reconnect::retry::{Attempts, LONG};
use crate::http::client::transport::http_client::HttpBody;
use crate::{Error, Result, http::names::LAST_EVENT_ID, json::Logged};

/// What came of asking for a stream.
enum Opened {
    Stream(HttpBody),
    /// It may work later.
    NotNow(Error),
    /// It is not offered.
    Refused(Error),
    /// The server does not know the session.
    Lost(Error),
}

impl Link {
    /// Goes on with the answer to a request, until the answer is there.
    pub(crate) async fn resume(
        &self,
        stream: &mut Stream<'_>,
        session: &Session,
    ) -> Result<(), Missed> {
        let mut attempts = Attempts::new(&self.reconnect);
        let mut why = Error::network("the stream of events ended");
        while let Some(pause) = attempts.next(stream.retry) {
            sleep(pause).await;
            match self.open_stream(stream, session).await {
                Opened::Stream(body) => match stream.read(self, body).await {
                    Ended::Answered => return Ok(()),
                    Ended::Overlong(error) => return Err(error.into()),
                    Ended::Cut {
                        progressed,
                        why: reason,
                    } => {
                        if progressed {
                            attempts.progressed();
                        }
                        why = reason;
                    }
                },
                Opened::NotNow(error) => why = error,
                Opened::Refused(error) => {
                    why = error;
                    break;
                }
                Opened::Lost(error) => return Err(Missed::Lost { begun: true, error }),
            }
        }
        let why = why.message();
        let text = format!("the answer broke off, and could not be taken up again: {why}");
        Err(Error::network(text).into())
    }

    /// Listens to what the server says beside its answers, for as long as the session lasts. `heard` learns when it has
    /// answered for the first time.
    pub(crate) fn listen(self: &Arc<Self>, generation: u64, heard: oneshot::Sender<()>) {
        let link = Arc::clone(self);
        let (abort, registration) = AbortHandle::new_pair();
        if let Some(before) = self.state().listening.replace(abort) {
            before.abort();
        }
        self.inlet.begin(async move {
            let listening = Box::pin(link.keep_listening(generation, heard));
            if let Ok(Ok(true)) = Abortable::new(listening, registration).await
                && let Err(error) = link.renew(generation).await
            {
                tracing::warn!(error = %Logged(&error), "the server lost the session");
            }
        });
    }

    /// Returns whether the session is lost.
    async fn keep_listening(&self, generation: u64, heard: oneshot::Sender<()>) -> Result<bool> {
        let session = self.session();
        if session.generation != generation {
            return Ok(false);
        }
        let mut attempts = Attempts::new(&self.reconnect);
        let mut stream = Stream::new(Taker::of_all());
        let mut heard = Some(heard);
        let mut was_open = false;
        loop {
            let opened = self.open_stream(&stream, &session).await;
            drop(heard.take());
            let why = match opened {
                Opened::Stream(body) => {
                    was_open = true;
                    let since = Instant::now();
                    match stream.read(self, body).await {
                        Ended::Cut { progressed, why } => {
                            if progressed || since.elapsed() >= LONG {
                                attempts.progressed();
                            }
                            why
                        }
                        Ended::Overlong(error) => error,
                        Ended::Answered => return Ok(false),
                    }
                }
                Opened::NotNow(error) => error,
                // A server without such a stream may also say that there is no such page.
                Opened::Lost(_) => return Ok(was_open),
                Opened::Refused(error) => {
                    tracing::debug!(error = %Logged(&error), "the server says nothing beside its answers");
                    return Ok(false);
                }
            };
            let Some(pause) = attempts.next(stream.retry) else {
                tracing::warn!(error = %Logged(&why), "what the server says beside its answers is not heard any more");
                return Err(why);
            };
            tracing::debug!(error = %Logged(&why), ?pause, "the stream of what the server says is interrupted");
            sleep(pause).await;
        }
    }

    async fn open_stream(&self, stream: &Stream<'_>, session: &Session) -> Opened {
        let resumed = stream.is_resumable().then_some(&stream.last_id);
        let Ok(last_id) = resumed.map(|id| HeaderValue::from_str(id)).transpose() else {
            return Opened::Refused(Error::network(
                "the server gave an event an id that no header can hold",
            ));
        };
        let add_headers = |headers: &mut HeaderMap| {
            session.add_headers(headers);
            if let Some(id) = &last_id {
                headers.insert(LAST_EVENT_ID, id.clone());
            }
        };
        match self.wire.get(add_headers).await {
            Ok(response) => opened(response, session).await,
            Err(error) => Opened::NotNow(error),
        }
    }
}

async fn opened(response: Response<HttpBody>, session: &Session) -> Opened {
    let status = response.status();
    if status.is_success() {
        if Form::of(&response) == Form::Events {
            return Opened::Stream(response.into_body());
        }
        response::discard(response.into_body()).await;
        return Opened::Refused(Error::decode(format!(
            "the server answered {status} without a stream of events"
        )));
    }
    let refusal = refusal(response).await;
    let is_lost = session.id.is_some() && refusal.is_session_lost(None);
    let error = refusal.error;
    match status {
        _ if is_lost => Opened::Lost(error),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Opened::NotNow(error),
        status if status.is_server_error() => Opened::NotNow(error),
        _ => Opened::Refused(error),
    }
}

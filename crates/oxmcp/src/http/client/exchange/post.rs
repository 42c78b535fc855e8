//! An exchange: the POST of a message, its response, and the answer in it.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, StatusCode};
use oxmcp_protocol::{RequestId, lenient::Leniency, method};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use crate::{
    error::{Error, Result},
    http::{
        client::{
            exchange::{
                event_stream::{EventStream, StreamEnd},
                executor::Event,
                message::OutgoingMessage,
                response::{self, Form, read_body, refusal},
                session::Session,
                shared::{Exchanges, InFlight},
                sink::{MessageSink, OnAnswer},
            },
            reconnect::retry::Attempts,
            transport::http_client::HttpBody,
        },
        names::SESSION_ID,
    },
    logged::Logged,
};

/// The time limit for a server to accept a notification or an answer.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for which the first request waits for the GET stream: messages of the server that belong to no request would be lost before
/// it is open.
const STREAM_TIMEOUT: Duration = Duration::from_millis(250);

/// Why an exchange ended without an answer.
pub(crate) enum ExchangeError {
    /// The server does not know the session. `begun` tells whether it may have begun to serve the message, and `is_certain`
    /// whether it has said that the session is the reason.
    SessionLost {
        begun: bool,
        is_certain: bool,
        error: Error,
    },
    Failed(Error),
}

impl From<Error> for ExchangeError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Exchanges {
    /// Starts the exchange of a message. Waits while too many messages are not accepted yet.
    pub(crate) async fn start(self: &Arc<Self>, message: OutgoingMessage) {
        if let Some(id) = message.cancels() {
            let cancelled = self.state.lock().in_flight.remove(&id);
            if let Some(request) = &cancelled {
                request.abort.abort();
            }
            let is_modern = cancelled.map_or_else(|| !self.is_legacy(), |it| it.is_modern);
            if is_modern {
                // The end of the exchange is the cancellation.
                return;
            }
        }
        match message.id.clone() {
            Some(id) => self.start_request(id, message),
            None => self.start_notification(message).await,
        }
    }

    fn start_request(self: &Arc<Self>, id: RequestId, message: OutgoingMessage) {
        let exchanges = Arc::clone(self);
        let revision = message.modern;
        let key = id.clone();
        let request = async move {
            // A panic in the HTTP client of the user ends one request, as another error of it does.
            let exchange = pin!(exchanges.exchange(&message));
            let exchange = AssertUnwindSafe(exchange).catch_unwind();
            let panicked = |_| Err(Error::internal("the HTTP client panicked"));
            let outcome = exchange.await.unwrap_or_else(panicked);
            exchanges.state.lock().in_flight.remove(&id);
            if let Err(error) = outcome {
                exchanges.spawner.send_event(Event::Failed(id, error)).await;
            }
        };
        let mut state = self.state.lock();
        state.modern = revision.or(state.modern);
        let abort = self.spawner.spawn(request);
        let is_modern = revision.is_some();
        state.in_flight.insert(key, InFlight { abort, is_modern });
    }

    /// Starts the exchange of a notification or an answer.
    async fn start_notification(self: &Arc<Self>, message: OutgoingMessage) {
        let Ok(permit) = Arc::clone(&self.unaccepted).acquire_owned().await else {
            return;
        };
        let exchanges = Arc::clone(self);
        // No message of the session may be sent before `notifications/initialized`.
        let barrier = message
            .is("notifications/initialized")
            .then(|| self.barrier.close());
        self.spawner.spawn(async move {
            let accepted = timeout(ACCEPT_TIMEOUT, exchanges.deliver(&message)).await;
            drop(permit);
            match accepted {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = %Logged(&error), "could not deliver a message to the server");
                }
                Err(_) => tracing::warn!("timed out delivering a message to the server"),
            }
            if barrier.is_some() {
                exchanges.session_opened(&message).await;
            }
        });
    }

    /// Sends a notification or an answer. An answer is sent again if the server may not have received it: otherwise the server
    /// would wait forever, and a second answer is ignored.
    async fn deliver(self: &Arc<Self>, message: &OutgoingMessage) -> Result<()> {
        let mut attempts = Attempts::new(&self.reconnect);
        loop {
            let Err(error) = self.exchange(message).await else {
                return Ok(());
            };
            let may_pass = error.is_network() || matches!(error.http_status(), Some(429 | 500..));
            let retries = message.method().is_none() && may_pass;
            match attempts.next(None).filter(|_| retries) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// Opens the GET stream of a legacy session.
    async fn session_opened(self: &Arc<Self>, initialized: &OutgoingMessage) {
        let generation = {
            let mut state = self.state.lock();
            state.setup.record(initialized);
            if state.messages_2024.is_some() || state.session.revision.is_none() {
                return;
            }
            state.session.generation
        };
        let (responded, response) = oneshot::channel();
        self.open_standalone_stream(generation, responded);
        let _ = timeout(STREAM_TIMEOUT, response).await;
    }

    fn is_legacy(&self) -> bool {
        let state = self.state.lock();
        state.session.revision.is_some() || state.messages_2024.is_some()
    }

    /// Reports that a request is not sent.
    pub(crate) fn refuse(self: &Arc<Self>, id: RequestId, error: Error) {
        let exchanges = Arc::clone(self);
        // The writer must not wait for the reader, which the same task polls.
        self.spawner.spawn(async move {
            exchanges.spawner.send_event(Event::Failed(id, error)).await;
        });
    }

    /// Sends a message until it is answered, in another session if the server has lost the present one.
    async fn exchange(self: &Arc<Self>, message: &OutgoingMessage) -> Result<()> {
        if message.modern.is_some() || message.is("initialize") {
            return match self.attempt(message, &Session::default()).await {
                Err(ExchangeError::Failed(error)) if message.is("initialize") => {
                    Box::pin(self.initialize_2024(message, error)).await
                }
                outcome => outcome.map_err(ExchangeError::into_error),
            };
        }
        if !message.is("notifications/initialized") {
            self.barrier.pass().await;
        }
        let session = self.session();
        let begun = match self.attempt(message, &session).await {
            Ok(()) => return Ok(()),
            Err(ExchangeError::Failed(error)) => return Err(error),
            Err(ExchangeError::SessionLost {
                begun,
                is_certain,
                error,
            }) => {
                if !is_certain && !self.doubts.begin(session.generation) {
                    return Err(error);
                }
                begun
            }
        };
        Box::pin(self.recover_session(session.generation)).await?;
        if message.method().is_none() || message.is("notifications/cancelled") {
            // The request that the message belongs to has ended with the session.
            return Ok(());
        }
        if begun && !is_repeatable(message) {
            return Err(lost_at_work());
        }
        match self.attempt(message, &self.session()).await {
            Err(ExchangeError::SessionLost { begun: true, .. }) if !is_repeatable(message) => {
                Err(lost_at_work())
            }
            outcome => outcome.map_err(ExchangeError::into_error),
        }
    }

    /// Sends a message, and reads its response.
    pub(crate) async fn attempt(
        self: &Arc<Self>,
        message: &OutgoingMessage,
        session: &Session,
    ) -> Result<(), ExchangeError> {
        let response = self.send(message, session).await?;
        let status = response.status();
        if !status.is_success() {
            let refusal = refusal(response).await;
            let asked = message.id.as_ref();
            let is_certain = session.id.is_some() && refusal.is_session_lost(asked);
            // Some servers refuse notifications so. Without an id, 404 means that the URL is gone.
            let is_doubtful = session.revision.is_some()
                && asked.is_some()
                && (session.id.is_some() || status != StatusCode::NOT_FOUND)
                && refusal.may_be_session_lost(asked);
            let is_lost = (is_certain || is_doubtful)
                && (status == StatusCode::NOT_FOUND
                    || self.mirror.tolerates(Leniency::LostSession, false));
            let error = refusal.error;
            return Err(if is_lost {
                ExchangeError::SessionLost {
                    begun: false,
                    is_certain,
                    error,
                }
            } else {
                error.into()
            });
        }
        let is_of_2024 = message.modern.is_none() && self.state.lock().messages_2024.is_some();
        if message.id.is_none() || is_of_2024 {
            response::discard(response.into_body()).await;
            return Ok(());
        }
        let on_answer = if message.is("initialize") {
            OnAnswer::OpenSession(response.headers().get(SESSION_ID).cloned())
        } else {
            OnAnswer::Forward
        };
        let sink = MessageSink::new(message, on_answer);
        self.read_answer(message, sink, session, response).await?;
        self.doubts.end();
        Ok(())
    }

    /// Sends a message. Retries while the server cannot be reached, if it has answered before.
    pub(crate) async fn send(
        &self,
        message: &OutgoingMessage,
        session: &Session,
    ) -> Result<Response<HttpBody>> {
        let mut attempts = Attempts::new(&self.reconnect);
        loop {
            let target = self.state.lock().messages_2024.clone();
            let target = target.filter(|_| message.modern.is_none());
            let target = target.as_ref().unwrap_or(&self.requests.target);
            let headers = || self.headers(message, session);
            let sent = self.requests.post(target, headers, message.body.clone());
            let error = match sent.await {
                Ok(response) => {
                    self.state.lock().was_reached = true;
                    return Ok(response);
                }
                Err(error) => error,
            };
            let retries = error.is_unreachable() && self.state.lock().was_reached;
            match attempts.next(None).filter(|_| retries) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }

    /// Reads a response until the request is answered. Returns the answer that the sink has kept.
    pub(crate) async fn read_answer(
        self: &Arc<Self>,
        message: &OutgoingMessage,
        mut sink: MessageSink<'_>,
        session: &Session,
        mut response: Response<HttpBody>,
    ) -> Result<Option<Bytes>, ExchangeError> {
        // The session of `initialize` is the one that its response names, even if the response is interrupted.
        let opened = message.is("initialize").then(|| Session {
            id: response.headers().get(SESSION_ID).cloned(),
            ..Session::default()
        });
        match Form::of_body(&mut response, &self.mirror).await {
            Form::Json => {
                let body = self.read_json(response).await?;
                sink.take(self, body).await;
                if !sink.has_answer {
                    return Err(unanswered().into());
                }
                Ok(sink.into_kept())
            }
            Form::Events => {
                let mut stream = EventStream::new(sink);
                match stream.read(self, response.into_body()).await {
                    StreamEnd::Answered => {}
                    StreamEnd::TooLong(error) => return Err(error.into()),
                    StreamEnd::Interrupted { .. }
                        if message.modern.is_none() && stream.is_resumable() =>
                    {
                        let session = opened.as_ref().unwrap_or(session);
                        Box::pin(self.resume(&mut stream, session)).await?;
                    }
                    StreamEnd::Interrupted { why, .. } => return Err(interrupted(&why).into()),
                }
                Ok(stream.sink.into_kept())
            }
            Form::Other => {
                let status = response.status();
                response::discard(response.into_body()).await;
                Err(Error::decode(format!(
                    "the server returned {status} with neither JSON nor an event stream; is this the URL of an MCP server?"
                ))
                .into())
            }
        }
    }

    async fn read_json(&self, response: Response<HttpBody>) -> Result<Bytes> {
        let limit = self.max_message;
        match read_body(&mut response.into_body(), limit).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => Err(Error::limit(format!(
                "the response exceeds the limit of {limit} bytes"
            ))),
            Err(error) => {
                let why = error.message();
                Err(Error::network(format!(
                    "the response was interrupted: {why}; retry only if the call is idempotent"
                )))
            }
        }
    }
}

impl ExchangeError {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Failed(error) | Self::SessionLost { error, .. } => error,
        }
    }
}

/// Whether a request that the server may have processed can be made again.
fn is_repeatable(message: &OutgoingMessage) -> bool {
    let row = message
        .method()
        .and_then(|name| method::find(method::REQUESTS_TO_SERVER, name));
    row.is_some_and(|row| row.repeatable)
}

fn lost_at_work() -> Error {
    Error::network(
        "the server lost the session during this request, which may have been processed; \
         retry only if the call is idempotent",
    )
}

fn unanswered() -> Error {
    Error::decode("the server's response does not answer the request")
}

fn interrupted(why: &Error) -> Error {
    Error::network(format!(
        "{} before the response was complete, and it cannot be resumed; retry only if the call is idempotent",
        why.message()
    ))
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::Mutex, task::Poll};

    use http::{HeaderMap, Request};
    use tokio::select;

    use super::*;
    use crate::{
        http::client::{
            exchange::{
                executor::Executor,
                requests::{RequestSender, Target},
            },
            reconnect::retry::Reconnect,
            transport::http_client::HttpClient,
        },
        transport::mirror::HeaderMirror,
    };

    fn exchanges(client: impl HttpClient) -> (Arc<Exchanges>, Executor) {
        let target = Target::new("http://a/mcp".parse().unwrap()).unwrap();
        let requests = RequestSender::new(Arc::new(client), target, HeaderMap::new());
        let (executor, spawner) = Executor::new();
        let reconnect = Reconnect::default();
        let exchanges = Exchanges::new(requests, spawner, reconnect, 1 << 20, HeaderMirror::new());
        (Arc::new(exchanges), executor)
    }

    fn message(text: &str) -> OutgoingMessage {
        OutgoingMessage::read(text.as_bytes(), &HeaderMirror::new()).unwrap()
    }

    struct Panicking;

    impl HttpClient for Panicking {
        async fn send(&self, _: Request<Bytes>) -> Result<Response<HttpBody>> {
            panic!("it is a bad client");
        }
    }

    #[tokio::test]
    async fn http_client_panic_fails_one_request() {
        let (exchanges, mut executor) = exchanges(Panicking);
        for id in 1..3 {
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize"}}"#);
            exchanges.start(message(&request)).await;
            let event = poll_fn(|cx| executor.poll_event(cx)).await;
            let Event::Failed(failed, error) = event else {
                panic!("{event:?}");
            };
            assert_eq!(failed, RequestId::Number(id));
            assert!(error.message().contains("panicked"), "{error}");
        }
        assert!(exchanges.state.lock().in_flight.is_empty());
    }

    /// Accepts messages, and records them.
    struct Recording(Arc<Mutex<Vec<Bytes>>>);

    impl HttpClient for Recording {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
            self.0.lock().unwrap().push(request.into_body());
            let mut response = Response::new(HttpBody::from(Bytes::new()));
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(response)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn notifications_are_sent_in_order() {
        let sent = Arc::<Mutex<Vec<Bytes>>>::default();
        let (exchanges, mut executor) = exchanges(Recording(Arc::clone(&sent)));
        let messages: Vec<_> = (0..20)
            .map(|n| {
                message(&format!(
                    r#"{{"jsonrpc":"2.0","method":"x","params":{{"n":{n}}}}}"#
                ))
            })
            .collect();
        let expected: Vec<_> = messages.iter().map(|it| it.body.clone()).collect();
        let sending = Arc::clone(&exchanges);
        let task = tokio::spawn(async move {
            for message in messages {
                sending.start(message).await;
            }
        });
        task.await.unwrap();
        let permits = exchanges.unaccepted.acquire_many(256);
        let running = poll_fn(|cx| {
            executor.run(cx);
            Poll::<()>::Pending
        });
        select! {
            permits = permits => drop(permits.unwrap()),
            () = running => {}
        }
        assert_eq!(*sent.lock().unwrap(), expected);
    }

    /// Loses the first message, answers 502 to the second, and accepts all others.
    struct Flaky(Arc<Mutex<Vec<Bytes>>>);

    impl HttpClient for Flaky {
        async fn send(&self, request: Request<Bytes>) -> Result<Response<HttpBody>> {
            let mut sent = self.0.lock().unwrap();
            sent.push(request.into_body());
            let mut response = Response::new(HttpBody::from(Bytes::new()));
            *response.status_mut() = match sent.len() {
                1 => return Err(Error::network("the connection was reset")),
                2 => StatusCode::BAD_GATEWAY,
                _ => StatusCode::ACCEPTED,
            };
            Ok(response)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_retried_and_notifications_sent_once() {
        for (text, times) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 3),
            (r#"{"jsonrpc":"2.0","method":"x"}"#, 1),
        ] {
            let sent = Arc::<Mutex<Vec<Bytes>>>::default();
            let (exchanges, mut executor) = exchanges(Flaky(Arc::clone(&sent)));
            exchanges.start(message(text)).await;
            let all = exchanges.unaccepted.acquire_many(256);
            let running = poll_fn(|cx| {
                executor.run(cx);
                Poll::<()>::Pending
            });
            select! {
                all = all => drop(all.unwrap()),
                () = running => {}
            }
            assert_eq!(*sent.lock().unwrap(), vec![text.as_bytes(); times]);
        }
    }
}

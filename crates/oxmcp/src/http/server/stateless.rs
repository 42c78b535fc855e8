//! Stateless requests: modern ones, and legacy ones of an endpoint without sessions. Each has its own connection, which does not
//! outlive it.

use std::{
    mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::{Stream, future::BoxFuture, stream::BoxStream};
use futures_util::{FutureExt, stream};
use http::{Response, StatusCode};
use oxmcp_protocol::{
    ErrorCode, Method, Revision,
    internal::{Envelope, RequestParams},
    method::Listen,
};
use tokio::{
    runtime::Handle,
    select,
    time::{Instant, sleep},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    error::Error,
    http::server::{
        caller::{caller, lasting_caller},
        endpoint::{EndpointRequest, StreamableHttp},
        event_encoding::{COMMENT, KEEP_ALIVE, encode, messages},
        response::{self, COME_BACK_LATER, Refused, ResponseBody},
        serve::EventSource,
    },
    server::ServerRole,
    session::{
        connection::{Caller, Connection},
        driver::stream_output::{Last, Reply},
        task::{lazy, reached, spawn_on},
    },
};

/// Starts to serve a modern message, outside any session. `mismatch` is the error to answer with if the caller may see the tool.
///
/// # Errors
/// The response that refuses the request.
pub(crate) fn begin(
    request: EndpointRequest,
    message: Envelope<'_, RequestParams<'_>>,
    mismatch: Option<Error>,
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    let EndpointRequest {
        endpoint,
        server,
        parts,
        accepted,
        ..
    } = request;
    let is_request = matches!(message, Envelope::Request(_));
    let listen = match &message {
        Envelope::Request(it) if it.method == Listen::NAME => Some(&it.id),
        _ => None,
    };
    if listen.is_some() && endpoint.settings.json_only {
        let why = Error::method_not_found(Listen::NAME);
        return Err(response::refuse(StatusCode::NOT_FOUND, listen, &why));
    }
    #[cfg(feature = "auth")]
    let deadline = listen.and_then(|_| {
        let protection = endpoint.settings.protection.as_ref();
        protection.and_then(|it| it.stream_deadline(&parts))
    });
    let is_json_only = listen.is_none() && !accepted.events;
    let caller = if listen.is_some() {
        lasting_caller(&parts, &endpoint.state.budget)
    } else {
        caller(parts)
    };
    let peer = ServerRole::stateless(server, mismatch);
    let answer = StatelessAnswer::new(endpoint, peer, caller, true, is_json_only);
    answer.connection.take_envelope(message);
    let answer = answer.begin(is_request);
    #[cfg(feature = "auth")]
    if deadline.is_some() {
        let until = move |body: ResponseBody| body.until(deadline.as_ref());
        return Ok(Box::pin(answer.map(|response| response.map(until))));
    }
    Ok(answer)
}

/// Starts to serve a legacy message or batch without a session. `take` passes it to its connection. The revision is `None` for
/// `initialize`, which negotiates it.
///
/// # Errors
/// The response that refuses the request.
pub(crate) fn begin_legacy(
    request: EndpointRequest,
    revision: Option<Revision>,
    is_answered: bool,
    take: impl FnOnce(&Arc<Connection>),
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    let EndpointRequest {
        endpoint,
        server,
        parts,
        accepted,
        ..
    } = request;
    let peer = ServerRole::sessionless(server, revision);
    let answer = StatelessAnswer::new(endpoint, peer, caller(parts), false, !accepted.events);
    take(&answer.connection);
    Ok(answer.begin(is_answered))
}

/// The answer to a request. Dropping it before it is complete, as when the client disconnects, cancels the request.
struct StatelessAnswer {
    connection: Arc<Connection>,
    peer: Arc<ServerRole>,
    endpoint: StreamableHttp,
    /// Messages to send.
    buffer: Vec<u8>,
    /// The deadline of the request, set when the endpoint starts to close.
    cut_at: Option<Instant>,
    /// The kind of the last messages, set when no more follow.
    last: Option<Last>,
    is_modern: bool,
    /// Whether the answer is one message as JSON, and all others are dropped.
    is_json_only: bool,
    _tracked: TaskTrackerToken,
}

impl StatelessAnswer {
    /// Creates the answer, with a new connection that will receive the messages. `is_json_only` says that the client does not
    /// accept event streams.
    fn new(
        endpoint: StreamableHttp,
        peer: Arc<ServerRole>,
        caller: Caller,
        is_modern: bool,
        is_json_only: bool,
    ) -> Self {
        let limits = Arc::clone(&peer.server().features().limits);
        let connection = Connection::of(Arc::clone(&peer) as _, limits, caller);
        connection.outbox.count_in(&endpoint.state.budget, true);
        Self {
            connection,
            peer,
            buffer: Vec::new(),
            cut_at: None,
            last: None,
            is_modern,
            is_json_only: is_json_only || endpoint.settings.json_only,
            _tracked: endpoint.state.open.token(),
            endpoint,
        }
    }

    fn begin(self, is_answered: bool) -> BoxFuture<'static, Response<ResponseBody>> {
        if is_answered {
            Box::pin(self.answer())
        } else {
            Box::pin(async { response::empty(StatusCode::ACCEPTED) })
        }
    }

    /// The response: a single message, or an event stream if more messages may follow.
    async fn answer(mut self) -> Response<ResponseBody> {
        self.next().await;
        if self.is_json_only {
            self.keep_answer().await;
        }
        match self.last {
            Some(Last::Message) => {
                let retry_after = self.connection.retry_after();
                return response::answer(self.status(), retry_after, mem::take(&mut self.buffer));
            }
            Some(Last::Nothing) if self.connection.outbox.is_exhausted() => {
                return response::unanswered(response::DROPPED);
            }
            Some(Last::Nothing) if self.cut_at.is_some() => {
                return response::unanswered("server shut down before the response was ready");
            }
            // Notifications of a batch, or a request that was cancelled.
            Some(Last::Nothing) if !self.is_modern => return response::empty(StatusCode::ACCEPTED),
            _ => {}
        }
        if !self.connection.outbox.begin_stream() {
            return response::unanswered(response::DROPPED);
        }
        let connection = Arc::clone(&self.connection);
        let events = stream::unfold(self, |mut answer| async move {
            let item = answer.item().await?;
            Some((item, answer))
        });
        let events = Box::pin(events);
        response::events(ResponseBody::events(StatelessEvents { connection, events }))
    }

    /// Waits for the answer and drops all other messages.
    async fn keep_answer(&mut self) {
        while self.last.is_none() {
            self.buffer.clear();
            self.next().await;
        }
        if self.last == Some(Last::Messages) {
            self.buffer = messages(&self.buffer).last().unwrap_or_default().to_vec();
            self.last = Some(Last::Message);
        }
    }

    /// Waits for messages to send. Returns false if none arrive within the keep-alive interval.
    async fn next(&mut self) -> bool {
        let mut silence = pin!(lazy(|| sleep(KEEP_ALIVE)));
        loop {
            select! {
                biased;
                reply = self.connection.outbox.reply(&mut self.buffer) => match reply {
                    // Modern revisions do not resume streams.
                    Reply::Part(_) => {}
                    Reply::More => return true,
                    Reply::Last(last) => {
                        self.last = Some(last);
                        return true;
                    }
                },
                () = self.endpoint.state.closing.wait(), if self.cut_at.is_none() => {
                    self.cut_at = Some(self.endpoint.cut_at());
                    self.connection.in_flight().refuse_new();
                }
                () = reached(self.cut_at) => {
                    self.last = Some(self.cut());
                    return true;
                }
                () = silence.as_mut() => return false,
            }
        }
    }

    /// Answers requests that are still running with an error, because the drain is over.
    fn cut(&mut self) -> Last {
        self.connection.end_drain();
        let reply = self.connection.outbox.reply(&mut self.buffer);
        let reply = reply.now_or_never();
        self.connection.abandon();
        match reply {
            Some(Reply::Last(last)) => last,
            _ => Last::Nothing,
        }
    }

    /// The next part of the stream.
    async fn item(&mut self) -> Option<Bytes> {
        if self.buffer.is_empty() && self.last.is_none() && !self.next().await {
            return Some(Bytes::from_static(COMMENT));
        }
        let mut out = Vec::new();
        encode(&mut out, &self.buffer);
        self.buffer.clear();
        if self.last.is_some() && self.cut_at.take().is_some() {
            // Other nodes serve the client from now on.
            out.extend_from_slice(COME_BACK_LATER);
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// The HTTP status of a single message. Errors of handlers do not change it, except a missing capability, for which the
    /// specification always requires 400.
    fn status(&self) -> StatusCode {
        if !self.is_modern {
            // 404 would mean that a session has ended.
            return StatusCode::OK;
        }
        status(self.peer.refused(), self.connection.failed_with())
    }
}

/// The events of an answer.
struct StatelessEvents {
    connection: Arc<Connection>,
    events: BoxStream<'static, Bytes>,
}

impl Stream for StatelessEvents {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl EventSource for StatelessEvents {
    fn has_data(&self) -> bool {
        // Messages that were read count until the stream is polled again.
        self.connection.outbox.unsent() > 0
    }
}

/// The HTTP status for the error code from before any handler ran, and for the code of the error that answers the request.
pub(crate) fn status(refused: Option<ErrorCode>, failed: Option<ErrorCode>) -> StatusCode {
    match (refused, failed) {
        (_, Some(ErrorCode::MISSING_CLIENT_CAPABILITY))
        | (Some(ErrorCode::HEADER_MISMATCH), Some(ErrorCode::HEADER_MISMATCH))
        | (Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION), _) => StatusCode::BAD_REQUEST,
        (Some(ErrorCode::METHOD_NOT_FOUND), _) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

impl Drop for StatelessAnswer {
    fn drop(&mut self) {
        if self.last.is_some() {
            // Nothing is in flight, and no more messages may be sent.
            self.connection.outbox.close();
        } else {
            self.connection.abandon();
        }
        if self.connection.has_open_middleware()
            && let Ok(runtime) = Handle::try_current()
        {
            // Closing the endpoint waits for this task.
            let (connection, tracked) = (
                Arc::clone(&self.connection),
                self.endpoint.state.open.token(),
            );
            spawn_on(&runtime, async move {
                connection.middleware_ended().await;
                drop(tracked);
            });
        }
    }
}

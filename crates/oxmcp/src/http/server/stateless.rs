//! Stateless requests, those of modern revisions: each is answered by a connection of its own, which does not outlive it.

use std::{mem, pin::pin, sync::Arc};

use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::stream;
use http::{Response, StatusCode};
use oxmcp_protocol::{
    ErrorCode, Method,
    internal::{Envelope, RequestParams},
    method::Listen,
};
use tokio::{
    select,
    time::{Instant, sleep},
};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{
    error::Error,
    http::server::{
        caller::{caller, lasting_caller},
        endpoint::{EndpointRequest, StreamableHttp},
        event_encoding::{COMMENT, KEEP_ALIVE, encode},
        response::{self, Refused, ResponseBody},
    },
    server::ServerRole,
    session::{
        connection::Connection,
        driver::undriven::{Last, Reply},
        task::{after, lazy, reached},
    },
};

/// Begins to serve a modern message. A modern client knows of no session, even where it names one. `mismatch` answers the request
/// where its caller sees the tool that it names.
///
/// # Errors
/// How the request is refused.
pub(super) fn begin(
    request: EndpointRequest,
    message: Envelope<'_, RequestParams<'_>>,
    mismatch: Option<Error>,
) -> Result<BoxFuture<'static, Response<ResponseBody>>, Refused> {
    let EndpointRequest {
        endpoint,
        mut server,
        session,
        parts,
        ..
    } = request;
    if session.is_some() {
        server = endpoint.choose(&parts)?;
    }
    let is_request = matches!(message, Envelope::Request(_));
    let lasts = matches!(&message, Envelope::Request(it) if it.method == Listen::NAME);
    let caller = if lasts {
        lasting_caller(&parts)
    } else {
        caller(parts)
    };
    let limits = Arc::clone(&server.features().limits);
    let peer = ServerRole::stateless(server, mismatch);
    let connection = Connection::of(Arc::clone(&peer) as _, limits, caller);
    connection.take_envelope(message);
    let answer = StatelessAnswer {
        connection,
        peer,
        buffer: Vec::new(),
        cut_at: None,
        last: None,
        _tracked: endpoint.state.open.token(),
        endpoint,
    };
    Ok(if is_request {
        Box::pin(answer.answer())
    } else {
        Box::pin(async { response::empty(StatusCode::ACCEPTED) })
    })
}

/// The answer to a request. Dropped before it is whole, as it is when the client is gone, it cancels the request.
struct StatelessAnswer {
    connection: Arc<Connection>,
    peer: Arc<ServerRole>,
    endpoint: StreamableHttp,
    /// Messages to send.
    buffer: Vec<u8>,
    /// The deadline of the request, once the endpoint is being closed.
    cut_at: Option<Instant>,
    /// What was taken last, once nothing follows.
    last: Option<Last>,
    _tracked: TaskTrackerToken,
}

impl StatelessAnswer {
    /// The response: one message where there is one, events where there are more, or may be.
    async fn answer(mut self) -> Response<ResponseBody> {
        self.next().await;
        match self.last {
            Some(Last::Message) => {
                return response::message(self.status(), mem::take(&mut self.buffer));
            }
            Some(Last::Nothing) if self.cut_at.is_some() => return *response::closing(),
            _ => {}
        }
        response::events(ResponseBody::stream(stream::unfold(
            self,
            |mut answer| async move {
                let item = answer.item().await?;
                Some((item, answer))
            },
        )))
    }

    /// Waits for messages to send, but no longer than a stream may be silent: then it returns false.
    async fn next(&mut self) -> bool {
        let mut silence = pin!(lazy(|| sleep(KEEP_ALIVE)));
        loop {
            select! {
                biased;
                reply = self.connection.outbox.reply(&mut self.buffer) => match reply {
                    // Streams are not resumed in modern revisions.
                    Reply::Part(_) => {}
                    Reply::More => return true,
                    Reply::Last(last) => {
                        self.last = Some(last);
                        return true;
                    }
                },
                () = self.endpoint.state.closing.wait(), if self.cut_at.is_none() => {
                    self.cut_at = Some(after(Instant::now(), self.endpoint.settings.limits.drain));
                    self.connection.in_flight().drain();
                }
                () = reached(self.cut_at) => {
                    self.connection.abandon();
                    self.last = Some(Last::Nothing);
                    return true;
                }
                () = silence.as_mut() => return false,
            }
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
        (!out.is_empty()).then(|| out.into())
    }

    /// The status of an answer that is alone. The errors of handlers do not show in it, but for a missing capability: the
    /// specification wants 400 for that, whatever found it out.
    fn status(&self) -> StatusCode {
        status(self.peer.refused(), self.connection.failed_with())
    }
}

/// The status by the code of an error that came before any handler, and of the error that answers.
pub(super) fn status(refused: Option<ErrorCode>, failed: Option<ErrorCode>) -> StatusCode {
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
            // Nothing is being served any more, and nothing may be sent.
            self.connection.outbox.close();
        } else {
            self.connection.abandon();
        }
    }
}

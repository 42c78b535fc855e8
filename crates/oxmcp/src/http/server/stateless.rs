//! Answering a modern request: on the request's own path, without anything that outlives it.

use std::{mem, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode};
use tokio::{
    select,
    time::{Instant, sleep_until},
};

use crate::{
    ErrorCode,
    http::server::{
        ResponseBody,
        answer::{self, Plain},
        endpoint::StreamableHttp,
        events::{COMMENT, KEEP_ALIVE, encode},
        open::Entered,
    },
    server::ServerPeer,
    session::{Connection, Last, Reply, after},
};

/// A request that is being answered. Dropped before it is, as it is when the client is gone, it is cancelled.
pub(super) struct Exchange {
    connection: Arc<Connection>,
    peer: Arc<ServerPeer>,
    endpoint: StreamableHttp,
    /// What has to be sent.
    buffer: Vec<u8>,
    /// Until when it may go on, once the endpoint is being closed.
    cut_at: Option<Instant>,
    /// What was taken last, once nothing follows.
    last: Option<Last>,
    _open: Entered,
}

impl Exchange {
    /// For a request that the connection has taken.
    pub(super) fn new(
        connection: Arc<Connection>,
        peer: Arc<ServerPeer>,
        endpoint: StreamableHttp,
    ) -> Self {
        Self {
            connection,
            peer,
            buffer: Vec::new(),
            cut_at: None,
            last: None,
            _open: endpoint.state.open.enter(),
            endpoint,
        }
    }

    /// The response, where all of it is there already.
    pub(super) fn at_once(&mut self) -> Option<Plain> {
        self.last = self.connection.outbox.take_last(&mut self.buffer);
        (self.last == Some(Last::Message)).then(|| Plain {
            status: self.status(),
            line: mem::take(&mut self.buffer),
        })
    }

    /// The response: one message where there is one, events where there are more, or may be.
    pub(super) async fn answer(mut self) -> Response<ResponseBody> {
        if self.last.is_none() {
            self.next().await;
        }
        match self.last {
            Some(Last::Message) => {
                return answer::json(self.status(), mem::take(&mut self.buffer));
            }
            Some(Last::Nothing) if self.cut_at.is_some() => return answer::closing(),
            _ => {}
        }
        answer::events(ResponseBody::stream(stream::unfold(
            self,
            |mut exchange| async move {
                let item = exchange.item().await?;
                Some((item, exchange))
            },
        )))
    }

    /// Waits for what is to be sent, but no longer than a stream may be silent: then it returns false.
    async fn next(&mut self) -> bool {
        let until = Instant::now() + KEEP_ALIVE;
        loop {
            let wake_at = self.cut_at.map_or(until, |cut_at| cut_at.min(until));
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
                () = sleep_until(wake_at) => {
                    if self.cut_at != Some(wake_at) {
                        return false;
                    }
                    self.connection.abandon();
                    self.last = Some(Last::Nothing);
                    return true;
                }
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

    /// The status of an answer that is alone. What a handler says is no matter of HTTP, but for a capability that is missing:
    /// the specification wants 400 for it, whoever finds out.
    fn status(&self) -> StatusCode {
        status(self.peer.refused(), self.connection.failed_with())
    }
}

/// By the code of an error that no handler was asked about, and of one that answers.
pub(super) fn status(refused: Option<ErrorCode>, failed: Option<ErrorCode>) -> StatusCode {
    match (refused, failed) {
        (_, Some(ErrorCode::MISSING_CLIENT_CAPABILITY))
        | (Some(ErrorCode::HEADER_MISMATCH), Some(ErrorCode::HEADER_MISMATCH))
        | (Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION), _) => StatusCode::BAD_REQUEST,
        (Some(ErrorCode::METHOD_NOT_FOUND), _) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.last.is_some() {
            // Nothing is being served any more, and nothing may be sent.
            self.connection.outbox.close();
        } else {
            self.connection.abandon();
        }
    }
}

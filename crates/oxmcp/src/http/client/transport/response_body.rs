//! The body of a response, whose end returns the connection to the pool.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Incoming};

use crate::{
    error::{Error, Result},
    http::client::transport::{connection::Connection, pool::Pool},
    session::handler::traits::with_causes,
};

/// The chunks of a response. If it is dropped before its end, the HTTP/1.1 connection that it arrives on is closed, or its stream
/// of HTTP/2.
pub(crate) struct ResponseBody {
    body: Incoming,
    /// `None` after the end.
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl ResponseBody {
    pub(crate) fn new(body: Incoming, connection: Connection, pool: &Arc<Pool>) -> Self {
        let mut response = Self {
            body,
            connection: Some(connection),
            pool: Arc::clone(pool),
        };
        // An empty body is often not read, so the connection is released here.
        if response.body.is_end_stream() {
            response.release();
        }
        response
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        while let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) {
            // Trailers are ignored.
            if let Ok(data) = frame.into_data() {
                return Poll::Ready(Some(Ok(data)));
            }
        }
        Poll::Ready(None)
    }

    fn release(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.release(connection);
        }
    }
}

impl Stream for ResponseBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let data = ready!(self.poll_data(cx));
        if data.is_none() || self.body.is_end_stream() {
            self.release();
        }
        Poll::Ready(data.map(|data| data.map_err(|error| Error::network(with_causes(&error)))))
    }
}

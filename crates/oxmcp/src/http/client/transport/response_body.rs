//! The body of an answer, and the way of its connection back to the pool.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Incoming};

use crate::http::client::transport::connection::{Connection, Http1};
use crate::http::client::transport::pool::Pool;
use crate::http::client::transport::stream_limits::Place;
use crate::{Error, Result, session::with_causes};

/// The body of an answer. At its end the connection is there for the next request.
pub(crate) struct AnswerBody {
    body: Incoming,
    /// That of HTTP/1.1 on which it comes.
    connection: Option<Box<Http1>>,
    /// Its place on one of HTTP/2.
    place: Option<Place>,
    pool: Arc<Pool>,
}

impl AnswerBody {
    pub(crate) fn new(body: Incoming, connection: Connection, pool: &Arc<Pool>) -> Self {
        let (connection, place) = match connection {
            Connection::Http1(connection) => (Some(connection), None),
            Connection::Http2(connection) => (None, connection.into_place()),
        };
        let mut answer = Self {
            body,
            connection,
            place,
            pool: Arc::clone(pool),
        };
        // Some are but a head, of which nobody reads the body.
        if answer.body.is_end_stream() {
            answer.end();
        }
        answer
    }

    fn poll_data(&mut self, waker: &Waker) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        let cx = &mut Context::from_waker(waker);
        while let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) {
            // Trailers say nothing to us.
            if let Ok(data) = frame.into_data() {
                return Poll::Ready(Some(Ok(data)));
            }
        }
        Poll::Ready(None)
    }

    /// Gives the connection back, where it can be used again.
    fn end(&mut self) {
        self.place = None;
        if let Some(connection) = self.connection.take()
            && connection.is_ready()
        {
            self.pool.put(Connection::Http1(connection));
        }
    }
}

impl Stream for AnswerBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        let waker = match &this.connection {
            // What there is comes from the driver and from nowhere else.
            Some(_) => Waker::noop(),
            None => cx.waker(),
        };
        let mut data = this.poll_data(waker);
        if data.is_pending()
            && let Some(connection) = &mut this.connection
        {
            connection.drive(cx);
            data = this.poll_data(waker);
        }
        let data = ready!(data);
        if data.is_none() || this.body.is_end_stream() {
            this.end();
        }
        Poll::Ready(data.map(|data| data.map_err(|error| Error::network(with_causes(&error)))))
    }
}

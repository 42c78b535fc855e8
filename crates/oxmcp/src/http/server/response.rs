//! Responses: their bodies, and the forms that they have.

use std::{
    convert::Infallible,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use oxmcp_protocol::{ErrorObject, RequestId, internal::write_error};

use crate::error::Error;

/// A proxy must not hold back the events of a stream until it has many.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response that is known when its request is refused; boxed, since most requests are not.
pub(super) type Refused = Box<Response<ResponseBody>>;

/// The body of a response: bytes that are all there, or a stream of events that lasts.
///
/// Middleware that answers by itself makes one of what it has to say; dropping one that streams ends the stream.
///
/// ```
/// use oxmcp::http::ResponseBody;
///
/// let refused = http::Response::builder().status(403).body(ResponseBody::full("not from here"));
/// # assert!(refused.is_ok());
/// ```
#[derive(Default)]
pub struct ResponseBody(Kind);

#[derive(Default)]
enum Kind {
    #[default]
    Ended,
    /// At least one byte.
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ResponseBody {
    /// No body at all.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A body that is all there: its length goes into the head, and both into one write.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(if bytes.is_empty() {
            Kind::Ended
        } else {
            Kind::Full(bytes)
        })
    }

    /// A body that goes on until the stream ends. Each item is written as soon as it is there.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(stream)))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let item = match &mut self.0 {
            Kind::Ended => None,
            Kind::Full(bytes) => Some(mem::take(bytes)),
            Kind::Stream(stream) => match stream.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Poll::Ready(None) => None,
            },
        };
        self.0 = Kind::Ended;
        Poll::Ready(item.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Ended => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Ended => f.write_str("ResponseBody(empty)"),
            Kind::Full(bytes) => f.debug_tuple("ResponseBody").field(&bytes.len()).finish(),
            Kind::Stream(_) => f.write_str("ResponseBody(stream)"),
        }
    }
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    with_status(ResponseBody::empty(), status)
}

/// One message, as it lies in an outbox: a line, or nothing.
pub(super) fn message(status: StatusCode, mut line: Vec<u8>) -> Response<ResponseBody> {
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    let is_empty = line.is_empty();
    let mut response = with_status(ResponseBody::full(line), status);
    if !is_empty {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
    }
    response
}

/// An error that answers a request, or where there is no id, what was no request.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Response<ResponseBody> {
    let mut line = Vec::new();
    write_error(&mut line, id, error);
    message(status, line)
}

/// A refusal for this reason.
pub(super) fn refuse(status: StatusCode, id: Option<&RequestId>, why: &Error) -> Refused {
    Box::new(error(status, id, &ErrorObject::from(why)))
}

/// The refusal of an endpoint that is being closed.
pub(super) fn closing() -> Refused {
    let why = Error::internal("the endpoint is being closed; try another time");
    refuse(StatusCode::SERVICE_UNAVAILABLE, None, &why)
}

/// A stream of events.
pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = with_status(body, StatusCode::OK);
    // hyper keeps it for as long as the stream lasts.
    *response.headers_mut() = HeaderMap::with_capacity(3);
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, value("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, value("no"));
    response
}

fn with_status(body: ResponseBody, status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    /// What the body says of itself, before each frame and at its end, and the frames.
    fn frames(mut body: ResponseBody) -> Vec<(bool, Option<u64>, Option<Bytes>)> {
        let mut seen = Vec::new();
        loop {
            let (ended, exact) = (body.is_end_stream(), body.size_hint().exact());
            let frame = body.frame().now_or_never().unwrap();
            let data = frame.map(|frame| frame.unwrap().into_data().unwrap());
            let last = data.is_none();
            seen.push((ended, exact, data));
            if last {
                return seen;
            }
        }
    }

    #[test]
    fn a_body_that_is_all_there_says_its_length() {
        let text = Bytes::from_static(b"text");
        let expected = [(false, Some(4), Some(text.clone())), (true, Some(0), None)];
        assert_eq!(frames(ResponseBody::full(text)), expected);
        assert_eq!(frames(ResponseBody::full("")), [(true, Some(0), None)]);
        assert_eq!(frames(ResponseBody::empty()), [(true, Some(0), None)]);
    }

    #[test]
    fn a_stream_says_nothing_of_its_end_before_it_has_come() {
        let items = ["a", "", "b"].map(Bytes::from);
        let mut body = ResponseBody::stream(stream::iter(items.clone()));
        let seen = frames(mem::take(&mut body));
        let data: Vec<_> = seen.iter().flat_map(|it| it.2.clone()).collect();
        assert_eq!(data, items);
        assert!(seen.iter().all(|it| (it.0, it.1) == (false, None)));
    }

    #[test]
    fn a_body_that_has_ended_does_not_ask_its_stream_again() {
        let mut polled = 0;
        let once = stream::poll_fn(move |_| {
            polled += 1;
            assert_eq!(polled, 1, "a stream that has ended is not asked again");
            Poll::Ready(None)
        });
        let mut body = ResponseBody::stream(once);
        for _ in 0..2 {
            assert!(body.frame().now_or_never().unwrap().is_none());
        }
        assert!(body.is_end_stream());
    }
}

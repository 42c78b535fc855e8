//! HTTP responses: their bodies, and a function for each kind of response.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use oxmcp_protocol::{ErrorObject, RequestId, internal::write_error};
#[cfg(feature = "auth")]
use tokio::time::{Instant, Sleep, sleep_until};

#[cfg(feature = "auth")]
use crate::http::protection::StreamDeadline;
use crate::{
    error::Error,
    http::server::{
        event_encoding::encode,
        serve::{Activity, EventSource, MAX_FRAME, WatchedBody, next_frame},
    },
    logged::metrics::OpenStream,
    session::driver::budget::Budget,
};

/// Tells proxies not to buffer an event stream.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The response that rejects a request. Boxed, because most requests are not rejected.
pub(crate) type Refused = Box<Response<ResponseBody>>;

/// The body of a response: bytes that are all available, or an event stream.
///
/// Middleware that responds by itself makes its response body with this type. Dropping a streaming body ends the stream.
///
/// ```
/// use oxmcp::http::ResponseBody;
///
/// let refused = http::Response::builder().status(403).body(ResponseBody::full("forbidden"));
/// # assert!(refused.is_ok());
/// ```
#[derive(Default)]
pub struct ResponseBody {
    kind: Kind,
    /// Counts the body in the metrics, if it is an event stream.
    open: Option<OpenStream>,
}

#[derive(Default)]
enum Kind {
    #[default]
    Ended,
    /// At least one byte.
    Full(Bytes),
    Stream(Pin<Box<dyn EventSource>>),
    Watched(WatchedBody),
}

/// A stream whose amount of pending data is unknown.
struct Unknown<S>(S);

impl<S: Stream<Item = Bytes> + Send> Stream for Unknown<Pin<Box<S>>> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<S: Stream<Item = Bytes> + Send> EventSource for Unknown<Pin<Box<S>>> {}

/// A stream that ends at a deadline, which may move.
#[cfg(feature = "auth")]
struct Expiring {
    /// `None` once the stream has ended.
    source: Option<Pin<Box<dyn EventSource>>>,
    sleep: Pin<Box<Sleep>>,
    deadline: StreamDeadline,
}

/// Tells the client to reconnect after a delay, to another node or to one that has restarted by then: many clients retry only
/// twice.
pub(crate) const COME_BACK_LATER: &[u8] = b"retry: 2000\n\n";

/// Tells the client to reconnect immediately.
#[cfg(feature = "auth")]
const COME_BACK: &[u8] = b"retry: 100\n\n";

/// The interval for checking a stream whose end was postponed.
#[cfg(feature = "auth")]
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[cfg(feature = "auth")]
impl Expiring {
    /// Ends the stream after the pending data, so that an event is never cut off.
    fn end(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        let mut source = self.source.take()?;
        let was_within_item = source.is_within_item();
        let come_back = Bytes::from_static(COME_BACK);
        match source.as_mut().poll_next(cx) {
            Poll::Ready(Some(part)) if source.is_within_item() => {
                self.source = Some(source);
                Some(part)
            }
            Poll::Ready(Some(last)) => Some([last, come_back].concat().into()),
            // The rest of the event was dropped, so data added now would become part of it.
            _ if was_within_item => None,
            _ => Some(come_back),
        }
    }
}

#[cfg(feature = "auth")]
impl Stream for Expiring {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.source.is_some() && self.sleep.as_mut().poll(cx).is_ready() {
            let deadline = self.deadline.at();
            if deadline > Instant::now() {
                self.sleep.as_mut().reset(deadline);
            } else if self.deadline.is_put_off() {
                self.sleep.as_mut().reset(Instant::now() + LOOK_AGAIN);
            } else {
                return Poll::Ready(self.end(cx));
            }
        }
        match &mut self.source {
            Some(source) => source.as_mut().poll_next(cx),
            None => Poll::Ready(None),
        }
    }
}

#[cfg(feature = "auth")]
impl EventSource for Expiring {
    fn has_data(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.has_data())
    }

    fn is_counted(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| source.is_counted())
    }

    fn is_watched(&self) -> bool {
        self.source
            .as_ref()
            .is_some_and(|source| source.is_watched())
    }

    fn on_stall(&self, activity: &Activity) {
        if let Some(source) = &self.source {
            source.on_stall(activity);
        }
    }
}

impl ResponseBody {
    /// Returns an empty body.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns a body whose bytes are all available. Its length goes into the head, and head and body go out in one write.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::of(if bytes.is_empty() {
            Kind::Ended
        } else {
            Kind::Full(bytes)
        })
    }

    /// Returns a body that lasts until the stream ends. Each item is written as soon as it is available.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::events(Unknown(Box::pin(stream)))
    }

    /// A body that lasts until its source ends.
    pub(crate) fn events(source: impl EventSource + 'static) -> Self {
        Self::of(Kind::Stream(Box::pin(source)))
    }

    fn of(kind: Kind) -> Self {
        Self { kind, open: None }
    }

    /// The same body. If it streams, it ends at a deadline and tells the client to reconnect immediately.
    #[cfg(feature = "auth")]
    pub(crate) fn until(self, deadline: Option<&StreamDeadline>) -> Self {
        let kind = match (self.kind, deadline) {
            (Kind::Stream(source), Some(deadline)) => Kind::Stream(Box::pin(Expiring {
                source: Some(source),
                sleep: Box::pin(sleep_until(deadline.at())),
                deadline: deadline.clone(),
            })),
            (kind, _) => kind,
        };
        Self { kind, ..self }
    }

    /// The same body, whose bytes count against a budget, and which is dropped if the client stops reading. A short body is not
    /// watched if the HTTP server accepts it immediately.
    pub(crate) fn watched(self, budget: &Arc<Budget>, stall: Duration, is_taken: bool) -> Self {
        let kind = match self.kind {
            Kind::Ended => Kind::Ended,
            Kind::Full(bytes) => {
                let bytes = budget.charge(bytes.len()).with(bytes);
                if is_taken && bytes.len() <= MAX_FRAME {
                    Kind::Full(bytes)
                } else {
                    Kind::Watched(WatchedBody::full(bytes, stall))
                }
            }
            Kind::Stream(source) if source.is_watched() => Kind::Stream(source),
            Kind::Stream(source) => {
                Kind::Watched(WatchedBody::stream(source, Arc::clone(budget), stall))
            }
            Kind::Watched(body) => Kind::Watched(body),
        };
        Self { kind, ..self }
    }

    /// Ends the connection of this activity when the body is dropped because the client stopped reading.
    pub(crate) fn on_stall(&self, activity: &Activity) {
        match &self.kind {
            Kind::Stream(source) => source.on_stall(activity),
            Kind::Watched(body) => body.on_stall(activity),
            Kind::Ended | Kind::Full(_) => {}
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = match &mut self.kind {
            Kind::Ended => Poll::Ready(None),
            Kind::Full(bytes) => {
                let frame = next_frame(bytes);
                if bytes.is_empty() {
                    self.kind = Kind::Ended;
                }
                Poll::Ready(Some(frame))
            }
            Kind::Stream(source) => source.as_mut().poll_next(cx),
            Kind::Watched(body) => body.poll_next(cx),
        };
        if let Poll::Ready(None) = polled {
            *self = Self::default();
        }
        polled.map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Ended => true,
            Kind::Watched(body) => body.left() == Some(0),
            Kind::Full(_) | Kind::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Ended => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
            Kind::Watched(body) => match body.left() {
                Some(bytes) => SizeHint::with_exact(bytes as u64),
                None => SizeHint::default(),
            },
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
        match &self.kind {
            Kind::Ended => f.write_str("ResponseBody(empty)"),
            Kind::Full(bytes) => f.debug_tuple("ResponseBody").field(&bytes.len()).finish(),
            Kind::Stream(_) => f.write_str("ResponseBody(stream)"),
            Kind::Watched(body) => match body.left() {
                Some(bytes) => f.debug_tuple("ResponseBody").field(&bytes).finish(),
                None => f.write_str("ResponseBody(stream)"),
            },
        }
    }
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response<ResponseBody> {
    with_status(ResponseBody::empty(), status)
}

/// A response with one message from an outbox: one line, or nothing.
pub(crate) fn message(status: StatusCode, mut line: Vec<u8>) -> Response<ResponseBody> {
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

/// Sends a JSON response as the only event of a stream, for a client that accepts nothing else. Other responses stay as they are.
pub(crate) fn as_event(response: Response<ResponseBody>) -> Response<ResponseBody> {
    let is_json = |it: &HeaderValue| it == "application/json";
    let media_type = response.headers().get(header::CONTENT_TYPE);
    if !response.status().is_success() || !media_type.is_some_and(is_json) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Kind::Full(line) = body.kind else {
        return Response::from_parts(head, body);
    };
    let mut event = Vec::new();
    encode(&mut event, &[&line, &b"\n"[..]].concat());
    mark_as_events(&mut head.headers);
    Response::from_parts(head, ResponseBody::full(event))
}

/// A response with an error for a request. Without an ID, it is for a body that is not a request.
pub(crate) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Response<ResponseBody> {
    let mut line = Vec::new();
    write_error(&mut line, id, error);
    message(status, line)
}

/// A response with the only message for a request. A request that was refused for a while gets 429, with the seconds to wait.
pub(crate) fn answer(
    status: StatusCode,
    retry_after: Option<u64>,
    line: Vec<u8>,
) -> Response<ResponseBody> {
    let Some(seconds) = retry_after else {
        return message(status, line);
    };
    let mut response = message(StatusCode::TOO_MANY_REQUESTS, line);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Rejects a request for this reason.
pub(crate) fn refuse(status: StatusCode, id: Option<&RequestId>, why: &Error) -> Refused {
    Box::new(error(status, id, &ErrorObject::from(why)))
}

/// Rejects a request that was not processed, so that the client may retry it.
pub(crate) fn unserved(id: Option<&RequestId>, why: &Error) -> Refused {
    let mut refused = refuse(StatusCode::SERVICE_UNAVAILABLE, id, why);
    // The header tells clients that the request was not processed.
    let soon = HeaderValue::from_static("1");
    refused.headers_mut().insert(header::RETRY_AFTER, soon);
    refused
}

/// Rejects a request to a misconfigured endpoint, and logs the error.
pub(crate) fn misconfigured(error: &Error) -> Refused {
    tracing::error!(%error, "endpoint is misconfigured");
    let why = Error::internal("server is misconfigured; see its log");
    refuse(StatusCode::INTERNAL_SERVER_ERROR, None, &why)
}

/// Rejects a request because the endpoint's byte budget is used up.
pub(crate) fn exhausted(id: Option<&RequestId>) -> Refused {
    let why = Error::internal("server is out of buffer space; try again later");
    unserved(id, &why)
}

/// The response to a request that was processed, but has no answer for this reason.
pub(crate) fn unanswered(reason: &str) -> Response<ResponseBody> {
    let why =
        format!("{reason}; the request may have been processed, so retry only if it is idempotent");
    // Load balancers and clients may retry a request that was answered with 503.
    *refuse(
        StatusCode::INTERNAL_SERVER_ERROR,
        None,
        &Error::internal(why),
    )
}

/// The reason for [`unanswered`] if the endpoint's byte budget is used up.
pub(crate) const DROPPED: &str = "response dropped: server is out of buffer space";

/// A response with an event stream.
pub(crate) fn events(mut body: ResponseBody) -> Response<ResponseBody> {
    body.open = Some(OpenStream::new());
    let mut response = with_status(body, StatusCode::OK);
    // hyper keeps the map until the stream ends, so it is small.
    *response.headers_mut() = HeaderMap::with_capacity(3);
    mark_as_events(response.headers_mut());
    response
}

fn mark_as_events(headers: &mut HeaderMap) {
    let value = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, value("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, value("no"));
}

fn with_status(body: ResponseBody, status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use std::mem;

    use futures_util::{FutureExt, stream};
    use http_body_util::BodyExt;

    use super::*;

    /// `is_end_stream` and the exact size hint of the body, before each frame and at its end, and the frames.
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
    fn complete_body_has_a_known_length() {
        let text = Bytes::from_static(b"text");
        let expected = [(false, Some(4), Some(text.clone())), (true, Some(0), None)];
        assert_eq!(frames(ResponseBody::full(text)), expected);
        assert_eq!(frames(ResponseBody::full("")), [(true, Some(0), None)]);
        assert_eq!(frames(ResponseBody::empty()), [(true, Some(0), None)]);
    }

    #[test]
    fn stream_reports_its_end_only_when_reached() {
        let items = ["a", "", "b"].map(Bytes::from);
        let mut body = ResponseBody::stream(stream::iter(items.clone()));
        let seen = frames(mem::take(&mut body));
        let data: Vec<_> = seen.iter().flat_map(|it| it.2.clone()).collect();
        assert_eq!(data, items);
        assert!(seen.iter().all(|it| (it.0, it.1) == (false, None)));
    }

    #[test]
    fn finished_body_does_not_poll_its_stream_again() {
        let mut polled = 0;
        let once = stream::poll_fn(move |_| {
            polled += 1;
            assert_eq!(polled, 1, "a stream that has ended is not polled again");
            Poll::Ready(None)
        });
        let mut body = ResponseBody::stream(once);
        for _ in 0..2 {
            assert!(body.frame().now_or_never().unwrap().is_none());
        }
        assert!(body.is_end_stream());
    }
}

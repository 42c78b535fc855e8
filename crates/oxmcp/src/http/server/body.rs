//! The bodies of requests and of responses.

use std::{
    convert::Infallible,
    error::Error as StdError,
    fmt,
    future::{Future, poll_fn},
    mem,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_core::Stream;
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::timeout;

use crate::{
    Error,
    http::server::{answer, ladder::Refusal},
};

/// How long a client may take to send its request: none needs a minute for 4 MiB.
const BODY_TIME: Duration = Duration::from_secs(60);

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

/// Reads the body of a request.
///
/// # Errors
/// How the request is refused.
pub(super) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Box<Response<ResponseBody>>>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send,
{
    let refuse = |status, why: &Error| Err(Box::new(answer::refuse(status, None, why)));
    let mut collecting = pin!(collect(body, limit));
    let collected = match soon(collecting.as_mut()).await {
        Some(collected) => Ok(collected),
        None => Box::pin(timeout(BODY_TIME, collecting)).await,
    };
    match collected {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(Broken::TooLong)) => Err(Box::new(Refusal::too_long(limit).response(None))),
        Ok(Err(Broken::Off(error))) => {
            tracing::debug!(%error, "the body of a request broke off");
            let why = Error::invalid_request("the body broke off");
            refuse(StatusCode::BAD_REQUEST, &why)
        }
        Err(_) => {
            let why = Error::timeout("the body took longer than a minute to arrive");
            refuse(StatusCode::REQUEST_TIMEOUT, &why)
        }
    }
}

/// What a future gives within two turns. Most bodies arrive with their head, and are handed over a turn later: they need no
/// clock, which would cost more than they do.
async fn soon<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut waited = false;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if waited => Poll::Ready(None),
        Poll::Pending => {
            waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a body cannot be had.
enum Broken {
    TooLong,
    Off(BoxError),
}

/// All of a body. Most come in one piece, which is not copied.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Broken>
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send,
{
    let mut body = pin!(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| Broken::Off(error.into()))?;
        // Trailers say nothing here.
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        let length = data.remaining();
        if length > limit.saturating_sub(first.len() + rest.len()) {
            return Err(Broken::TooLong);
        }
        if first.is_empty() {
            first = data.copy_to_bytes(length);
        } else {
            rest.put(data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(whole.freeze())
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

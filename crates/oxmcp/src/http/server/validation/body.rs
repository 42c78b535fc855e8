//! The body of a request, read within limits.

use std::{error::Error as StdError, future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{StatusCode, Version, header, request::Parts};
use http_body::Body;
use tokio::time::timeout;

use super::refusal::Refusal;
use crate::{
    error::Error,
    http::server::response::{self, Refused},
    session::{
        driver::budget::{Budget, Charge},
        task::{spawn, within},
    },
};

/// The time within which a client must send its request. No client needs a minute for 4 MiB.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The limits, in bytes and in time, for reading and discarding the rest of a rejected body. They cover clients that send files
/// of several times the limit; longer ones are not worth the effort.
const MAX_DISCARDED: usize = 64 << 20;
const MAX_DISCARDING: Duration = Duration::from_secs(10);

/// Reads the body of a request. It counts against the budget while it is read, and as long as the returned charge is held.
///
/// # Errors
/// The response that refuses the request.
pub(crate) async fn read_body<B>(
    body: B,
    limit: usize,
    budget: &Arc<Budget>,
) -> Result<(Bytes, Charge), Refused>
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let refuse = |status, why: &Error| Err(response::refuse(status, None, why));
    let mut charge = budget.charge(0);
    let mut body = Box::pin(body);
    let read = within(TIMEOUT, collect(body.as_mut(), limit, &mut charge)).await;
    if let Some(Err(ReadError::TooLong | ReadError::Exhausted)) = read {
        discard(body);
    }
    match read {
        Some(Ok(body)) => Ok((body, charge)),
        Some(Err(ReadError::TooLong)) => Err(Refusal::too_long(limit).into()),
        Some(Err(ReadError::Exhausted)) => Err(response::exhausted(None)),
        Some(Err(ReadError::Broken(error))) => {
            tracing::debug!(%error, "failed to read a request body");
            let why = Error::invalid_request(
                "failed to read the request body: the connection failed or the body ended early",
            );
            refuse(StatusCode::BAD_REQUEST, &why)
        }
        None => {
            let why = Error::timeout("request timed out: the body did not arrive within a minute");
            refuse(StatusCode::REQUEST_TIMEOUT, &why)
        }
    }
}

/// Reads the rest of a rejected request's body, within limits, and drops it. Otherwise the connection would be closed with unread
/// bytes and reset, and the client might never see the response.
///
/// See [RFC 9112, 9.6](https://www.rfc-editor.org/rfc/rfc9112#section-9.6-9).
fn discard<B>(mut body: Pin<Box<B>>)
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let discarding = async move {
        let mut left = MAX_DISCARDED;
        while let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let length = frame.data_ref().map_or(0, Buf::remaining);
            let Some(rest) = left.checked_sub(length) else {
                return;
            };
            left = rest;
        }
    };
    spawn(async move {
        let _ = timeout(MAX_DISCARDING, discarding).await;
    });
}

/// Discards the body of a request whose head has been rejected.
pub(crate) fn discard_body<B>(parts: &Parts, body: B)
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // A client that sends `Expect` sends the body only when asked to. Over HTTP/2 the stream ends by itself.
    let is_sent = !parts.headers.contains_key(header::EXPECT) && parts.version < Version::HTTP_2;
    if is_sent && !body.is_end_stream() {
        discard(Box::pin(body));
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// The reason why a body was not read.
enum ReadError {
    TooLong,
    /// The body does not fit into the budget.
    Exhausted,
    Broken(BoxError),
}

/// Reads a whole body. Most bodies arrive in one piece, which is not copied.
async fn collect<B>(
    mut body: Pin<&mut B>,
    limit: usize,
    charge: &mut Charge,
) -> Result<Bytes, ReadError>
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send,
{
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|error| ReadError::Broken(error.into()))?;
        // Trailers are ignored.
        let Ok(mut data) = frame.into_data() else {
            continue;
        };
        let length = data.remaining();
        if length > limit.saturating_sub(first.len() + rest.len()) {
            return Err(ReadError::TooLong);
        }
        let more = if first.is_empty() {
            first = data.copy_to_bytes(length);
            length
        } else {
            let before = rest.capacity();
            rest.put(data);
            rest.capacity() - before
        };
        if more > 0 && !charge.grow(more) {
            return Err(ReadError::Exhausted);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(whole.freeze())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
        task::{Context, Poll},
    };

    use http::Request;
    use http_body::Frame;
    use tokio::{task::yield_now, time::sleep};

    use super::*;

    const PART: usize = 1 << 20;

    /// A body that never ends. It counts the parts that were read.
    struct Endless {
        taken: Arc<AtomicUsize>,
        is_silent: bool,
        is_next: bool,
    }

    impl Endless {
        fn new(is_silent: bool) -> (Self, Arc<AtomicUsize>) {
            let taken = Arc::<AtomicUsize>::default();
            let body = Self {
                taken: Arc::clone(&taken),
                is_silent,
                is_next: false,
            };
            (body, taken)
        }
    }

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.is_silent {
                self.taken.fetch_add(1, Ordering::Relaxed);
                return Poll::Pending;
            }
            // Yields to other tasks.
            self.is_next = !self.is_next;
            if self.is_next {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.taken.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; PART])))))
        }
    }

    /// A body with these parts.
    struct Parts(VecDeque<Bytes>);

    impl Body for Parts {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rest_of_refused_body_is_read_within_bounds() {
        let (body, taken) = Endless::new(false);
        discard(Box::pin(body));
        for _ in 0..1_000 {
            yield_now().await;
        }
        assert_eq!(taken.load(Ordering::Relaxed), MAX_DISCARDED / PART + 1);
        assert_eq!(Arc::strong_count(&taken), 1, "it is dropped");

        let (body, taken) = Endless::new(true);
        discard(Box::pin(body));
        sleep(MAX_DISCARDING - Duration::from_millis(10)).await;
        assert_eq!(Arc::strong_count(&taken), 2);
        sleep(Duration::from_millis(20)).await;
        assert_eq!(Arc::strong_count(&taken), 1, "it is dropped");
    }

    #[tokio::test(start_paused = true)]
    async fn only_unsolicited_body_is_discarded() {
        for (version, expects, is_read) in [
            (Version::HTTP_11, false, true),
            (Version::HTTP_11, true, false),
            (Version::HTTP_2, false, false),
        ] {
            let mut request = Request::post("/mcp").version(version);
            if expects {
                request = request.header(header::EXPECT, "100-continue");
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let (body, taken) = Endless::new(true);
            discard_body(&parts, body);
            yield_now().await;
            assert_eq!(
                taken.load(Ordering::Relaxed) > 0,
                is_read,
                "{version:?}, {expects}"
            );
        }
    }

    #[tokio::test]
    async fn body_may_be_as_long_as_the_limit() {
        let budget = Budget::new(usize::MAX);
        for parts in [vec!["123456"], vec!["123", "456"], vec!["1", "2345", "6"]] {
            let body = || Parts(parts.iter().map(|part| Bytes::from(*part)).collect());
            let (read, _charge) = read_body(body(), 6, &budget).await.unwrap();
            assert_eq!(read, "123456");
            let refused = read_body(body(), 5, &budget).await.err().unwrap();
            assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        }
    }
}

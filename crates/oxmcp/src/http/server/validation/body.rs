//! Body of a request, read within its bounds.

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

/// How long a client may take to send its request: none needs a minute for 4 MiB.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How much is read of the rest of a refused body, and for how long: clients send files that are some times too long, and those
/// that go on beyond that are not worth more. None of it is kept.
const MAX_DISCARDED: usize = 64 << 20;
const MAX_DISCARDING: Duration = Duration::from_secs(10);

/// Reads the body of a request, which counts in the budget while it is read and for as long as the returned charge is there.
///
/// # Errors
/// How the request is refused.
pub(in crate::http::server) async fn read_body<B>(
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
            tracing::debug!(%error, "the body of a request broke off");
            let why = Error::invalid_request("the body broke off");
            refuse(StatusCode::BAD_REQUEST, &why)
        }
        None => {
            let why = Error::timeout("the body took longer than a minute to arrive");
            refuse(StatusCode::REQUEST_TIMEOUT, &why)
        }
    }
}

/// Reads the rest of the body of a request that is refused, within bounds, and drops it. Else the connection would be closed with
/// bytes of it unread, and reset: its client might never see the response.
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

/// The same for a request whose head is refused already.
pub(in crate::http::server) fn discard_body<B>(parts: &Parts, body: B)
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // A client that waits for it sends the body only once that is asked for; over HTTP/2 a stream ends by itself.
    let is_sent = !parts.headers.contains_key(header::EXPECT) && parts.version < Version::HTTP_2;
    if is_sent && !body.is_end_stream() {
        discard(Box::pin(body));
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;

/// The reason why there is no body.
enum ReadError {
    TooLong,
    /// There is no room for it in the budget.
    Exhausted,
    Broken(BoxError),
}

/// All of a body. Most come in one piece, which is not copied.
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
        // Trailers say nothing here.
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

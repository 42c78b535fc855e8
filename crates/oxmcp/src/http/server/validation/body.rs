//! Body of a request, read within its bounds.

use std::{error::Error as StdError, future::poll_fn, pin::pin, time::Duration};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;

use super::refusal::Refusal;
use crate::{
    error::Error,
    http::server::response::{self, Refused},
    session::task::within,
};

/// How long a client may take to send its request: none needs a minute for 4 MiB.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the body of a request.
///
/// # Errors
/// How the request is refused.
pub(in crate::http::server) async fn read_body<B>(body: B, limit: usize) -> Result<Bytes, Refused>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send,
{
    let refuse = |status, why: &Error| Err(response::refuse(status, None, why));
    match within(TIMEOUT, collect(body, limit)).await {
        Some(Ok(body)) => Ok(body),
        Some(Err(ReadError::TooLong)) => Err(Refusal::too_long(limit).into()),
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

type BoxError = Box<dyn StdError + Send + Sync>;

/// The reason why there is no body.
enum ReadError {
    TooLong,
    Broken(BoxError),
}

/// All of a body. Most come in one piece, which is not copied.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: Body<Data: Send, Error: Into<BoxError>> + Send,
{
    let mut body = pin!(body);
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

//! Requests for the keys of issuers, and for what an issuer says of a token.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use oxmcp_auth::Body;
use tokio::time::timeout;

use crate::{error::Result, http::client::DynHttpClient};

/// How long a request may take, with its answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read.
const MAX_BYTES: usize = 1 << 20;

/// Sends a request, and reads the answer.
///
/// # Errors
/// A sentence that says why there is no answer, for the log.
pub(super) async fn fetch(
    client: &dyn DynHttpClient,
    request: &oxmcp_auth::Request,
) -> Result<oxmcp_auth::Response, String> {
    let uri = request.uri().clone();
    let (parts, body) = request.clone().into_parts();
    let request = Request::from_parts(parts, body.into_bytes());
    match timeout(TIMEOUT, exchange(client, request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(format!("{uri} cannot be asked: {error}")),
        Err(_) => Err(format!("{uri} has not answered within {TIMEOUT:?}")),
    }
}

async fn exchange(
    client: &dyn DynHttpClient,
    request: Request<Bytes>,
) -> Result<oxmcp_auth::Response> {
    let (parts, mut body) = client.send_boxed(request).await?.into_parts();
    let mut whole = BytesMut::new();
    while let Some(chunk) = body.chunk().await? {
        whole.extend_from_slice(&chunk);
        if whole.len() > MAX_BYTES {
            // What reads it refuses it.
            break;
        }
    }
    Ok(Response::from_parts(parts, Body::from(whole.freeze())))
}

//! What of a message stands in the headers of its request, for those on the way who do not read bodies.
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

use std::borrow::Cow;

use http::{HeaderName, HeaderValue};

use crate::http::client::exchange::message::Look;
use crate::{Result, transport::Mirror};

/// The headers that mirror a message. Legacy servers know none, and neither has what is no request a name or arguments.
///
/// # Errors
/// Where an argument that must be mirrored cannot be.
pub(crate) fn headers_for(
    message: &Look<'_>,
    mirror: &Mirror,
) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let (Some(_), Some(method)) = (message.modern, message.method) else {
        return Ok(Vec::new());
    };
    let headers = mirror.headers_of(method, message.params)?.into_iter();
    // All of them are fit to be sent: what an extension calls its header was checked before.
    let headers = headers.filter_map(|(name, value)| {
        let name = match name {
            Cow::Borrowed(name) => HeaderName::from_static(name),
            Cow::Owned(name) => HeaderName::try_from(name).ok()?,
        };
        Some((name, HeaderValue::try_from(value).ok()?))
    });
    Ok(headers.collect())
}

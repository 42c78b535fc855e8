//! What of a message stands in the headers of its request, for those on the way who do not read bodies.
//! See [request metadata](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata).

use http::{HeaderName, HeaderValue};

use super::outgoing::Look;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The headers that mirror a message. Legacy servers know none.
pub(super) fn headers_for(message: &Look<'_>) -> Vec<(HeaderName, HeaderValue)> {
    if message.modern.is_none() {
        return Vec::new();
    }
    let method = message.method.and_then(|it| HeaderValue::from_str(it).ok());
    method.map(|method| (METHOD, method)).into_iter().collect()
}

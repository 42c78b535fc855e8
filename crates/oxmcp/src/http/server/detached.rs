//! What stays of an HTTP request while a subscription that it has begun lasts: all that it says, in little room, since hardly
//! anybody asks for it again.

use std::sync::OnceLock;

use http::{
    Extensions, HeaderName, HeaderValue, Method, Request, Uri, Version, header::HeaderMap,
    request::Parts,
};
use memchr::memchr;

/// A request in memory of its own. What hyper reads shares a buffer with all that it reads at once, which a request
/// that lasts would keep.
pub(super) struct Detached {
    method: Method,
    version: Version,
    extensions: Extensions,
    /// Lines, none of which can have another in it: the URI, and the headers.
    said: Box<[u8]>,
    /// The request once more, for who has asked for it.
    whole: OnceLock<Box<Parts>>,
}

/// With what the line of a header begins, by whether the header may be logged.
const PLAIN: u8 = b'-';
const SENSITIVE: u8 = b'!';

impl From<&Parts> for Detached {
    fn from(parts: &Parts) -> Self {
        let mut said = parts.uri.to_string().into_bytes();
        said.push(b'\n');
        for (name, value) in &parts.headers {
            let kind = if value.is_sensitive() {
                SENSITIVE
            } else {
                PLAIN
            };
            said.push(kind);
            said.extend_from_slice(name.as_str().as_bytes());
            said.push(b':');
            said.extend_from_slice(value.as_bytes());
            said.push(b'\n');
        }
        Self {
            method: parts.method.clone(),
            version: parts.version,
            extensions: parts.extensions.clone(),
            said: said.into(),
            whole: OnceLock::new(),
        }
    }
}

impl Detached {
    /// The request as it came.
    pub(super) fn parts(&self) -> &Parts {
        self.whole.get_or_init(|| Box::new(self.restore()))
    }

    fn restore(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        let mut lines = self.said.split(|byte| *byte == b'\n');
        let uri = lines.next().and_then(|uri| Uri::try_from(uri).ok());
        parts.uri = uri.unwrap_or_default();
        let headers = lines.filter_map(header);
        parts.headers = headers.fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        });
        parts.method = self.method.clone();
        parts.version = self.version;
        parts.extensions = self.extensions.clone();
        parts
    }
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (kind, line) = line.split_first()?;
    let (name, value) = line.split_at(memchr(b':', line)?);
    let name = HeaderName::from_bytes(name).ok()?;
    let mut value = HeaderValue::from_bytes(value.get(1..)?).ok()?;
    value.set_sensitive(*kind == SENSITIVE);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_is_detached_says_the_same_and_shares_no_memory() {
        let read = Bytes::from(b"/mcp?x=1 value".to_vec());
        let mut value = HeaderValue::from_maybe_shared(read.slice(9..)).unwrap();
        value.set_sensitive(true);
        let uri = Uri::from_maybe_shared(read.slice(..8)).unwrap();
        let request = Request::post(uri)
            .version(Version::HTTP_10)
            .header("a", value)
            .header("b", HeaderValue::from_bytes(b":\xff: ").unwrap())
            .header("b", "")
            .extension(7);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert!(!read.is_unique());
        let detached = Detached::from(&parts);
        let headers = parts.headers.clone();
        drop(parts);
        let there = detached.parts();
        assert_eq!(there.headers, headers);
        drop(headers);
        assert!(read.is_unique());
        assert_eq!(there.uri, "/mcp?x=1");
        assert!(there.headers["a"].is_sensitive() && !there.headers["b"].is_sensitive());
        assert_eq!(
            (&there.method, there.version),
            (&Method::POST, Version::HTTP_10)
        );
        assert_eq!(there.extensions.get(), Some(&7));
    }
}

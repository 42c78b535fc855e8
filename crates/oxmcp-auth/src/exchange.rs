//! HTTP requests to send, and the responses to them, with bodies that no log shows.

use std::fmt;

use bytes::Bytes;

/// A request that is to be sent: without following redirects, unless its step says so.
pub type Request = http::Request<Body>;

/// The response to a [`Request`], its body read whole.
pub type Response = http::Response<Body>;

/// Body of a request or a response. It often holds secrets, so `Debug` shows its length alone.
///
/// ```
/// let body = oxmcp_auth::Body::from("client_secret=hunter2");
/// assert_eq!(format!("{body:?}"), "Body(21 bytes)");
/// assert_eq!(body.as_ref(), b"client_secret=hunter2");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Body(Bytes);

impl Body {
    /// The bytes of the body.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes)", self.0.len())
    }
}

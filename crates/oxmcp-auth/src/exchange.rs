//! HTTP requests to send and their responses, with bodies that `Debug` does not show.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderValue;
use url::form_urlencoded;

use crate::{
    error::{AuthError, Result},
    secret::Secret,
};

/// An HTTP request to send. Do not follow redirects, unless the step that made the request says so.
pub type Request = http::Request<Body>;

/// The response to a [`Request`], with its whole body.
pub type Response = http::Response<Body>;

/// The body of a request or a response. It often holds secrets, so `Debug` shows only its length.
///
/// ```
/// let body = oxmcp_auth::Body::from("client_secret=hunter2");
/// assert_eq!(format!("{body:?}"), "Body(21 bytes)");
/// assert_eq!(body.as_ref(), b"client_secret=hunter2");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Body(Bytes);

impl Body {
    /// Returns the bytes of the body.
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

/// The value of the `Authorization` header for a client's id and secret.
///
/// # Errors
/// If they are too long for a header.
pub(crate) fn basic_credentials(id: &str, secret: &Secret) -> Result<HeaderValue> {
    // Both are form-encoded first (RFC 6749, section 2.3.1).
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Secret::new(format!("{}:{}", encode(id), encode(secret.expose())));
    credentials("Basic", &Secret::new(STANDARD.encode(pair.expose())))
}

/// The value of the `Authorization` header for a token.
///
/// # Errors
/// If the token has characters that no header may have, or is too long.
pub(crate) fn bearer_credentials(token: &Secret) -> Result<HeaderValue> {
    credentials("Bearer", token)
}

/// The scheme and its credentials, in a header value that is marked as sensitive.
fn credentials(scheme: &str, sent: &Secret) -> Result<HeaderValue> {
    let value = Secret::new(format!("{scheme} {}", sent.expose()));
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| {
        AuthError::configuration(format!(
            "invalid {scheme} credentials: too long, or not valid in a header"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

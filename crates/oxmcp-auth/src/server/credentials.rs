//! The access token that a request bears.

use http::{HeaderMap, header::AUTHORIZATION};

use super::refusal::Refusal;
use crate::secret::Secret;

/// An access token, and the scheme that it was sent by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub(super) token: Secret,
    pub(super) scheme: Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    Dpop,
}

impl Credentials {
    /// Finds the token in the header `Authorization`, the one place where it may be: what a URL or a body says is not
    /// looked at ([RFC 9700, section 4.3.2](https://www.rfc-editor.org/rfc/rfc9700#section-4.3.2)).
    ///
    /// # Errors
    ///
    /// [`Refusal::missing`] where there is none, or it is of another scheme; a malformed request where there are two
    /// headers, or what follows the scheme cannot be a token.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = values.next().ok_or_else(Refusal::missing)?;
        if values.next().is_some() {
            return Err(Refusal::malformed(
                "there is more than one Authorization header",
            ));
        }
        let value = str::from_utf8(value.as_bytes()).unwrap_or_default();
        let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
        let scheme = if scheme.eq_ignore_ascii_case("Bearer") {
            Scheme::Bearer
        } else if scheme.eq_ignore_ascii_case("DPoP") {
            Scheme::Dpop
        } else {
            return Err(Refusal::missing());
        };
        let token = token.trim_matches(' ');
        if !is_token(token) {
            return Err(Refusal::malformed(
                "what follows the scheme in the Authorization header is not an access token",
            ));
        }
        Ok(Self {
            token: token.into(),
            scheme,
        })
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &Secret {
        &self.token
    }
}

/// `b64token` of [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-2.1), which is also `token68`.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(is_of_token)
}

/// Written so that it becomes two comparisons and a mask: a token is hundreds of bytes, and comes with each request.
fn is_of_token(byte: u8) -> bool {
    matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
}

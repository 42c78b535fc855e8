//! The access token of a request.

use std::{fmt, ops::Range};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

use super::refusal::Refusal;
use crate::secret::Secret;

/// An access token, and the scheme with which it was sent.
#[derive(Clone)]
pub struct Credentials {
    /// The header, shared with the request, so that a token that was seen before need not be copied.
    header: HeaderValue,
    /// The position of the token in the header.
    token: Range<usize>,
    pub(crate) scheme: Scheme,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Bearer,
    Dpop,
}

impl Credentials {
    /// Finds the token in the `Authorization` header. Tokens in the URL or body are ignored
    /// ([RFC 9700, section 4.3.2](https://www.rfc-editor.org/rfc/rfc9700#section-4.3.2)).
    ///
    /// # Errors
    ///
    /// [`Refusal::missing`] if there is none, or it is of another scheme; a malformed request if there are two headers, or
    /// the text after the scheme cannot be a token.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Refusal> {
        Self::find(headers, is_token)
    }

    /// Finds a bearer token of any visible ASCII characters, for servers with their own tokens instead of OAuth.
    ///
    /// # Errors
    ///
    /// As [`from_headers`](Self::from_headers).
    pub fn own_token(headers: &HeaderMap) -> Result<Secret, Refusal> {
        let is_text = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_graphic);
        let credentials = Self::find(headers, is_text)?;
        match credentials.scheme {
            Scheme::Bearer => Ok(credentials.token()),
            Scheme::Dpop => Err(Refusal::missing()),
        }
    }

    fn find(headers: &HeaderMap, is_token: impl Fn(&[u8]) -> bool) -> Result<Self, Refusal> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let header = values.next().ok_or_else(Refusal::missing)?;
        if values.next().is_some() {
            return Err(Refusal::malformed("duplicate header `Authorization`"));
        }
        let bytes = header.as_bytes();
        let mut words = bytes.splitn(2, |byte| *byte == b' ');
        let scheme = words.next().unwrap_or_default();
        let scheme = if scheme.eq_ignore_ascii_case(b"Bearer") {
            Scheme::Bearer
        } else if scheme.eq_ignore_ascii_case(b"DPoP") {
            Scheme::Dpop
        } else {
            return Err(Refusal::missing());
        };
        let rest = words.next().unwrap_or_default();
        let spaces =
            |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|it| **it == b' ').count();
        let begin = bytes.len() - rest.len() + spaces(&mut rest.iter());
        let token = begin..bytes.len() - spaces(&mut rest.iter().rev());
        if !bytes.get(token.clone()).is_some_and(is_token) {
            return Err(Refusal::malformed(
                "header `Authorization` has no valid access token after the scheme",
            ));
        }
        Ok(Self {
            token,
            header: header.clone(),
            scheme,
        })
    }

    /// Returns the token.
    #[must_use]
    pub fn token(&self) -> Secret {
        String::from_utf8_lossy(self.bytes()).into_owned().into()
    }

    /// The bytes of the token in the header.
    pub(crate) fn bytes(&self) -> &[u8] {
        let bytes = self.header.as_bytes();
        bytes.get(self.token.clone()).unwrap_or_default()
    }
}

/// Leaves out the token.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

/// Whether a text is a `b64token` of [RFC 6750](https://www.rfc-editor.org/rfc/rfc6750#section-2.1), which is also `token68`.
fn is_token(text: &[u8]) -> bool {
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let (body, _) = text.split_at(text.len() - padding);
    // No branch for each byte: a token has hundreds of bytes and comes with each request.
    !body.is_empty() && body.iter().fold(true, |all, byte| all & is_of_token(*byte))
}

fn is_of_token(byte: u8) -> bool {
    let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    // `-`, `.`, `/` and the digits are adjacent in ASCII.
    let is_digit = byte.wrapping_sub(b'-') < 13;
    is_letter | is_digit | (byte == b'+') | (byte == b'_') | (byte == b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_classified_as_token_or_not() {
        let all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/";
        for byte in 0..=u8::MAX {
            assert_eq!(is_of_token(byte), all.as_bytes().contains(&byte), "{byte}");
        }
    }
}

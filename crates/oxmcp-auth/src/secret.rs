//! Secrets that `Debug` does not show, and random ones.

use std::fmt;

use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::{
    error::{AuthError, AuthErrorKind, Result},
    jose::base64url,
};

/// A token, code, key or password. `Debug` hides it, the comparison of two secrets of the same length takes constant time,
/// and its memory is wiped when it is dropped.
///
/// ```
/// let secret = oxmcp_auth::Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "Secret(…)");
/// assert_eq!(secret.expose(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text as a secret.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text. Send it only to the party that it is meant for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        a.len() == b.len() && a.iter().zip(b).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0
    }
}

impl Eq for Secret {}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// 256 random bits as 43 characters that are unreserved in URLs: a code verifier, a `state`, a `jti`.
pub(crate) fn unguessable() -> Result<Secret> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        AuthError::new(
            AuthErrorKind::Configuration,
            "could not get random bytes from the operating system",
        )
    })?;
    Ok(Secret::new(base64url::encode(bytes)))
}

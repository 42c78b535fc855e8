//! Randomness from the operating system, for values that nobody may guess.

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{
    error::{AuthError, AuthErrorKind, Result},
    jose::base64url,
    secret::Secret,
};

/// 256 random bits as 43 characters that are unreserved in URLs: a code verifier, a `state`, a `jti`.
pub(crate) fn unguessable() -> Result<Secret> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| {
        AuthError::new(
            AuthErrorKind::Configuration,
            "the operating system gives no randomness",
        )
    })?;
    Ok(Secret::new(base64url::encode(bytes)))
}

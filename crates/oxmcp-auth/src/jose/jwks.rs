//! Key sets of issuers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{jwk::Jwk, jws::Jws};
use crate::{
    error::{AuthError, Result},
    metadata::document::without_mark,
};

/// The most bytes of a key set. Those of the largest issuers have about 20 KiB, with certificates.
const MAX_BYTES: usize = 256 * 1024;

/// The most keys in a set.
const MAX_KEYS: usize = 100;

/// The most keys that are tried for a token that names none: each check takes up to half a millisecond.
const MAX_TRIED: usize = 8;

/// The keys of an issuer ([RFC 7517](https://www.rfc-editor.org/rfc/rfc7517#section-5)).
///
/// ```
/// use oxmcp_auth::jose::{Algorithm, Jwks, Jws, SigningKey};
///
/// let key = SigningKey::generate(Algorithm::EdDsa)?.with_key_id("2026");
/// let published = serde_json::json!({"keys": [key.public_jwk()]}).to_string();
///
/// let keys = Jwks::parse(published.as_bytes())?;
/// let token = key.sign("JWT", &serde_json::json!({"sub": "ann"}))?;
/// assert!(keys.verify(&Jws::parse(&token)?).is_ok());
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jwks {
    keys: Vec<Jwk>,
}

/// The reason why no key of a set has signed a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The set has no key with the `kid` and algorithm of the token. The issuer may have published a new one since.
    Unknown,
    /// The signature is not from the key that the token names.
    Signature,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl Jwks {
    /// Parses a key set. Keys of other types and for other uses are skipped, as the standard requires, and so are invalid keys:
    /// one invalid key must not make the others unusable.
    ///
    /// # Errors
    ///
    /// If it is not JSON, has no `keys`, or has more than 256 KiB or 100 keys.
    pub fn parse(json: &[u8]) -> Result<Self> {
        if json.len() > MAX_BYTES {
            return Err(AuthError::limit(format!(
                "key set is larger than {} KiB",
                MAX_BYTES / 1024
            )));
        }
        let wire: Wire<'_> = serde_json::from_slice(without_mark(json))
            .map_err(|error| AuthError::malformed(format!("invalid JSON Web Key Set: {error}")))?;
        if wire.keys.len() > MAX_KEYS {
            return Err(AuthError::limit(format!(
                "key set has more than {MAX_KEYS} keys"
            )));
        }
        let keys = wire
            .keys
            .iter()
            .filter_map(|key| Jwk::from_json(key.get()).ok());
        Ok(Self {
            keys: keys.collect(),
        })
    }

    /// Returns the keys for signatures.
    #[must_use]
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Finds the key that signed the token.
    ///
    /// # Errors
    ///
    /// [`KeyError::Unknown`] if the set has no key for the token: fetch the set again, unless that was done just now.
    /// [`KeyError::Signature`] if the set has the key that the token names, but the signature is not from it.
    pub fn verify(&self, token: &Jws) -> Result<&Jwk, KeyError> {
        let named = self.keys.iter().filter(|key| {
            let is_named = token.key_id().is_none() || key.key_id() == token.key_id();
            is_named && key.takes(token.algorithm())
        });
        let mut error = KeyError::Unknown;
        for key in named.take(MAX_TRIED) {
            if token.is_signed_by(key) {
                return Ok(key);
            }
            // If the token names no key, the right one can be a new one.
            if token.key_id().is_some() {
                error = KeyError::Signature;
            }
        }
        Err(error)
    }
}

impl From<Vec<Jwk>> for Jwks {
    fn from(keys: Vec<Jwk>) -> Self {
        Self { keys }
    }
}

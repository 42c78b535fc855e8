//! Key sets of issuers.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{jwk::Jwk, jws::Jws};
use crate::error::{AuthError, Result};

/// Bytes of a key set. Those of the largest issuers have some 20 KiB, with certificates.
const MAX_BYTES: usize = 256 * 1024;

/// Keys in a set.
const MAX_KEYS: usize = 100;

/// Signatures that are checked for a token that does not say which key is its own: each costs up to half a millisecond.
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

/// Why no key of a set has signed a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The set has no key of that name and kind. The issuer may have made a new one since.
    Unknown,
    /// The key that the token names has not signed it.
    Signature,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl Jwks {
    /// Reads a key set. Keys of other kinds and for other uses are passed over, as the standard has it, and so are keys that
    /// are wrong in themselves: one bad key must not take the good ones with it.
    ///
    /// # Errors
    ///
    /// Where it is not JSON, has no `keys`, or has more than 256 KiB or 100 keys.
    pub fn parse(json: &[u8]) -> Result<Self> {
        if json.len() > MAX_BYTES {
            return Err(AuthError::limit(format!(
                "the key set has more than {} KiB",
                MAX_BYTES / 1024
            )));
        }
        let wire: Wire<'_> = serde_json::from_slice(json).map_err(|error| {
            AuthError::malformed(format!("this is no JSON Web Key Set: {error}"))
        })?;
        if wire.keys.len() > MAX_KEYS {
            return Err(AuthError::limit(format!(
                "the key set has more than {MAX_KEYS} keys"
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

    /// The keys for signatures.
    #[must_use]
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Finds the key that has signed the token.
    ///
    /// # Errors
    ///
    /// [`KeyError::Unknown`], where the set has no key that the token could mean: fetch the set again, if that has not just
    /// been done. [`KeyError::Signature`], where it has one, and the signature is not its own.
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
            // Without a name the right key can be a new one.
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

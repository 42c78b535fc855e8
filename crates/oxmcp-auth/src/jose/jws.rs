//! Parser of signed tokens in compact form.

use std::fmt;

use serde::Deserialize;

use super::{
    algorithm::Algorithm,
    base64url,
    jwk::{self, Jwk},
};
use crate::error::{AuthError, Result};

/// The most bytes of a token. Servers refuse request heads beyond about 16 KiB in any case.
const MAX_BYTES: usize = 16 * 1024;

/// A signed token in compact form ([RFC 7515](https://www.rfc-editor.org/rfc/rfc7515)), parsed but not verified: do not trust
/// its contents before you have found the key that signed it.
///
/// Keys that a header contains or links to (`jwk`, `jku`, `x5c`, `x5u`) are never used, except `jwk` in the proofs of
/// [`dpop`](crate::dpop), which are based on it.
pub struct Jws {
    algorithm: Algorithm,
    key_id: Option<String>,
    typ: Option<String>,
    pub(crate) embedded_key: Option<Jwk>,
    signed: String,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// The members of a header that are read. A duplicate is a parse error.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<serde::de::IgnoredAny>,
    jwk: Option<jwk::Wire>,
}

impl Jws {
    /// Parses a token.
    ///
    /// # Errors
    ///
    /// If it is not three parts of base64url with a JSON header, is larger than 16 KiB, names an algorithm that is not
    /// supported (`none` and the symmetric ones among them), or has critical extensions (`crit`).
    pub fn parse(token: &str) -> Result<Self> {
        let malformed = || AuthError::invalid_token("token is not a signed JSON Web Token");
        if token.len() > MAX_BYTES {
            return Err(AuthError::invalid_token(format!(
                "token is larger than {} KiB",
                MAX_BYTES / 1024
            )));
        }
        let (signed, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
        let (header, payload) = signed.split_once('.').ok_or_else(malformed)?;
        let decode = |part| base64url::decode(part).ok_or_else(malformed);
        let header = decode(header)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| malformed())?;
        if header.crit.is_some() {
            return Err(AuthError::invalid_token(
                "token has critical extensions (`crit`), which are not supported",
            ));
        }
        let algorithm = Algorithm::parse(&header.alg).ok_or_else(|| {
            AuthError::invalid_token(format!(
                "unsupported signature algorithm of the token; use one of {}",
                Algorithm::names()
            ))
        })?;
        Ok(Self {
            algorithm,
            key_id: header.kid,
            typ: header.typ,
            // A key that cannot be parsed counts as absent, which is an error if a key is needed.
            embedded_key: header.jwk.and_then(|wire| Jwk::from_wire(wire).ok()),
            signed: signed.to_owned(),
            payload: decode(payload)?,
            signature: decode(signature)?,
        })
    }

    /// Returns the algorithm that the token names.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the `kid` of the key that the token names.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Returns the `typ` of the token, without the optional prefix `application/`. It is case-insensitive.
    #[must_use]
    pub fn typ(&self) -> Option<&str> {
        let typ = self.typ.as_deref()?;
        let prefix = typ.get(.."application/".len());
        let has_prefix = prefix.is_some_and(|it| it.eq_ignore_ascii_case("application/"));
        if has_prefix {
            typ.get("application/".len()..)
        } else {
            Some(typ)
        }
    }

    /// Returns the signed payload, usually claims.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns whether the signature is from this key.
    #[must_use]
    pub fn is_signed_by(&self, key: &Jwk) -> bool {
        key.has_signed(self.algorithm, self.signed.as_bytes(), &self.signature)
    }
}

/// Leaves out the token itself, since every reader of it could use it.
impl fmt::Debug for Jws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jws")
            .field("algorithm", &self.algorithm)
            .field("key_id", &self.key_id)
            .field("typ", &self.typ)
            .finish_non_exhaustive()
    }
}

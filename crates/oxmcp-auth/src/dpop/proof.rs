//! DPoP proofs that clients make.

use std::fmt;

use http::Method;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::{
    error::{AuthError, Result},
    jose::{Algorithm, SigningKey, base64url},
    secret::{Secret, unguessable},
    time::UnixTime,
};

/// The `typ` of proofs.
pub(crate) const PROOF_TYPE: &str = "dpop+jwt";

/// The key with which a client makes proofs. Tokens that were requested with it are bound to it, and useless without it.
///
/// ```
/// use http::Method;
/// use oxmcp_auth::{UnixTime, dpop::{Proof, ProofKey}};
///
/// let key = ProofKey::generate()?;
/// let now = UnixTime::from_seconds(1_800_000_000);
/// let proof = key.proof(&Proof::new(&Method::POST, "https://as.example/token", now))?;
/// assert_eq!(proof.split('.').count(), 3);
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
pub struct ProofKey {
    key: SigningKey,
    /// The key in the form in which it is stored: PKCS #8, in base64url. `None` if the program stores it by itself.
    stored: Option<Secret>,
}

/// The request for which a proof is made. Each request needs its own proof, and so does each retry and each hop.
#[derive(Clone, Copy)]
pub struct Proof<'a> {
    method: &'a Method,
    url: &'a str,
    now: UnixTime,
    access_token: Option<&'a Secret>,
    nonce: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

impl<'a> Proof<'a> {
    /// Describes a proof for a request to this URL, made at the time `now`.
    #[must_use]
    pub fn new(method: &'a Method, url: &'a str, now: UnixTime) -> Self {
        Self {
            method,
            url,
            now,
            access_token: None,
            nonce: None,
        }
    }

    /// Sets the access token that the request carries. Token requests carry none.
    #[must_use]
    pub fn access_token(self, token: &'a Secret) -> Self {
        Self {
            access_token: Some(token),
            ..self
        }
    }

    /// Sets the newest nonce that the server of the request sent in `DPoP-Nonce`. The authorization server and the MCP server
    /// have their own nonces.
    #[must_use]
    pub fn nonce(self, nonce: &'a str) -> Self {
        Self {
            nonce: Some(nonce),
            ..self
        }
    }
}

impl ProofKey {
    /// Generates a key for ES256, which every server that accepts proofs supports.
    ///
    /// # Errors
    ///
    /// If the operating system provides no randomness.
    pub fn generate() -> Result<Self> {
        let document = SigningKey::generate_pkcs8(Algorithm::Es256)?;
        Self::from_stored(&Secret::new(base64url::encode(document)))
    }

    /// Makes proofs with an existing key. The key is not stored with [credentials](crate::client::Credentials): the program must
    /// provide it again.
    #[must_use]
    pub fn new(key: SigningKey) -> Self {
        Self { key, stored: None }
    }

    /// Restores the key from the result of [`to_stored`](Self::to_stored).
    pub(crate) fn from_stored(stored: &Secret) -> Result<Self> {
        let unreadable =
            || AuthError::malformed("could not read the stored DPoP key; log in again");
        let der = base64url::decode(stored.expose()).ok_or_else(unreadable)?;
        Ok(Self {
            key: SigningKey::from_pkcs8_der(&Zeroizing::new(der)).map_err(|_| unreadable())?,
            stored: Some(stored.clone()),
        })
    }

    /// The key as text, to be stored with the tokens that are bound to it; `None` if the program stores it by itself.
    pub(crate) fn to_stored(&self) -> Option<&Secret> {
        self.stored.as_ref()
    }

    /// Returns the algorithm of the key's signatures, which must be in the server's `dpop_signing_alg_values_supported`.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.key.algorithm()
    }

    /// Returns the thumbprint by which tokens are bound to the key (`cnf.jkt`, and `dpop_jkt` in authorization requests).
    #[must_use]
    pub fn thumbprint(&self) -> String {
        self.key.public_jwk().thumbprint()
    }

    /// Makes a proof, the value of the header `DPoP`. It names the URL without query and fragment.
    ///
    /// # Errors
    ///
    /// If the operating system provides no randomness.
    pub fn proof(&self, proof: &Proof<'_>) -> Result<String> {
        let id = unguessable()?;
        let url = proof.url.split(['?', '#']).next().unwrap_or(proof.url);
        let claims = Claims {
            jti: id.expose(),
            htm: proof.method.as_str(),
            htu: url,
            iat: proof.now.seconds(),
            ath: proof.access_token.map(|token| token_hash(token.expose())),
            nonce: proof.nonce,
        };
        self.key.sign_with_key(PROOF_TYPE, &claims)
    }
}

/// The hash by which a proof names an access token.
pub(crate) fn token_hash(token: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    base64url::encode(hash)
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// Leaves out the token.
impl fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

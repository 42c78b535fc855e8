//! Proofs, as clients make them.

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
pub(super) const PROOF_TYPE: &str = "dpop+jwt";

/// A key that a client makes proofs with. Tokens that were asked for with it are bound to it, and useless to whoever has
/// only the token.
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
    /// The key as it can be kept: PKCS #8, in base64url.
    stored: Option<Secret>,
}

/// A request that a proof is made for. Each request needs a proof of its own, each repetition and each hop as well.
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
    /// A proof for a request to that URL at that time.
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

    /// The access token that the request bears. Requests for tokens bear none.
    #[must_use]
    pub fn access_token(self, token: &'a Secret) -> Self {
        Self {
            access_token: Some(token),
            ..self
        }
    }

    /// The newest nonce that this server (the authorization server and the MCP server have each their own) gave in
    /// `DPoP-Nonce`.
    #[must_use]
    pub fn nonce(self, nonce: &'a str) -> Self {
        Self {
            nonce: Some(nonce),
            ..self
        }
    }
}

impl ProofKey {
    /// Makes a new key, for ES256, which every server that takes proofs knows.
    ///
    /// # Errors
    ///
    /// Where the operating system gives no randomness.
    pub fn generate() -> Result<Self> {
        let document = SigningKey::generate_pkcs8(Algorithm::Es256)?;
        Self::from_stored(&Secret::new(base64url::encode(document)))
    }

    /// Makes proofs with a key that there is already. It is not kept with [credentials](crate::client::Credentials): whoever
    /// brought it brings it again.
    #[must_use]
    pub fn new(key: SigningKey) -> Self {
        Self { key, stored: None }
    }

    /// The key that [`to_stored`](Self::to_stored) gave.
    pub(crate) fn from_stored(stored: &Secret) -> Result<Self> {
        let unreadable = || AuthError::malformed("the key of proofs cannot be read: log in again");
        let der = base64url::decode(stored.expose()).ok_or_else(unreadable)?;
        Ok(Self {
            key: SigningKey::from_pkcs8_der(&Zeroizing::new(der)).map_err(|_| unreadable())?,
            stored: Some(stored.clone()),
        })
    }

    /// The key as text to be kept with the tokens that are bound to it; none where somebody else keeps it.
    pub(crate) fn to_stored(&self) -> Option<&Secret> {
        self.stored.as_ref()
    }

    /// The algorithm of its signatures, which the server must have among its `dpop_signing_alg_values_supported`.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.key.algorithm()
    }

    /// The thumbprint that tokens are bound by (`cnf.jkt`, and `dpop_jkt` in authorization requests).
    #[must_use]
    pub fn thumbprint(&self) -> String {
        self.key.public_jwk().thumbprint()
    }

    /// Makes a proof, the value of the header `DPoP`. It says the URL without query and fragment.
    ///
    /// # Errors
    ///
    /// Where the operating system gives no randomness.
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

/// The hash that a proof names an access token by.
pub(super) fn token_hash(token: &str) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    base64url::encode(hash)
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

/// The token is left out.
impl fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

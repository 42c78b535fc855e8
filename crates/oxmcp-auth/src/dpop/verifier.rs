//! Verification of DPoP proofs by servers.

use std::fmt;

use http::{HeaderMap, Method};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use url::Url;

use super::{
    nonce::NonceKeys,
    proof::{PROOF_TYPE, token_hash},
};
use crate::{
    error::{AuthError, Result},
    jose::{Algorithm, Jws},
    secret::Secret,
    time::UnixTime,
};

/// The algorithms of proofs that are accepted. RSA is not among them: an attacker's key of 8192 bits would cost too much CPU time.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Es384];

/// The most seconds that a proof may be old, or from the future.
const MAX_AGE: u64 = 300;

/// The most characters of an id. The ids of this crate have 43.
const MAX_ID: usize = 256;

/// A verifier of proofs ([RFC 9449, section 4.3](https://www.rfc-editor.org/rfc/rfc9449#section-4.3)).
#[derive(Clone, Debug, Default)]
pub struct ProofVerifier {
    nonces: Option<NonceKeys>,
}

/// A request that carries a token and needs a proof.
#[derive(Clone, Copy)]
pub struct ProvenRequest<'a> {
    method: &'a Method,
    url: &'a str,
    headers: &'a HeaderMap,
    access_token: &'a Secret,
}

impl<'a> ProvenRequest<'a> {
    /// Describes a request with this method and these headers. `url` is the URL to which the client sent it, according to this
    /// server's own configuration.
    #[must_use]
    pub fn new(
        method: &'a Method,
        url: &'a str,
        headers: &'a HeaderMap,
        access_token: &'a Secret,
    ) -> Self {
        Self {
            method,
            url,
            headers,
            access_token,
        }
    }
}

/// Leaves out the headers, which hold the token.
impl fmt::Debug for ProvenRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvenRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The result of the check of a valid proof.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proven {
    /// The thumbprint of the key that made the proof. The token must be bound to this key.
    pub thumbprint: String,
    /// A hash of the proof's id together with its key, for a [`ReplayCache`](super::ReplayCache).
    pub id: [u8; 32],
    /// The time at which the proof expires.
    pub until: UnixTime,
}

/// The reason why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProofError {
    /// The proof is not valid.
    Invalid(AuthError),
    /// The proof has no nonce of this server, or an old one. The client must retry with this nonce in a new proof.
    Nonce(String),
}

#[derive(Deserialize)]
struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: Option<String>,
    nonce: Option<String>,
}

impl ProofVerifier {
    /// Creates a verifier that does not require nonces.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires a nonce of these keys in each proof.
    #[must_use]
    pub fn require_nonces(self, keys: NonceKeys) -> Self {
        Self { nonces: Some(keys) }
    }

    /// Returns the keys of the nonces, if nonces are required.
    #[must_use]
    pub fn nonce_keys(&self) -> Option<&NonceKeys> {
        self.nonces.as_ref()
    }

    /// Returns the names of the accepted algorithms, for challenges and metadata.
    #[must_use]
    pub fn algorithms() -> [&'static str; 3] {
        ALGORITHMS.map(Algorithm::as_str)
    }

    /// Makes a nonce for the header `DPoP-Nonce` of a response, if nonces are required.
    #[must_use]
    pub fn nonce(&self, now: UnixTime) -> Option<String> {
        self.nonces.as_ref().map(|keys| keys.make(now))
    }

    /// Checks the proof of a request.
    ///
    /// The caller must check, with the result, that the token is bound to the key of the proof, and that the proof was not
    /// seen before.
    ///
    /// # Errors
    ///
    /// If there is not exactly one proof, or it is not valid for this request.
    pub fn verify(&self, request: &ProvenRequest<'_>, now: UnixTime) -> Result<Proven, ProofError> {
        let proof = single_proof(request.headers)?;
        let invalid = |sentence: &str| Err(ProofError::Invalid(AuthError::invalid_token(sentence)));
        let jws = Jws::parse(proof).map_err(|error| {
            ProofError::Invalid(AuthError::invalid_token(format!(
                "invalid DPoP proof: {error}"
            )))
        })?;
        if jws.typ() != Some(PROOF_TYPE) {
            return invalid("invalid DPoP proof: `typ` must be `dpop+jwt`");
        }
        if !ALGORITHMS.contains(&jws.algorithm()) {
            return invalid("invalid DPoP proof: sign it with ES256, EdDSA or ES384");
        }
        let Some(key) = &jws.embedded_key else {
            return invalid(
                "invalid DPoP proof: `jwk` must be a public key, without private parts",
            );
        };
        if !jws.is_signed_by(key) {
            return invalid("invalid DPoP proof: signature does not match `jwk`");
        }
        let Ok(claims) = serde_json::from_slice::<Claims>(jws.payload()) else {
            return invalid("invalid DPoP proof: `jti`, `htm`, `htu` and `iat` are required");
        };
        if claims.htm != request.method.as_str() {
            return invalid("invalid DPoP proof: `htm` is not the method of the request");
        }
        if !is_same_url(&claims.htu, request.url) {
            return invalid("invalid DPoP proof: `htu` is not the URL of the request");
        }
        if claims.ath.as_deref() != Some(&token_hash(request.access_token.expose())) {
            return invalid("invalid DPoP proof: `ath` does not match the access token");
        }
        if claims.jti.is_empty() || claims.jti.len() > MAX_ID {
            return invalid("invalid DPoP proof: `jti` must have 1 to 256 characters");
        }
        if let Some(keys) = &self.nonces {
            let nonce = claims.nonce.as_deref();
            if !nonce.is_some_and(|nonce| keys.is_current(nonce, now)) {
                return Err(ProofError::Nonce(keys.make(now)));
            }
        }
        let Some(made) = UnixTime::from_fractional_seconds(claims.iat).filter(|made| {
            now.seconds_since(*made) <= MAX_AGE && made.seconds_since(now) <= MAX_AGE
        }) else {
            return invalid(
                "invalid DPoP proof: `iat` is too old or in the future; make a new proof for each request",
            );
        };
        let thumbprint = key.thumbprint();
        let id = digest(&SHA256, format!("{thumbprint}{}", claims.jti).as_bytes());
        Ok(Proven {
            id: id.as_ref().try_into().unwrap_or_default(),
            until: made.plus(MAX_AGE),
            thumbprint,
        })
    }
}

fn single_proof(headers: &HeaderMap) -> Result<&str, ProofError> {
    let mut proofs = headers.get_all("dpop").iter();
    let proof = proofs.next().and_then(|value| value.to_str().ok());
    match (proof, proofs.next()) {
        (Some(proof), None) => Ok(proof),
        _ => Err(ProofError::Invalid(AuthError::invalid_token(
            "request needs exactly one `DPoP` header, with the DPoP proof",
        ))),
    }
}

/// Whether two URLs are the same except for query and fragment, upper and lower case of scheme and host, and the default port
/// of the scheme.
fn is_same_url(proof: &str, own: &str) -> bool {
    let parts = |url: &str| {
        let url = Url::parse(url).ok().filter(Url::has_host)?;
        let port = url.port_or_known_default();
        let host = url.host_str().map(str::to_owned);
        Some((url.scheme().to_owned(), host, port, url.path().to_owned()))
    };
    parts(own).is_some_and(|own| parts(proof) == Some(own))
}

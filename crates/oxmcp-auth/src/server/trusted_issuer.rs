//! Issuers whose tokens are verified by their keys.

use std::sync::Arc;

use super::{key_cache::KeySource, verified_token::VerifiedToken};
use crate::{
    error::{AuthError, Result},
    jose::{Algorithm, Jwks, Jws},
    jwt::{Claims, Expected},
    time::UnixTime,
};

/// An authorization server whose access tokens are JSON Web Tokens, verified by its public keys
/// ([RFC 9068](https://www.rfc-editor.org/rfc/rfc9068#section-4)).
///
/// ```
/// use oxmcp_auth::server::TrustedIssuer;
///
/// // Its metadata say where its keys are.
/// let issuer = TrustedIssuer::new("https://auth.example.com");
/// // It has no metadata.
/// let issuer = TrustedIssuer::new("https://old.example.com").keys_at("https://old.example.com/keys");
/// ```
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    pub(super) issuer: String,
    pub(super) source: KeySource,
    pub(super) audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    access_tokens_only: bool,
}

impl TrustedIssuer {
    /// The issuer as it stands in the `iss` of its tokens, letter by letter. Its keys are where its metadata say.
    #[must_use]
    pub fn new(issuer: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            source: KeySource::Discovery,
            audiences: Vec::new(),
            algorithms: Algorithm::ALL.to_vec(),
            access_tokens_only: false,
        }
    }

    /// Its keys are at that URL, which may lead anywhere. One that the issuer's metadata name must not lead into a network that
    /// is not the issuer's.
    #[must_use]
    pub fn keys_at(mut self, jwks_uri: impl Into<String>) -> Self {
        self.source = KeySource::Url(jwks_uri.into());
        self
    }

    /// Its keys are these, and do not change.
    #[must_use]
    pub fn keys(mut self, keys: Jwks) -> Self {
        self.source = KeySource::Fixed(Arc::new(keys));
        self
    }

    /// Takes its tokens for this audience as well, beside those for the URL of the server: some issuers name a resource as they
    /// like. Tokens of other issuers are not taken for it.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Takes tokens signed by these algorithms alone, instead of by all that are supported.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Takes tokens alone that say that they are access tokens (`typ` is `at+jwt`), as RFC 9068 has it. Many issuers write
    /// `JWT`, or nothing, and are taken as well without this: what makes a token one for this server is its audience.
    #[must_use]
    pub fn access_tokens_only(mut self) -> Self {
        self.access_tokens_only = true;
        self
    }

    /// Checks all that needs no key.
    pub(super) fn check(
        &self,
        token: &Jws,
        claims: &Claims,
        expected: &Expected<'_>,
    ) -> Result<()> {
        let typ = token.typ().unwrap_or("JWT");
        let is_access_token = typ.eq_ignore_ascii_case("at+jwt");
        let is_any_token = typ.eq_ignore_ascii_case("JWT") && !self.access_tokens_only;
        if !is_access_token && !is_any_token {
            return Err(AuthError::invalid_token(
                "the token is not an access token, by its typ",
            ));
        }
        if !self.algorithms.contains(&token.algorithm()) {
            return Err(AuthError::invalid_token(
                "the token is signed by an algorithm that is not taken from its issuer",
            ));
        }
        expected.check(claims.known())
    }

    /// What a token says whose signature was checked, and until when it is valid.
    pub(super) fn accept(&self, claims: Claims, clock_skew: u64) -> (VerifiedToken, UnixTime) {
        let expires = claims.known().exp.unwrap_or_default();
        let token = VerifiedToken::from_claims(&self.issuer, claims);
        (token, expires.plus(clock_skew))
    }
}

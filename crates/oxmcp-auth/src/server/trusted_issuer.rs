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
/// // The URL of its keys is in its metadata.
/// let issuer = TrustedIssuer::new("https://auth.example.com");
/// // It has no metadata.
/// let issuer = TrustedIssuer::new("https://old.example.com").keys_at("https://old.example.com/keys");
/// ```
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    pub(crate) issuer: String,
    pub(crate) source: KeySource,
    pub(crate) audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    access_tokens_only: bool,
}

impl TrustedIssuer {
    /// Creates an issuer whose keys are at the URL that its metadata names.
    ///
    /// `iss` of its tokens must equal the issuer in the metadata; the name given here may differ in the slash after the host.
    /// With [`keys`](Self::keys) or [`keys_at`](Self::keys_at), no metadata is read, and `iss` must equal the name given here.
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

    /// Sets the URL of the issuer's keys, which may be on any network. A URL from the issuer's metadata, in contrast, must not
    /// lead into an internal network.
    #[must_use]
    pub fn keys_at(mut self, jwks_uri: impl Into<String>) -> Self {
        self.source = KeySource::Url(jwks_uri.into());
        self
    }

    /// Sets the issuer's keys, which do not change.
    #[must_use]
    pub fn keys(mut self, keys: Jwks) -> Self {
        self.source = KeySource::Fixed(Arc::new(keys));
        self
    }

    /// Also accepts the issuer's tokens for this audience, in addition to those for the URL of the server: some issuers use
    /// their own names for a resource. Tokens of other issuers are not accepted for it.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts only tokens that are signed with one of these algorithms. Default: all that are supported.
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Accepts only tokens that are marked as access tokens (`typ` is `at+jwt`), as RFC 9068 requires.
    ///
    /// Many issuers write `JWT` or no `typ`. Without this setting their tokens are accepted, too: the audience decides whether a
    /// token is for this server.
    #[must_use]
    pub fn access_tokens_only(mut self) -> Self {
        self.access_tokens_only = true;
        self
    }

    /// Checks everything that needs no key.
    pub(crate) fn check(
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
                "token is not an access token: unexpected `typ`",
            ));
        }
        if !self.algorithms.contains(&token.algorithm()) {
            return Err(AuthError::invalid_token(
                "token is signed with an algorithm that is not accepted from its issuer",
            ));
        }
        expected.check(claims.known())
    }

    /// The token with these claims, whose signature was checked, and the time until which it is valid.
    pub(crate) fn accept(&self, claims: Claims, clock_skew: u64) -> (VerifiedToken, UnixTime) {
        let expires = claims.known().exp.unwrap_or_default();
        let token = VerifiedToken::from_claims(&self.issuer, claims);
        (token, expires.plus(clock_skew))
    }
}

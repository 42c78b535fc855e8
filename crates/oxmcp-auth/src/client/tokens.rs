//! Issued tokens, and the headers with which they are sent.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header::AUTHORIZATION};
use serde::{Deserialize, Deserializer, Serialize};

use super::oauth_error::shown;
use crate::{
    dpop::{Proof, ProofKey},
    error::{AuthError, Result},
    metadata::document::{self, Tolerated},
    scope::ScopeSet,
    secret::Secret,
    time::UnixTime,
};

/// The most bytes of a token.
const MAX_TOKEN: usize = 64 * 1024;

/// The type of a token, which decides how it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum TokenType {
    /// A bearer token, which any holder can use ([RFC 6750](https://www.rfc-editor.org/rfc/rfc6750)).
    Bearer,
    /// A token that is bound to a key, and sent with a proof of possession
    /// ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449)).
    DPoP,
}

/// Tokens that an authorization server issued.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tokens {
    /// The access token, which is sent only to the MCP server.
    pub access_token: Secret,
    /// The type of the access token.
    pub token_type: TokenType,
    /// The time at which the access token expires, if the server sent a lifetime, which is counted from the request.
    pub expires_at: Option<UnixTime>,
    /// The refresh token, if the server issued one.
    pub refresh_token: Option<Secret>,
    /// The scopes that were granted: those that were requested, if the server does not name any.
    pub scopes: ScopeSet,
}

/// The response of a token endpoint ([RFC 6749, section 5.1](https://www.rfc-editor.org/rfc/rfc6749#section-5.1)).
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) access_token: String,
    pub(crate) token_type: String,
    #[serde(default, deserialize_with = "seconds")]
    pub(crate) expires_in: Option<u64>,
    #[serde(default)]
    pub(crate) refresh_token: Option<String>,
    #[serde(default)]
    pub(crate) scope: Option<String>,
    #[serde(default)]
    pub(crate) issued_token_type: Option<String>,
}

impl TokenAnswer {
    pub(crate) fn read(
        body: &[u8],
        endpoint: &str,
        tolerated: &mut Vec<Tolerated>,
    ) -> Result<Self> {
        let what = format!("token response from {endpoint:?}");
        let mut answer: Self = document::read(body, &what, tolerated)?;
        answer.refresh_token = answer.refresh_token.filter(|it| !it.is_empty());
        let tokens = [Some(&answer.access_token), answer.refresh_token.as_ref()];
        if tokens.into_iter().flatten().any(|it| !is_token(it)) {
            return Err(AuthError::malformed(format!(
                "invalid token from {endpoint:?}: empty, longer than {MAX_TOKEN} bytes, or not visible ASCII"
            )));
        }
        Ok(answer)
    }
}

impl Tokens {
    pub(crate) fn of(
        answer: TokenAnswer,
        requested: &ScopeSet,
        asked_at: UnixTime,
        is_bound: bool,
    ) -> Result<Self> {
        let token_type = if answer.token_type.eq_ignore_ascii_case("bearer") {
            TokenType::Bearer
        } else if answer.token_type.eq_ignore_ascii_case("dpop") {
            TokenType::DPoP
        } else {
            return Err(AuthError::unsupported(format!(
                "unsupported token type {:?}; expected `Bearer` or `DPoP`",
                shown(&answer.token_type)
            )));
        };
        if is_bound != (token_type == TokenType::DPoP) {
            return Err(AuthError::unsupported(if is_bound {
                "authorization server issued a bearer token, but a DPoP-bound token was requested"
            } else {
                "authorization server issued a DPoP-bound token, but a bearer token was requested"
            }));
        }
        Ok(Self {
            access_token: answer.access_token.into(),
            token_type,
            expires_at: answer.expires_in.map(|seconds| asked_at.plus(seconds)),
            refresh_token: answer.refresh_token.map(Secret::new),
            scopes: answer
                .scope
                .map_or_else(|| requested.clone(), |it| ScopeSet::parse(&it)),
        })
    }

    /// Returns whether the access token expires within this many seconds.
    #[must_use]
    pub fn expires_within(&self, seconds: u64, now: UnixTime) -> bool {
        self.expires_at.is_some_and(|at| at <= now.plus(seconds))
    }

    /// Returns the tokens after a refresh. Without a new refresh token, the old one stays.
    #[must_use]
    pub fn refreshed(&self, mut new: Self) -> Self {
        new.refresh_token = new.refresh_token.or_else(|| self.refresh_token.clone());
        new
    }

    /// Returns the headers of a request to the MCP server: `Authorization`, and for a bound token `DPoP`, with a proof for this
    /// one request. `possession` is the key, and the nonce that the server sent last.
    ///
    /// # Errors
    ///
    /// If the token is bound and there is no key.
    pub fn headers(
        &self,
        method: &Method,
        url: &str,
        possession: Option<(&ProofKey, Option<&str>)>,
        now: UnixTime,
    ) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let scheme = match self.token_type {
            TokenType::Bearer => "Bearer",
            TokenType::DPoP => "DPoP",
        };
        let value = Secret::new(format!("{scheme} {}", self.access_token.expose()));
        headers.insert(AUTHORIZATION, sensitive(value.expose())?);
        if self.token_type == TokenType::DPoP {
            let (key, nonce) = possession.ok_or_else(|| {
                AuthError::configuration("token is bound to a key that is missing; log in again")
            })?;
            let proof = Proof::new(method, url, now).access_token(&self.access_token);
            let proof = nonce.into_iter().fold(proof, |proof, it| proof.nonce(it));
            let proof = sensitive(&key.proof(&proof)?)?;
            headers.insert(HeaderName::from_static("dpop"), proof);
        }
        Ok(headers)
    }
}

/// A header value that `Debug` does not show.
pub(crate) fn sensitive(value: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| AuthError::malformed("token is not valid in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn is_token(text: &str) -> bool {
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic())
}

/// A number of seconds, which some servers write as a string or with a fraction. Any other value counts as absent.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Ok(match serde_json::Value::deserialize(from)? {
        serde_json::Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().map(whole_seconds)),
        serde_json::Value::String(text) => {
            let text = text.trim();
            let seconds = text.parse().ok();
            seconds.or_else(|| {
                text.parse()
                    .ok()
                    .filter(|it: &f64| it.is_finite())
                    .map(whole_seconds)
            })
        }
        _ => None,
    })
}

/// Seconds without their fraction; 0 for negative ones.
fn whole_seconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, which is what is wanted"
    )]
    let whole = seconds as u64;
    whole
}

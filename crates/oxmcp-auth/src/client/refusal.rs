//! Refusals of an MCP server that concern authorization.

use http::{HeaderMap, StatusCode};

use crate::{challenge::Challenge, scope::ScopeSet};

/// The most bytes of a nonce.
const MAX_NONCE: usize = 1024;

/// A response by which an MCP server refused a request for lack of authorization.
///
/// ```
/// use oxmcp_auth::client::Refusal;
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("WWW-Authenticate", "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"".parse()?);
/// let refusal = Refusal::read(http::StatusCode::FORBIDDEN, &headers);
/// assert!(matches!(refusal, Some(Refusal::InsufficientScope { scopes, .. }) if scopes.contains("mcp:write")));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
///
/// See [Error Handling](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#error-handling).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// 401: the token is missing or invalid. The challenge is the one to which an OAuth client responds, if there is one.
    Unauthorized {
        /// The challenge.
        challenge: Option<Challenge>,
    },
    /// 401: the DPoP proof needs this nonce, and the request may be sent again with it.
    NonceRequired {
        /// The nonce.
        nonce: String,
        /// The challenge.
        challenge: Challenge,
    },
    /// 403: the token is valid, but lacks scopes.
    InsufficientScope {
        /// The scopes that the request needs.
        scopes: ScopeSet,
        /// The challenge.
        challenge: Challenge,
    },
}

impl Refusal {
    /// Reads the refusal in a response. Returns `None` if no token would change the response: for a 403 with another reason, or
    /// any other status.
    #[must_use]
    pub fn read(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let challenges = Challenge::from_headers(headers);
        if status == StatusCode::UNAUTHORIZED {
            let wants_nonce =
                |it: &&Challenge| it.is("DPoP") && it.error() == Some("use_dpop_nonce");
            if let Some(challenge) = challenges.iter().find(wants_nonce)
                && let Some(nonce) = nonce(headers)
            {
                return Some(Self::NonceRequired {
                    nonce,
                    challenge: challenge.clone(),
                });
            }
            let challenge = Challenge::for_oauth(&challenges, false).cloned();
            return Some(Self::Unauthorized { challenge });
        }
        if status == StatusCode::FORBIDDEN {
            let lacks = |it: &Challenge| it.error() == Some("insufficient_scope");
            let challenge = challenges.into_iter().find(lacks)?;
            let scopes = challenge.scope().unwrap_or_default();
            return Some(Self::InsufficientScope { scopes, challenge });
        }
        None
    }

    /// Returns the challenge, if there is one to which an OAuth client responds.
    #[must_use]
    pub fn challenge(&self) -> Option<&Challenge> {
        match self {
            Self::Unauthorized { challenge } => challenge.as_ref(),
            Self::NonceRequired { challenge, .. } | Self::InsufficientScope { challenge, .. } => {
                Some(challenge)
            }
        }
    }
}

/// The nonce in a response, for the next proof.
pub(crate) fn nonce(headers: &HeaderMap) -> Option<String> {
    let nonce = headers.get("dpop-nonce")?.to_str().ok()?;
    let is_nonce = (1..=MAX_NONCE).contains(&nonce.len())
        && nonce
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    is_nonce.then(|| nonce.to_owned())
}

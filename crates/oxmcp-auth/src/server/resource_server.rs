//! Requirements of a protected server for access tokens, its metadata, and its responses to refused requests.

use std::fmt;

use http::{HeaderMap, HeaderValue, Method};

use super::{
    credentials::{Credentials, Scheme},
    refusal::{Reason, Refusal},
    scopes::ScopeHierarchy,
    verified_token::VerifiedToken,
};
use crate::{
    challenge::Challenge,
    dpop::{ProofError, ProofVerifier, ProvenRequest, ReplayCache},
    error::{AuthError, Result},
    exchange::Response,
    metadata::{
        protected_resource::ProtectedResourceMetadata, well_known::protected_resource_metadata_urls,
    },
    scope::ScopeSet,
    time::UnixTime,
    url_rules::UrlRules,
};

/// A protected MCP server, as its clients see it: its metadata, required scopes and challenges.
///
/// ```
/// use oxmcp_auth::{ScopeSet, server::{Refusal, ResourceServer}};
///
/// let server = ResourceServer::new("https://mcp.example.com/mcp", ["https://auth.example.com"])?
///     .scopes(ScopeSet::parse("mcp:read"));
/// let answer = server.answer(&Refusal::missing());
/// assert_eq!(answer.status(), 401);
/// assert_eq!(
///     answer.headers()["www-authenticate"],
///     "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\", scope=\"mcp:read\"",
/// );
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ResourceServer {
    metadata: ProtectedResourceMetadata,
    metadata_url: String,
    scopes: ScopeSet,
    hierarchy: ScopeHierarchy,
    dpop: Option<ProofVerifier>,
    dpop_only: bool,
}

/// A valid token, and the request that carries it.
#[derive(Clone, Copy)]
pub struct Presented<'a> {
    credentials: &'a Credentials,
    token: &'a VerifiedToken,
    method: &'a Method,
    headers: &'a HeaderMap,
}

impl<'a> Presented<'a> {
    /// Creates the pair of a valid token and the request that carries it, which has this method and these headers.
    #[must_use]
    pub fn new(
        credentials: &'a Credentials,
        token: &'a VerifiedToken,
        method: &'a Method,
        headers: &'a HeaderMap,
    ) -> Self {
        Self {
            credentials,
            token,
            method,
            headers,
        }
    }
}

/// Leaves out the headers, which hold the token.
impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented")
            .field("token", &self.token)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl ResourceServer {
    /// Creates a server at this URL that accepts tokens of these issuers. The URL must be the one that clients use, also behind
    /// proxies: it is never derived from the headers of a request.
    ///
    /// # Errors
    ///
    /// If the URL or an issuer is not https (or http on loopback) or has a fragment, or there is no issuer.
    pub fn new<S: Into<String>>(
        resource: impl Into<String>,
        authorization_servers: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        let resource = resource.into();
        let rules = UrlRules::https_or_loopback();
        rules
            .check(&resource, "URL of the protected server")
            .map_err(|error| AuthError::configuration(error.message()))?;
        let metadata = ProtectedResourceMetadata::new(&resource, authorization_servers);
        if metadata.authorization_servers.is_empty() {
            return Err(AuthError::configuration(
                "protected server has no issuer; name the authorization server that issues its tokens",
            ));
        }
        for issuer in &metadata.authorization_servers {
            rules.check(issuer, "issuer")?;
        }
        let metadata_url = protected_resource_metadata_urls(&resource)?
            .into_iter()
            .next()
            .unwrap_or_default();
        Ok(Self {
            metadata,
            metadata_url,
            scopes: ScopeSet::new(),
            hierarchy: ScopeHierarchy::new(),
            dpop: None,
            dpop_only: false,
        })
    }

    /// Sets the scopes that every request needs. The metadata and the challenges name them, so that clients request them.
    /// Leave out `offline_access`, since no operation needs it.
    #[must_use]
    pub fn scopes(mut self, scopes: ScopeSet) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the scopes that the metadata advertises, if operations need more scopes than every request does.
    #[must_use]
    pub fn scopes_supported(mut self, scopes: &ScopeSet) -> Self {
        let all = scopes.iter().map(str::to_owned).collect();
        self.metadata.scopes_supported = Some(all);
        self
    }

    /// Sets which scopes imply others.
    #[must_use]
    pub fn hierarchy(mut self, hierarchy: ScopeHierarchy) -> Self {
        self.hierarchy = hierarchy;
        self
    }

    /// Sets the name of the server in its metadata, for users.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata.resource_name = Some(name.into());
        self
    }

    /// Sets the URL of a page for developers in the metadata.
    #[must_use]
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.metadata.resource_documentation = Some(url.into());
        self
    }

    /// Accepts tokens that are bound to a key by [DPoP](crate::dpop), in addition to those that are not.
    #[must_use]
    pub fn dpop(mut self, proofs: ProofVerifier) -> Self {
        let algorithms = ProofVerifier::algorithms().map(str::to_owned).to_vec();
        self.metadata.dpop_signing_alg_values_supported = Some(algorithms);
        self.dpop = Some(proofs);
        self
    }

    /// Accepts only tokens that are bound to a key by [DPoP](crate::dpop).
    #[must_use]
    pub fn require_dpop(self, proofs: ProofVerifier) -> Self {
        let mut server = self.dpop(proofs);
        server.metadata.dpop_bound_access_tokens_required = Some(true);
        server.dpop_only = true;
        server
    }

    /// Returns the URL of the server.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.metadata.resource
    }

    /// Returns the URL of the server's metadata, which its challenges name.
    #[must_use]
    pub fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// Returns the metadata of the server ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728#section-2)).
    #[must_use]
    pub fn metadata(&self) -> ProtectedResourceMetadata {
        let mut metadata = self.metadata.clone();
        if metadata.scopes_supported.is_none() && !self.scopes.is_empty() {
            metadata.scopes_supported = Some(self.scopes.iter().map(str::to_owned).collect());
        }
        metadata
    }

    /// Checks that the sender of a valid token may use it. The token must be sent with the right scheme and, if it is bound to a
    /// key, with a proof by that key that was not seen before.
    ///
    /// # Errors
    ///
    /// If the sender may not use the token.
    pub fn check_possession(
        &self,
        presented: &Presented<'_>,
        seen: &ReplayCache,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        let Presented {
            credentials,
            token,
            method,
            headers,
        } = *presented;
        let invalid = |sentence: &str| Refusal::invalid(AuthError::invalid_token(sentence));
        let (bound_to, proofs) = match (&token.thumbprint, credentials.scheme, &self.dpop) {
            (None, Scheme::Bearer, _) if !self.dpop_only => return Ok(()),
            (None, _, _) if self.dpop_only => {
                return Err(invalid(
                    "token is not bound to a key; this server accepts only DPoP-bound tokens",
                ));
            }
            (None, _, _) => {
                return Err(invalid(
                    "token is not bound to a key; send it as `Authorization: Bearer <token>`",
                ));
            }
            (Some(_), _, None) => {
                return Err(invalid(
                    "token is bound to a key; this server does not support DPoP",
                ));
            }
            (Some(_), Scheme::Bearer, Some(_)) => {
                return Err(invalid(
                    "token is bound to a key; send it as `Authorization: DPoP <token>` with a proof",
                ));
            }
            (Some(thumbprint), Scheme::Dpop, Some(proofs)) => (thumbprint, proofs),
        };
        let token = credentials.token();
        let request = ProvenRequest::new(method, self.resource(), headers, &token);
        let proven = proofs.verify(&request, now).map_err(|error| match error {
            ProofError::Invalid(error) => Refusal(Reason::Proof(error)),
            ProofError::Nonce(nonce) => Refusal(Reason::Nonce(nonce)),
        })?;
        let refuse = |sentence: &str| Refusal(Reason::Proof(AuthError::invalid_token(sentence)));
        if proven.thumbprint != *bound_to {
            return Err(refuse("invalid DPoP proof: token is bound to another key"));
        }
        if !seen.insert(proven.id, proven.until, now) {
            return Err(refuse(
                "DPoP proof was used before; make a new one for each request",
            ));
        }
        Ok(())
    }

    /// Checks that a token has the scopes that every request needs.
    ///
    /// # Errors
    ///
    /// If the token lacks one of them.
    pub fn check_scopes(&self, token: &VerifiedToken) -> Result<(), Refusal> {
        self.check_operation(token, &ScopeSet::new())
    }

    /// Checks that a token has the scopes that an operation needs, and those of every request.
    ///
    /// # Errors
    ///
    /// If the token lacks one of them. The refusal names all of them, so that one more authorization is enough.
    pub fn check_operation(&self, token: &VerifiedToken, needed: &ScopeSet) -> Result<(), Refusal> {
        let permits = |needed| self.hierarchy.satisfies(&token.scopes, needed);
        if permits(&self.scopes) && permits(needed) {
            Ok(())
        } else {
            Err(Refusal::insufficient_scope(self.scopes.union(needed)))
        }
    }

    /// Returns the challenges that tell the client what to do
    /// ([MCP](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#error-handling)), one for each
    /// scheme that is accepted.
    #[must_use]
    pub fn challenges(&self, refusal: &Refusal) -> Vec<Challenge> {
        if matches!(refusal.0, Reason::Unavailable(_)) {
            return Vec::new();
        }
        let is_of_proof = matches!(refusal.0, Reason::Proof(_) | Reason::Nonce(_));
        let mut challenges = Vec::new();
        if !self.dpop_only && !is_of_proof {
            challenges.push(self.challenge(Challenge::bearer(), refusal));
        }
        if self.dpop.is_some() {
            let algorithms = ProofVerifier::algorithms().join(" ");
            let challenge = self.challenge(Challenge::dpop(), refusal);
            challenges.push(challenge.with("algs", algorithms));
        }
        challenges
    }

    fn challenge(&self, mut challenge: Challenge, refusal: &Refusal) -> Challenge {
        if let Some(code) = refusal.code() {
            challenge = challenge
                .with("error", code)
                .with("error_description", refusal.description());
        }
        challenge = challenge.with("resource_metadata", &self.metadata_url);
        let scopes = refusal.needed_scopes().unwrap_or(&self.scopes);
        if scopes.is_empty() {
            challenge
        } else {
            challenge.with("scope", scopes.to_string())
        }
    }

    /// Returns the response to a refused request.
    #[must_use]
    pub fn answer(&self, refusal: &Refusal) -> Response {
        let mut response = refusal.response(&self.challenges(refusal));
        let headers = response.headers_mut();
        if let Some(nonce) = refusal
            .nonce()
            .and_then(|it| HeaderValue::from_str(it).ok())
        {
            headers.insert("dpop-nonce", nonce);
        }
        response
    }
}

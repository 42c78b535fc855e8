//! Metadata of an authorization server.

use serde::{Deserialize, Serialize};

use crate::{
    error::{AuthError, Result},
    metadata::document,
    url_rules::UrlRules,
};

/// The metadata of an authorization server ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-2),
/// [OpenID Connect Discovery](https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata)).
///
/// ```
/// use oxmcp_auth::{AuthorizationServerMetadata, UrlRules};
///
/// let metadata = AuthorizationServerMetadata::parse(br#"{"issuer": "https://as.example/", "token_endpoint": "https://as.example/t"}"#)?;
/// assert!(metadata.check("https://as.example/", UrlRules::https()).is_ok());
/// assert!(metadata.check("https://as.example", UrlRules::https()).is_err(), "letter by letter");
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthorizationServerMetadata {
    /// The identifier of the server, exactly as it is sent.
    pub issuer: String,
    /// The URL of the authorization endpoint, to which the user's browser is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// The URL of the token endpoint, which issues tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The URL at which clients register dynamically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// The URL at which tokens are revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// The URL at which resource servers introspect tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// The URL of the key set with which the server's signatures are verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The scopes that the server supports.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub scopes_supported: Option<Vec<String>>,
    /// The response types of the authorization endpoint.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_types_supported: Option<Vec<String>>,
    /// The grant types of the token endpoint.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub grant_types_supported: Option<Vec<String>>,
    /// The methods by which clients may authenticate at the token endpoint; `client_secret_basic` if absent.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The signature algorithms of the assertions by which clients may authenticate.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The supported methods of PKCE. Without `S256` no user is sent to the authorization endpoint.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether the server's authorization responses name their issuer
    /// ([RFC 9207](https://www.rfc-editor.org/rfc/rfc9207#section-3)).
    pub authorization_response_iss_parameter_supported: bool,
    /// Whether a client's id may be the URL of its metadata document.
    pub client_id_metadata_document_supported: bool,
    /// The signature algorithms of DPoP proofs ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449#section-5.1)).
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// The profiles of grants, such as `urn:ietf:params:oauth:grant-profile:id-jag`.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
    /// The URL at which the metadata was found, for error messages. It is not stored.
    #[serde(skip)]
    pub found_at: Option<String>,
}

impl AuthorizationServerMetadata {
    /// Parses a document. It must not be trusted before [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// If it is not a JSON document of this form, or is larger than 1 MiB.
    pub fn parse(body: &[u8]) -> Result<Self> {
        document::read(body, "metadata of the authorization server")
    }

    /// The default endpoints of a server without metadata (revision 2025-03-26), at the root of an origin.
    ///
    /// See [its page](https://modelcontextprotocol.io/specification/2025-03-26/basic/authorization#fallbacks-for-servers-without-metadata-discovery).
    #[must_use]
    pub fn default_endpoints(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            // PKCE was required of every server of that revision.
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            token_endpoint_auth_methods_supported: Some(vec!["none".to_owned()]),
            ..Self::default()
        }
    }

    /// Checks that the document is of this issuer, letter by letter, and that requests may be sent to its endpoints.
    ///
    /// # Errors
    ///
    /// If it is of another issuer (the message names both), or an endpoint is neither https nor allowed loopback.
    pub fn check(&self, issuer: &str, rules: UrlRules) -> Result<()> {
        if self.issuer != issuer {
            let theirs = &self.issuer;
            return Err(AuthError::untrusted(format!(
                "the metadata of the authorization server {issuer:?} says that its issuer is {theirs:?}: they must be the \
                 same, letter by letter. If the server is yours, put one of them right; if you trust it, pin the issuer"
            )));
        }
        rules.check(issuer, "issuer")?;
        let endpoints = [
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("registration_endpoint", &self.registration_endpoint),
            ("revocation_endpoint", &self.revocation_endpoint),
            ("introspection_endpoint", &self.introspection_endpoint),
            ("jwks_uri", &self.jwks_uri),
        ];
        for (name, url) in endpoints {
            if let Some(url) = url {
                rules.check(url, name)?;
            }
        }
        Ok(())
    }

    /// The token endpoint.
    ///
    /// # Errors
    ///
    /// If the metadata names none.
    pub fn token_endpoint(&self) -> Result<&str> {
        self.endpoint(self.token_endpoint.as_deref(), "token_endpoint")
    }

    /// The authorization endpoint, if it supports PKCE with S256.
    ///
    /// # Errors
    ///
    /// If the metadata names none, or does not say that the server supports S256.
    pub fn authorization_endpoint(&self) -> Result<&str> {
        let endpoint = self.endpoint(
            self.authorization_endpoint.as_deref(),
            "authorization_endpoint",
        )?;
        let methods = self.code_challenge_methods_supported.as_deref();
        if methods.is_some_and(|all| all.iter().any(|it| it == "S256")) {
            return Ok(endpoint);
        }
        let (found, what_to_do) = if methods.is_some() {
            ("lists others alone", "Have S256 switched on there")
        } else {
            (
                "is missing",
                "If you know that it does, set assume_pkce; else have it switched on there",
            )
        };
        Err(self.located(AuthError::unsupported(format!(
            "the metadata of the authorization server {:?} must say that it supports PKCE with S256, and \
             `code_challenge_methods_supported` {found}: nobody may be sent there to log in. {what_to_do}",
            self.issuer
        ))))
    }

    /// Adds the URL of this document to an error, if it is known.
    pub(crate) fn located(&self, error: AuthError) -> AuthError {
        match &self.found_at {
            Some(url) => error.at(url),
            None => error,
        }
    }

    fn endpoint<'a>(&self, endpoint: Option<&'a str>, name: &str) -> Result<&'a str> {
        endpoint.ok_or_else(|| {
            self.located(AuthError::unsupported(format!(
                "the metadata of the authorization server {:?} names no `{name}`, which this login needs. Have it put right \
                 there, or log in in another way",
                self.issuer
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AuthErrorKind;

    fn metadata() -> AuthorizationServerMetadata {
        AuthorizationServerMetadata::default_endpoints("https://as.example")
    }

    #[test]
    fn an_issuer_is_compared_letter_by_letter() {
        for other in [
            "https://as.example/",
            "https://AS.example",
            "https://as.example:443",
            "https://attacker.example",
            "",
        ] {
            let error = metadata().check(other, UrlRules::https()).unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Untrusted);
            let names_both = error.message().contains(&format!("{other:?}"))
                && error.message().contains("\"https://as.example\"");
            assert!(names_both, "{error}");
        }
    }

    #[test]
    fn endpoints_that_must_not_be_asked_are_refused() {
        for bad in [
            "http://as.example/token",
            "http://127.0.0.1/token",
            "file:///token",
            "token",
        ] {
            let set: [fn(&mut AuthorizationServerMetadata, String); 6] = [
                |it, url| it.authorization_endpoint = Some(url),
                |it, url| it.token_endpoint = Some(url),
                |it, url| it.registration_endpoint = Some(url),
                |it, url| it.revocation_endpoint = Some(url),
                |it, url| it.introspection_endpoint = Some(url),
                |it, url| it.jwks_uri = Some(url),
            ];
            for set in set {
                let mut metadata = metadata();
                set(&mut metadata, bad.to_owned());
                let result = metadata.check("https://as.example", UrlRules::https());
                assert!(result.is_err(), "{bad}");
            }
        }
    }

    #[test]
    fn attack_10_without_s256_nobody_is_sent_to_log_in() {
        for methods in [None, Some(vec![]), Some(vec!["plain".to_owned()])] {
            let mut metadata = metadata();
            metadata.code_challenge_methods_supported = methods;
            let error = metadata.authorization_endpoint().unwrap_err();
            assert_eq!(error.kind(), AuthErrorKind::Unsupported);
            assert!(metadata.token_endpoint().is_ok());
        }
        assert!(metadata().authorization_endpoint().is_ok());
    }

    #[test]
    fn an_empty_document_has_no_endpoints() {
        let metadata = AuthorizationServerMetadata::parse(b"{}").unwrap();
        assert!(metadata.token_endpoint().is_err());
        assert!(metadata.authorization_endpoint().is_err());
        assert!(
            metadata
                .check("https://as.example", UrlRules::https())
                .is_err()
        );
    }
}

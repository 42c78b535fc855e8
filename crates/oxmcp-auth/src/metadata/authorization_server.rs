//! Metadata of an authorization server.

use serde::{Deserialize, Serialize};

use crate::{
    error::{AuthError, Result},
    metadata::document::{self, Tolerated},
    url_rules::{UrlRules, is_same_issuer},
};

/// The metadata of an authorization server ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414#section-2),
/// [OpenID Connect Discovery](https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderMetadata)).
///
/// ```
/// use oxmcp_auth::{AuthorizationServerMetadata, UrlRules};
///
/// let metadata = AuthorizationServerMetadata::parse(br#"{"issuer": "https://as.example/", "token_endpoint": "https://as.example/t"}"#)?;
/// assert!(metadata.check("https://as.example/", UrlRules::https()).is_ok());
/// assert!(metadata.check("https://as.example", UrlRules::https()).is_ok(), "the slash after the host may differ");
/// assert!(metadata.check("https://AS.example/", UrlRules::https()).is_err());
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
    /// The supported PKCE methods. Without `S256`, no user is sent to the authorization endpoint.
    #[serde(
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether the server's authorization responses name their issuer
    /// ([RFC 9207](https://www.rfc-editor.org/rfc/rfc9207#section-3)).
    #[serde(deserialize_with = "document::demand")]
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
    /// Parses a document. Do not trust it before [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// If it is not a JSON document of this form, or is larger than 1 MiB.
    pub fn parse(body: &[u8]) -> Result<Self> {
        Self::parse_noting(body, &mut Vec::new())
    }

    pub(crate) fn parse_noting(body: &[u8], tolerated: &mut Vec<Tolerated>) -> Result<Self> {
        document::read(body, "authorization server metadata", tolerated)
    }

    /// Returns the default endpoints of a server without metadata (revision 2025-03-26), at the root of an origin.
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

    /// Checks that the document belongs to this issuer, and that requests may be sent to its endpoints. Only the slash after
    /// the host may differ, which some servers write and others omit. The issuer is then the one in the document, and `iss` is
    /// compared with it byte by byte.
    ///
    /// # Errors
    ///
    /// If it belongs to another issuer (the message names both), or an endpoint is neither https nor allowed loopback.
    pub fn check(&self, issuer: &str, rules: UrlRules) -> Result<()> {
        if !is_same_issuer(&self.issuer, issuer) {
            let theirs = match self.issuer.as_str() {
                "" => "no issuer".to_owned(),
                theirs => format!("the issuer {theirs:?}"),
            };
            return Err(AuthError::untrusted(format!(
                "issuer mismatch: the metadata of the authorization server {issuer:?} names {theirs}; correct one of them, or \
                 configure the issuer if you trust the server"
            )));
        }
        rules.check(issuer, "issuer")?;
        rules.check(&self.issuer, "issuer")?;
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

    /// Returns the token endpoint.
    ///
    /// # Errors
    ///
    /// If the metadata has none.
    pub fn token_endpoint(&self) -> Result<&str> {
        self.endpoint(self.token_endpoint.as_deref(), "token_endpoint")
    }

    /// Returns the authorization endpoint, if it supports PKCE with S256.
    ///
    /// # Errors
    ///
    /// If the metadata has none, or does not advertise S256.
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
            ("lists only other methods", "enable S256 on the server")
        } else {
            (
                "is missing",
                "enable it on the server, or set `assume_pkce` if you know that the server supports S256",
            )
        };
        Err(self.located(AuthError::unsupported(format!(
            "authorization server {:?} does not advertise PKCE with S256: `code_challenge_methods_supported` {found}; \
             {what_to_do}",
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
                "authorization server {:?} has no `{name}` in its metadata; add it there, or log in another way",
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
    fn issuer_is_compared_exactly_except_trailing_slash() {
        let rules = UrlRules::https();
        assert!(metadata().check("https://as.example/", rules).is_ok());
        for other in [
            "https://as.example//",
            "https://as.example/x",
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
    fn forbidden_endpoints_are_refused() {
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

    // Attack: mix-up of authorization servers.
    #[test]
    fn login_is_refused_without_s256() {
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
    fn odd_members_are_repaired_or_omitted() {
        let text = r#"{
            "issuer": "https://as.example", "authorization_endpoint": null, "token_endpoint": ["x"],
            "registration_endpoint": {}, "jwks_uri": 5, "scopes_supported": "a  b",
            "response_types_supported": "code", "grant_types_supported": null,
            "code_challenge_methods_supported": "S256", "token_endpoint_auth_methods_supported": {},
            "dpop_signing_alg_values_supported": 7, "client_id_metadata_document_supported": "true",
            "authorization_response_iss_parameter_supported": "yes", "unknown": {"a": null}
        }"#;
        let mut tolerated = Vec::new();
        let read = AuthorizationServerMetadata::parse_noting(text.as_bytes(), &mut tolerated);
        let read = read.unwrap();
        let words = |all: &[&str]| Some(all.iter().map(|it| (*it).to_owned()).collect());
        let expected = AuthorizationServerMetadata {
            issuer: "https://as.example".to_owned(),
            scopes_supported: words(&["a", "b"]),
            response_types_supported: words(&["code"]),
            code_challenge_methods_supported: words(&["S256"]),
            client_id_metadata_document_supported: true,
            authorization_response_iss_parameter_supported: true,
            ..AuthorizationServerMetadata::default()
        };
        assert_eq!(read, expected);
        let noted: Vec<_> = tolerated
            .iter()
            .map(|it| (it.member.as_str(), it.read_as))
            .collect();
        assert_eq!(
            noted,
            [
                ("token_endpoint", "absent"),
                ("registration_endpoint", "absent"),
                ("jwks_uri", "absent"),
                ("scopes_supported", "list"),
                ("response_types_supported", "list"),
                ("code_challenge_methods_supported", "list"),
                ("token_endpoint_auth_methods_supported", "absent"),
                ("dpop_signing_alg_values_supported", "absent"),
                ("client_id_metadata_document_supported", "true"),
            ]
        );
    }

    #[test]
    fn null_is_absent_for_every_member() {
        let mut full = metadata();
        full.authorization_response_iss_parameter_supported = true;
        full.client_id_metadata_document_supported = true;
        let full = serde_json::to_value(&full).unwrap();
        let mut all = serde_json::Map::new();
        for name in full.as_object().unwrap().keys() {
            all.insert(name.clone(), serde_json::Value::Null);
        }
        let text = serde_json::to_vec(&all).unwrap();
        let read = AuthorizationServerMetadata::parse(&text).unwrap();
        assert_eq!(read, AuthorizationServerMetadata::default());
    }

    #[test]
    fn duplicate_name_is_refused_in_odd_documents_too() {
        let text = br#"{"issuer": "https://a.example", "scopes_supported": "a", "issuer": "https://b.example"}"#;
        assert!(AuthorizationServerMetadata::parse(text).is_err());
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        let text = b"\xEF\xBB\xBF{\"issuer\": \"https://as.example\"}";
        let read = AuthorizationServerMetadata::parse(text).unwrap();
        assert_eq!(read.issuer, "https://as.example");
    }

    #[test]
    fn empty_document_has_no_endpoints() {
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

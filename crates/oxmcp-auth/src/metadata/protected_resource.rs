//! Metadata of a protected resource, such as an MCP server.

use serde::{Deserialize, Serialize};

use crate::{
    error::{AuthError, Result},
    metadata::document::{self, Tolerated},
    url_rules::{is_uri, parse, shown_url},
};

/// The most authorization servers of a resource that are kept.
const MAX_SERVERS: usize = 16;

/// The metadata of an MCP server, which describes the tokens that it accepts
/// ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728#section-2)).
///
/// ```
/// use oxmcp_auth::ProtectedResourceMetadata;
///
/// let mut metadata = ProtectedResourceMetadata::new("https://mcp.example.com/mcp", ["https://auth.example.com"]);
/// metadata.scopes_supported = Some(vec!["mcp:read".to_owned()]);
/// let json = metadata.to_json();
/// assert_eq!(ProtectedResourceMetadata::parse(json.as_bytes())?, metadata);
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResourceMetadata {
    /// The identifier of the resource, exactly as it is sent.
    pub resource: String,
    /// The issuers of the tokens that the resource accepts.
    #[serde(
        default,
        deserialize_with = "servers",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub authorization_servers: Vec<String>,
    /// The scopes that the basic functions of the resource need.
    #[serde(
        default,
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub scopes_supported: Option<Vec<String>>,
    /// The methods by which tokens may be sent. MCP allows only `header`.
    #[serde(
        default,
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The name of the resource, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The URL of a page for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// The signature algorithms of the DPoP proofs that the resource accepts.
    #[serde(
        default,
        deserialize_with = "document::list",
        skip_serializing_if = "Option::is_none"
    )]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether the resource accepts only tokens that are bound by DPoP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

impl ProtectedResourceMetadata {
    /// Creates the metadata of a resource that accepts tokens of these authorization servers, in the `Authorization` header.
    #[must_use]
    pub fn new<S: Into<String>>(
        resource: impl Into<String>,
        authorization_servers: impl IntoIterator<Item = S>,
    ) -> Self {
        let servers = authorization_servers.into_iter().map(Into::into);
        Self {
            resource: resource.into(),
            authorization_servers: servers.collect(),
            bearer_methods_supported: Some(vec!["header".to_owned()]),
            ..Self::default()
        }
    }

    /// Parses a document.
    ///
    /// # Errors
    ///
    /// If it is not a JSON document of this form, has no `resource`, or is larger than 1 MiB.
    pub fn parse(body: &[u8]) -> Result<Self> {
        Self::parse_noting(body, &mut Vec::new())
    }

    pub(crate) fn parse_noting(body: &[u8], tolerated: &mut Vec<Tolerated>) -> Result<Self> {
        document::read(body, "protected resource metadata", tolerated)
    }

    /// Returns the metadata as a JSON document.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Checks that the document belongs to the MCP server at this URL. `resource` must be that URL, or a parent of it at the
    /// same origin.
    ///
    /// # Errors
    ///
    /// If it belongs to another server. The message names both.
    pub fn check_resource(&self, server: &str) -> Result<()> {
        let resource = &self.resource;
        if is_same_or_parent(resource, server)? {
            return Ok(());
        }
        let (resource, server) = (shown_url(resource), shown_url(server));
        Err(AuthError::untrusted(format!(
            "protected resource metadata is for {resource:?}, not for the MCP server {server:?}; connect to that URL, or \
             correct `resource` in the metadata"
        )))
    }
}

/// Whether a resource is a server's URL, or a parent of it that ends between two segments of the path.
fn is_same_or_parent(resource: &str, server: &str) -> Result<bool> {
    let what = "`resource` of the protected resource metadata";
    if !is_uri(resource) {
        return Err(AuthError::malformed(format!(
            "invalid {what}: percent-encode characters that are not allowed in a URL"
        )));
    }
    let resource = parse(resource, what)?;
    let server = parse(server, "URL of the MCP server")?;
    let (parent, path) = (resource.path().trim_end_matches('/'), server.path());
    let is_prefix = path
        .strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_query_ours = resource.query().is_none() || resource.query() == server.query();
    Ok(resource.origin() == server.origin()
        && is_prefix
        && is_query_ours
        && resource.fragment().is_none()
        && resource.username().is_empty()
        && resource.password().is_none())
}

fn servers<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let mut servers = document::list(from)?.unwrap_or_default();
    servers.truncate(MAX_SERVERS);
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_is_the_server_or_its_parent() {
        let table = [
            ("https://h.example/a/mcp", true),
            ("https://H.example:443/a/mcp", true),
            ("https://h.example/a/mcp/", true),
            ("https://h.example/a", true),
            ("https://h.example/", true),
            ("https://h.example", true),
            ("https://h.example/a/m", false),
            ("https://h.example/a/mcp/deeper", false),
            ("https://h.example/A/mcp", false),
            ("https://h.example/a/mcp?x=1", false),
            ("https://h.example/a/mcp#x", false),
            ("http://h.example/a/mcp", false),
            ("https://h.example:8443/a/mcp", false),
            ("https://evil.example/a/mcp", false),
            ("https://h.example.evil.example/a/mcp", false),
            ("https://h.example@evil.example/a/mcp", false),
            ("https://user@h.example/a/mcp", false),
            ("https://h.example/a/../b", false),
            (" https://h.example/a/mcp", false),
            ("https://h.example/a/mc\np", false),
        ];
        for (resource, is_ours) in table {
            let metadata = ProtectedResourceMetadata::new(resource, ["https://as.example"]);
            let result = metadata.check_resource("https://h.example/a/mcp");
            assert_eq!(result.is_ok(), is_ours, "{resource}");
        }
        let error = ProtectedResourceMetadata::new("https://evil.example", [""; 0])
            .check_resource("https://h.example/")
            .unwrap_err();
        assert!(error.message().contains("\"https://evil.example\""));
        assert!(error.message().contains("\"https://h.example/\""));
    }

    #[test]
    fn hostile_documents_are_refused_or_truncated() {
        let parse = |text: &str| ProtectedResourceMetadata::parse(text.as_bytes());
        assert!(parse("").is_err());
        assert!(parse("<html>").is_err());
        assert!(parse("[]").is_err());
        assert!(parse("{}").is_err());
        assert!(parse(r#"{"resource": 1}"#).is_err());
        let servers = vec!["https://as.example"; 200];
        let text = serde_json::json!({"resource": "x", "authorization_servers": servers});
        let metadata = parse(&text.to_string()).unwrap();
        assert_eq!(metadata.authorization_servers.len(), MAX_SERVERS);
        let many = serde_json::json!({"resource": "x", "scopes_supported": vec!["a"; 300]});
        assert_eq!(parse(&many.to_string()).unwrap().scopes_supported, None);
        let odd = parse(r#"{"resource": "x", "scopes_supported": [1, "a", null]}"#).unwrap();
        assert_eq!(odd.scopes_supported, Some(vec!["a".to_owned()]));
        let odd = parse(
            r#"{"resource": "x", "authorization_servers": "https://as.example", "resource_name": ["a"],
                "scopes_supported": "a b", "bearer_methods_supported": null, "resource_documentation": {},
                "dpop_bound_access_tokens_required": "TRUE"}"#,
        );
        let mut expected = ProtectedResourceMetadata::new("x", ["https://as.example"]);
        expected.bearer_methods_supported = None;
        expected.scopes_supported = Some(vec!["a".to_owned(), "b".to_owned()]);
        expected.dpop_bound_access_tokens_required = Some(true);
        assert_eq!(odd.unwrap(), expected);
        let long = format!(
            "{{\"resource\": \"x\"{}}}",
            " ".repeat(document::MAX_DOCUMENT)
        );
        assert!(parse(&long).is_err());
        // The error shows nothing of the document.
        let error = parse(r#"{"resource": ["hunter2"]}"#).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

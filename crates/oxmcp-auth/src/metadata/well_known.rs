//! The URLs at which metadata may be found, derived from the URL of a server or an issuer.

use url::Url;

use crate::{error::Result, url_rules::parse};

/// Returns the URLs at which an MCP server may publish its metadata: for its path first, then for its root.
///
/// # Errors
///
/// If the URL is neither http nor https.
///
/// ```
/// assert_eq!(oxmcp_auth::protected_resource_metadata_urls("https://h.example/a/mcp")?, [
///     "https://h.example/.well-known/oauth-protected-resource/a/mcp",
///     "https://h.example/.well-known/oauth-protected-resource",
/// ]);
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Protected Resource Metadata Discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements).
pub fn protected_resource_metadata_urls(server: &str) -> Result<Vec<String>> {
    let url = parse(server, "URL of the MCP server")?;
    let (origin, path) = (origin(&url), path(&url));
    let query = url.query().map(|it| format!("?{it}")).unwrap_or_default();
    let root = format!("{origin}/.well-known/oauth-protected-resource");
    let own = format!("{root}{path}{query}");
    Ok(if own == root {
        vec![root]
    } else {
        vec![own, root]
    })
}

/// Returns the URLs at which an authorization server may publish its metadata, in the order in which they are tried.
///
/// # Errors
///
/// If the issuer is not an http or https URL.
///
/// ```
/// assert_eq!(oxmcp_auth::authorization_server_metadata_urls("https://h.example/tenant")?, [
///     "https://h.example/.well-known/oauth-authorization-server/tenant",
///     "https://h.example/.well-known/openid-configuration/tenant",
///     "https://h.example/tenant/.well-known/openid-configuration",
/// ]);
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
///
/// See [Authorization Server Metadata Discovery](https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery).
pub fn authorization_server_metadata_urls(issuer: &str) -> Result<Vec<String>> {
    let url = parse(issuer, "issuer")?;
    let (origin, path) = (origin(&url), path(&url));
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    Ok(urls)
}

/// Scheme, host and port of a URL, without a slash at the end.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The path of a URL, without slashes at its end.
fn path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_urls_follow_the_specification() {
        let of = |url| protected_resource_metadata_urls(url).unwrap();
        let root = "https://h.example:8443/.well-known/oauth-protected-resource";
        assert_eq!(of("https://h.example:8443"), [root]);
        assert_eq!(of("https://h.example:8443/"), [root]);
        assert_eq!(of("https://H.example:8443/#x"), [root]);
        assert_eq!(
            of("https://h.example:8443/mcp/"),
            [format!("{root}/mcp").as_str(), root]
        );
        assert_eq!(
            of("https://h.example:8443/mcp?tenant=1"),
            [format!("{root}/mcp?tenant=1").as_str(), root]
        );
        let of = |url| authorization_server_metadata_urls(url).unwrap();
        let expected = [
            "https://h.example/.well-known/oauth-authorization-server",
            "https://h.example/.well-known/openid-configuration",
        ];
        assert_eq!(of("https://h.example"), expected);
        assert_eq!(of("https://h.example/"), expected);
        assert_eq!(
            of("https://h.example/a/b/"),
            [
                "https://h.example/.well-known/oauth-authorization-server/a/b",
                "https://h.example/.well-known/openid-configuration/a/b",
                "https://h.example/a/b/.well-known/openid-configuration",
            ]
        );
        assert!(authorization_server_metadata_urls("h.example").is_err());
    }
}

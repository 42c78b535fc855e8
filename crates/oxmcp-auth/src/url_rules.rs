//! The rules for URLs that a peer names or a user configures: https, or loopback if that is allowed.

use url::{Host, Url};

use crate::error::{AuthError, Result};

/// The most bytes that a URL may have.
const MAX_URL: usize = 4096;

/// The rules for URLs to which requests may be sent: https always, and http on loopback if the MCP server itself is on
/// loopback.
///
/// The code that does the I/O must check the addresses to which a host name resolves.
///
/// ```
/// use oxmcp_auth::UrlRules;
///
/// let rules = UrlRules::for_server("http://127.0.0.1:3000/mcp")?;
/// assert!(rules.check("http://localhost:4000/token", "token_endpoint").is_ok());
/// let rules = UrlRules::for_server("https://mcp.example.com")?;
/// assert!(rules.check("http://localhost:4000/token", "token_endpoint").is_err());
/// # Ok::<(), oxmcp_auth::AuthError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UrlRules {
    allow_loopback: bool,
}

impl UrlRules {
    /// Allows only https.
    #[must_use]
    pub const fn https() -> Self {
        Self {
            allow_loopback: false,
        }
    }

    /// Allows https, and http on loopback, for development.
    #[must_use]
    pub const fn https_or_loopback() -> Self {
        Self {
            allow_loopback: true,
        }
    }

    /// Returns the rules for URLs that the MCP server at this URL names: loopback is allowed only if the server itself is on
    /// loopback.
    ///
    /// # Errors
    ///
    /// If the URL is neither http nor https.
    pub fn for_server(url: &str) -> Result<Self> {
        let parsed = parse(url, "URL of the MCP server")?;
        Ok(Self {
            allow_loopback: is_loopback(&parsed),
        })
    }

    /// Checks a URL; `what` names it in the error.
    ///
    /// # Errors
    ///
    /// If it is not https (or http on loopback, if allowed), has a user name, a password or a fragment, or is longer than 4
    /// KiB.
    pub fn check(self, url: &str, what: &str) -> Result<()> {
        self.parse(url, what).map(drop)
    }

    /// Checks a URL, and parses it.
    pub(crate) fn parse(self, url: &str, what: &str) -> Result<Url> {
        let parsed = parse(url, what)?;
        if !is_uri(url) {
            return Err(AuthError::malformed(format!(
                "invalid {what} {url:?}: percent-encode characters that are not allowed in a URL"
            )));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(AuthError::untrusted(format!(
                "invalid {what}: must not contain a user name or password"
            )));
        }
        if parsed.fragment().is_some() {
            return Err(AuthError::untrusted(format!(
                "invalid {what} {url:?}: must not have a fragment (`#…`)"
            )));
        }
        if parsed.scheme() == "https" || (self.allow_loopback && is_loopback(&parsed)) {
            return Ok(parsed);
        }
        let hint = if is_loopback(&parsed) {
            "; http on loopback is allowed only if the MCP server is on loopback, too"
        } else {
            ""
        };
        Err(AuthError::untrusted(format!(
            "invalid {what} {url:?}: must be https{hint}"
        )))
    }
}

/// Parses an http or https URL.
pub(crate) fn parse(url: &str, what: &str) -> Result<Url> {
    if url.len() > MAX_URL {
        return Err(AuthError::limit(format!(
            "{what} is longer than {MAX_URL} bytes"
        )));
    }
    let parsed = Url::parse(url)
        .map_err(|error| AuthError::malformed(format!("invalid {what} {url:?}: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
        return Err(AuthError::untrusted(format!(
            "invalid {what} {url:?}: must start with `https://`"
        )));
    }
    Ok(parsed)
}

/// Returns whether a text has only the characters of a URI ([RFC 3986, section 2](https://www.rfc-editor.org/rfc/rfc3986#section-2)).
/// Parsers of URLs skip or encode the others, so that a program which is given the text may read another URL.
#[must_use]
pub fn is_uri(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_allowed = match byte {
            b'%' => {
                let is_hex = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_hexdigit());
                is_hex(bytes.next()) && is_hex(bytes.next())
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if !is_allowed {
            return false;
        }
    }
    !text.is_empty()
}

/// Whether two issuers are the same, apart from the slash after the host, which some servers write and others omit. Both
/// name the same metadata.
pub(crate) fn is_same_issuer(a: &str, b: &str) -> bool {
    let is_with_slash = |long: &str, short: &str| {
        let host = short.split_once("://").map(|(_, host)| host);
        long.strip_suffix('/') == Some(short)
            && host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#']))
    };
    a == b || is_with_slash(a, b) || is_with_slash(b, a)
}

/// Returns the part of a URL that messages may show: query and fragment can be secret.
#[must_use]
pub fn shown_url(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Whether the host of a URL is loopback by its spelling: 127.0.0.0/8, `::1`, `localhost` or a name under it.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_https_or_allowed_loopback() {
        let table = [
            ("https://as.example/token", true, true),
            ("https://127.0.0.1/token", true, true),
            ("http://127.0.0.1:9/token", false, true),
            ("http://127.9.9.9:9/token", false, true),
            ("http://[::1]:9/token", false, true),
            ("http://localhost/token", false, true),
            ("http://LOCALHOST./token", false, true),
            ("http://0.0.0.0/token", false, false),
            ("http://as.example/token", false, false),
            ("http://localhost.example/token", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
            ("https://user@as.example/", false, false),
            ("https://:password@as.example/", false, false),
            ("https://as.example/#fragment", false, false),
            ("/token", false, false),
            ("", false, false),
        ];
        for (url, https, loopback) in table {
            assert_eq!(UrlRules::https().check(url, "it").is_ok(), https, "{url}");
            let rules = UrlRules::https_or_loopback();
            assert_eq!(rules.check(url, "it").is_ok(), loopback, "{url}");
        }
        let long = format!("https://as.example/{}", "a".repeat(MAX_URL));
        assert!(UrlRules::https().check(&long, "it").is_err());
    }

    #[test]
    fn characters_invalid_in_uris_are_refused() {
        for url in [
            "https://as.example/\"; touch x; \"",
            "https://as.example/a b",
            "https://as.example/\r\nX: y",
            " https://as.example/",
            "https://as.example/\t",
            "https://as.example/<a>",
            "https://as.example/`id`",
            "https://as.example/{a}|b^c",
            "https://as.example\\evil",
            "https://as.example/%",
            "https://as.example/%2",
            "https://as.example/%zz",
            "https://as.example/\u{fc}",
            "https://\u{fc}.example/",
            "https://as.example/\0",
        ] {
            assert!(UrlRules::https().check(url, "it").is_err(), "{url:?}");
        }
        let all = "https://as.example:8443/-._~!$&'()*+,;=:@/%C3%bc?a=[b]/?";
        assert!(UrlRules::https().check(all, "it").is_ok());
    }

    #[test]
    fn issuers_may_differ_by_slash_after_host() {
        let table = [
            ("https://h", "https://h/", true),
            ("https://h:8443", "https://h:8443/", true),
            ("https://h", "https://h//", false),
            ("https://h", "https://H/", false),
            ("https://h", "http://h/", false),
            ("https://h/a", "https://h/a/", false),
            ("https://h?a", "https://h?a/", false),
            ("https:/", "https://", false),
            ("https://", "https:///", false),
            ("h", "h/", false),
            ("", "/", false),
        ];
        for (a, b, is_same) in table {
            assert_eq!(is_same_issuer(a, b), is_same, "{a}");
            assert_eq!(is_same_issuer(b, a), is_same, "{b}");
            assert!(is_same_issuer(a, a));
        }
    }

    #[test]
    fn passwords_never_appear_in_errors() {
        let error = UrlRules::https()
            .check("https://user:hunter2@as.example/", "it")
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }
}

//! The sandbox proxy: the page between a host that is a web page and a view.

use oxmcp::{Error, Result};

use crate::csp::is_authority;

/// Returns the page of the sandbox proxy, for a host that is a web page at `host_origin`, as in `http://127.0.0.1:8080`.
///
/// Serve it at another origin than the host's: a second port or domain. Its response must have the
/// [policy](super::AppPage::policy) of the app in the header `Content-Security-Policy`; the view inherits it. The host shows it
/// in a frame with `sandbox="allow-scripts allow-same-origin"` and the [`allow`](super::AppPage::allow) of the app.
///
/// The proxy forwards messages between the host and the view, apart from those of its own. The view has an origin that is
/// unlike any other, so it reaches neither the host nor the proxy, nor the views of other servers.
///
/// ```
/// use oxmcp_apps::host::sandbox_proxy;
///
/// let page = sandbox_proxy("http://127.0.0.1:8080")?;
/// assert!(page.starts_with("<!doctype html>"));
/// // A browser would never say that a message comes from a URL with a path.
/// assert!(sandbox_proxy("http://127.0.0.1:8080/host").is_err());
/// # Ok::<(), oxmcp::Error>(())
/// ```
///
/// # Errors
/// If `host_origin` is not an origin as browsers write it: a scheme, a host, and the port unless it is the default one, in lower
/// case and without a path. With another text the proxy and the host would never hear each other, and with `*` the proxy would
/// give the messages of the view to any page.
pub fn sandbox_proxy(host_origin: &str) -> Result<String> {
    if !is_origin(host_origin) {
        return Err(Error::misuse(format!(
            "invalid host origin {host_origin:?}: use what `location.origin` is on the page of the host, as in \"http://127.0.0.1:8080\""
        )));
    }
    Ok(PROXY.replace("HOST_ORIGIN", host_origin))
}

/// Whether a text is an origin as browsers write it. Web views have schemes of their own.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => ":",
    };
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_lowercase())
        && scheme != "file"
        && scheme.bytes().all(|it| {
            it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.')
        });
    is_scheme
        && is_authority(authority)
        && !authority.starts_with('*')
        && !authority.ends_with(default_port)
        && !text.bytes().any(|it| it.is_ascii_uppercase())
}

const PROXY: &str = include_str!("sandbox_proxy.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_knows_the_origin_of_its_host() {
        for good in [
            "http://127.0.0.1:8080",
            "https://host.example",
            "http://[::1]:3000",
            "tauri://localhost",
        ] {
            let page = sandbox_proxy(good).unwrap();
            assert!(page.contains(&format!("const host = \"{good}\";")));
            assert!(!page.contains("HOST_ORIGIN"));
        }
    }

    #[test]
    fn host_origin_is_checked() {
        for bad in [
            "",
            "*",
            "null",
            "127.0.0.1:8080",
            "http://127.0.0.1:8080/",
            "http://127.0.0.1:8080/#secret",
            "http://host.example:80",
            "https://host.example:443",
            "https://Host.example",
            "HTTPS://host.example",
            "https://*.example",
            "https://user@host.example",
            "https://host.example\";evil();\"",
            "</script><script>evil()</script>",
            "file://",
            "file://localhost",
            "://localhost",
        ] {
            let error = sandbox_proxy(bad).unwrap_err();
            let expected = format!("invalid host origin {bad:?}: use what");
            assert!(error.message().starts_with(&expected), "{bad}: {error}");
        }
    }
}

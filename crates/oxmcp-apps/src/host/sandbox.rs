//! The sandbox proxy: the page between a host that is a web page and a view.

/// Returns the page of the sandbox proxy, for a host that is a web page at `host_origin`, as in `http://127.0.0.1:8080`.
///
/// Serve it at another origin than the host's: a second port or domain. Its response must have the
/// [policy](super::AppPage::policy) of the app in the header `Content-Security-Policy`; the view inherits it. The host shows it
/// in a frame with `sandbox="allow-scripts allow-same-origin"` and the [`allow`](super::AppPage::allow) of the app.
///
/// The proxy forwards messages between the host and the view, apart from those of its own. The view has an origin that is
/// unlike any other, so it reaches neither the host nor the proxy, nor the views of other servers.
#[must_use]
pub fn sandbox_proxy(host_origin: &str) -> String {
    // The origin is written as a JSON string. `<` could end the script.
    let origin = serde_json::Value::from(host_origin).to_string();
    PROXY.replace("\"HOST_ORIGIN\"", &origin.replace('<', "\\u003c"))
}

const PROXY: &str = include_str!("sandbox_proxy.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_knows_the_origin_of_its_host() {
        let page = sandbox_proxy("http://127.0.0.1:8080");
        assert!(page.contains("const host = \"http://127.0.0.1:8080\";"));
        assert!(!page.contains("HOST_ORIGIN"));
        // An origin ends the script.
        let page = sandbox_proxy("</script><script>evil()</script>\"");
        assert!(
            page.contains(
                "const host = \"\\u003c/script>\\u003cscript>evil()\\u003c/script>\\\"\";"
            )
        );
    }
}

//! Redirects, which are followed within the origin of the server.

use http::{Method, Response, StatusCode, header::LOCATION};
use url::Url;

use crate::{
    error::{Error, Result},
    http::client::redaction::redacted_url,
};

/// The maximum number of redirects in a row.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// The URL to which a response redirects. `None` if it does not redirect.
///
/// A redirect is followed within an origin, and from `http` to `https` on one host. A request, with the credentials in it, is meant
/// only for that server.
///
/// # Errors
/// If the redirect must not be followed.
pub(crate) fn redirect_target<B>(
    from: &Url,
    method: &Method,
    response: &Response<B>,
) -> Result<Option<Url>> {
    let status = response.status();
    let keeps_method = match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
            method == Method::GET
        }
        _ => return Ok(None),
    };
    let location = response.headers().get(LOCATION);
    let to = location
        .and_then(|it| it.to_str().ok())
        .and_then(|it| from.join(it).ok());
    let refuse = |why: &str| {
        let to = to
            .as_ref()
            .map_or_else(|| "no valid URL".to_owned(), redacted_url);
        Err(Error::http(
            status.as_u16(),
            format!("the server redirects to {to}: {why}"),
        ))
    };
    match &to {
        None => refuse("the `Location` header is missing or invalid"),
        Some(_) if !keeps_method => {
            refuse("this status drops the message; set that URL on the endpoint")
        }
        Some(to) if !may_follow(from, to) => refuse(
            "another origin, so nothing was sent there; set that URL on the endpoint if you trust it",
        ),
        Some(to) => Ok(Some(to.clone())),
    }
}

/// Whether a request to one URL may go to the other.
fn may_follow(from: &Url, to: &Url) -> bool {
    let upgrade = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host_str() == to.host_str()
        && from.port().is_none()
        && to.port().is_none();
    upgrade || is_same_origin(from, to)
}

/// Whether two URLs have the same origin, as browsers define it.
pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(status: u16, location: &str) -> Response<()> {
        let response = Response::builder().status(status);
        response.header(LOCATION, location).body(()).unwrap()
    }

    // Attack: credentials that are sent to another origin.
    #[test]
    fn redirects_stay_within_the_intended_server() {
        let table = [
            ("http://a/mcp", "/mcp/", Some("http://a/mcp/")),
            ("http://a/mcp", "http://a:80/x", Some("http://a/x")),
            ("http://a/mcp", "https://a/mcp", Some("https://a/mcp")),
            ("https://a/mcp", "http://a/mcp", None),
            ("https://a/mcp", "https://b/mcp", None),
            ("https://a/mcp", "//b/mcp", None),
            ("https://a/mcp", "https://a:8443/mcp", None),
            ("http://a/mcp", "https://a:8443/mcp", None),
            ("http://a:8080/mcp", "https://a/mcp", None),
            ("http://a/mcp", "ftp://a/mcp", None),
            ("http://a/mcp", "file:///etc/passwd", None),
            ("http://a/mcp", "http://[", None),
        ];
        for (from, location, to) in table {
            let from = Url::parse(from).unwrap();
            for status in [307, 308] {
                let found = redirect_target(&from, &Method::POST, &redirect(status, location));
                let found = found.ok().flatten().map(String::from);
                assert_eq!(found.as_deref(), to, "{from} {location}");
            }
        }
    }

    #[test]
    fn only_redirects_preserving_the_message_are_followed() {
        let from = Url::parse("http://a/mcp").unwrap();
        let lost = redirect_target(&from, &Method::POST, &redirect(302, "/x"));
        assert_eq!(lost.unwrap_err().http_status(), Some(302));
        assert!(
            redirect_target(&from, &Method::GET, &redirect(302, "/x"))
                .unwrap()
                .is_some()
        );
        assert!(
            redirect_target(&from, &Method::POST, &redirect(200, "/x"))
                .unwrap()
                .is_none()
        );
        let nowhere = redirect_target(&from, &Method::POST, &redirect(307, "http://["));
        assert!(nowhere.is_err());
    }
}

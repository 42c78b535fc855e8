//! Where a redirect leads, and whether it may be followed.

use http::{Method, Response, StatusCode, header::LOCATION};
use url::Url;

use crate::{Error, Result};

/// How many redirects are followed in a row.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Where an answer sends the request instead. `None` where it is no redirect.
///
/// It is followed within an origin, and from `http` to `https` on one host. What a request carries, credentials above
/// all, was meant for that server and nobody else.
///
/// # Errors
/// Where it must not be followed.
pub(crate) fn target<B>(
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
        let to = to.as_ref().map_or_else(|| "nowhere".to_owned(), shown);
        Err(Error::http(
            status.as_u16(),
            format!("the server redirects to {to}, {why}"),
        ))
    };
    match &to {
        None => refuse("and does not say where to"),
        Some(_) if !keeps_method => {
            refuse("in a way that loses what was sent; give that URL to the endpoint")
        }
        Some(to) if !may_follow(from, to) => refuse(
            "which is another origin: nothing was sent there; give that URL to the endpoint if you trust it",
        ),
        Some(to) => Ok(Some(to.clone())),
    }
}

/// Whether what is meant for one URL may go to the other.
fn may_follow(from: &Url, to: &Url) -> bool {
    let upgrade = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host_str() == to.host_str()
        && from.port().is_none()
        && to.port().is_none();
    upgrade || is_same_origin(from, to)
}

/// Whether two URLs are of one server, as browsers see it.
pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// A URL for people to read, without what may be secret in it.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Neither fails for a URL with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(status: u16, location: &str) -> Response<()> {
        let response = Response::builder().status(status);
        response.header(LOCATION, location).body(()).unwrap()
    }

    #[test]
    fn attack_11_redirects_stay_with_the_server_that_was_meant() {
        let table = [
            ("http://a/mcp", "/mcp/", Some("http://a/mcp/")),
            ("http://a/mcp", "http://a:80/x", Some("http://a/x")),
            ("http://a/mcp", "https://a/mcp", Some("https://a/mcp")),
            ("https://a/mcp", "http://a/mcp", None),
            ("https://a/mcp", "https://b/mcp", None),
            ("https://a/mcp", "//b/mcp", None),
            ("https://a/mcp", "https://a:8443/mcp", None),
            ("http://a:8080/mcp", "https://a/mcp", None),
            ("http://a/mcp", "file:///etc/passwd", None),
            ("http://a/mcp", "http://[", None),
        ];
        for (from, location, to) in table {
            let from = Url::parse(from).unwrap();
            for status in [307, 308] {
                let found = target(&from, &Method::POST, &redirect(status, location));
                let found = found.ok().flatten().map(String::from);
                assert_eq!(found.as_deref(), to, "{from} {location}");
            }
        }
    }

    #[test]
    fn only_what_keeps_the_message_is_followed() {
        let from = Url::parse("http://a/mcp").unwrap();
        let lost = target(&from, &Method::POST, &redirect(302, "/x"));
        assert_eq!(lost.unwrap_err().http_status(), Some(302));
        assert!(
            target(&from, &Method::GET, &redirect(302, "/x"))
                .unwrap()
                .is_some()
        );
        assert!(
            target(&from, &Method::POST, &redirect(200, "/x"))
                .unwrap()
                .is_none()
        );
        let nowhere = target(&from, &Method::POST, &redirect(307, "http://["));
        assert!(nowhere.is_err());
    }

    #[test]
    fn attack_21_urls_are_shown_without_secrets() {
        let url = Url::parse("https://me:secret@a/mcp?key=secret#secret").unwrap();
        assert_eq!(shown(&url), "https://a/mcp");
    }
}

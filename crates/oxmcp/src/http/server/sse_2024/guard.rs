//! Who may come near.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, StatusCode, Uri, header, request::Parts, uri::Authority};

use super::responses::{Refused, refuse};

/// Lets programs on this machine in, and nobody else: a web page in somebody's browser can reach whatever listens on the
/// machine, under a name of its own, but `Host` and `Origin` tell.
pub(super) fn loopback(parts: &Parts) -> Result<(), Refused> {
    let forbidden = |what| refuse(StatusCode::FORBIDDEN, what);
    let host = match only(&parts.headers, &header::HOST) {
        Some(Ok(host)) => Some(host),
        Some(Err(())) => None,
        // HTTP/2 says it in the URI.
        None => parts.uri.authority().map(Authority::as_str),
    };
    if !host.is_some_and(is_loopback) {
        return Err(forbidden(
            "the Host is not one of those that are served here",
        ));
    }
    match only(&parts.headers, &header::ORIGIN) {
        None => Ok(()),
        Some(Ok(origin)) if is_loopback_origin(origin) => Ok(()),
        Some(_) => Err(forbidden(
            "the Origin is not one of those that are let in here",
        )),
    }
}

/// The value of a header that may be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Result<&'a str, ()>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let value = first.to_str().map_err(drop);
    Some(if values.next().is_some() {
        Err(())
    } else {
        value
    })
}

fn is_loopback_origin(origin: &str) -> bool {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    rest.is_some_and(is_loopback)
}

/// Whether a host, with a port or without, can only be this machine.
fn is_loopback(authority: &str) -> bool {
    let is_plain = !authority.contains(['/', '@', '?', '#']);
    let Some(authority) = authority
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.into_parts().authority)
    else {
        return false;
    };
    let host = authority.host();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    is_plain && (host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback()))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn verdict(uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        loopback(&parts).err().map(|refused| refused.status())
    }

    #[test]
    fn attack_1_only_names_of_this_machine_are_served() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]",
            "[::1]:80",
        ] {
            assert_eq!(verdict("/", &[("host", host)]), None, "{host}");
        }
        let wrong = [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "evil@localhost",
            "localhost@evil",
            "localhost/",
            "localhost:80:80",
            "[::2]",
            "[::1",
            "::1x",
        ];
        for host in wrong {
            assert_eq!(
                verdict("/", &[("host", host)]),
                Some(StatusCode::FORBIDDEN),
                "{host}"
            );
        }
        assert_eq!(verdict("/", &[]), Some(StatusCode::FORBIDDEN));
        assert_eq!(verdict("http://localhost/", &[]), None);
        assert_eq!(
            verdict("http://evil.example/", &[]),
            Some(StatusCode::FORBIDDEN)
        );
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(verdict("/", &twice), Some(StatusCode::FORBIDDEN));
    }

    #[test]
    fn attack_2_only_pages_of_this_machine_are_let_in() {
        let of = |origin| verdict("/", &[("host", "localhost"), ("origin", origin)]);
        for origin in [
            "http://localhost",
            "https://localhost:3000",
            "http://127.0.0.1:1",
            "http://[::1]",
        ] {
            assert_eq!(of(origin), None, "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "localhost",
            "file://",
            "http://localhost.evil",
            "ftp://localhost",
        ] {
            assert_eq!(of(origin), Some(StatusCode::FORBIDDEN), "{origin}");
        }
        let twice = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil"),
        ];
        assert_eq!(verdict("/", &twice), Some(StatusCode::FORBIDDEN));
    }
}

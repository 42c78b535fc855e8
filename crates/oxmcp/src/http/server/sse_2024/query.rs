//! What requests say, apart from their bodies.

use http::{HeaderMap, StatusCode, header};

use super::responses::{Refused, refuse};

/// The parameter that names the session.
const SESSION_ID: &str = "sessionId";

/// The URI to post to, which names the session.
pub(super) fn endpoint(messages: &str, session: &str) -> String {
    let joint = if messages.contains('?') { '&' } else { '?' };
    format!("{messages}{joint}{SESSION_ID}={session}")
}

/// The session that the query of a URI names.
pub(super) fn session(query: Option<&str>) -> Result<&str, Refused> {
    let mut named = query.unwrap_or_default().split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (name == SESSION_ID).then_some(value)
    });
    match (named.next(), named.next()) {
        (Some(session), None) => Ok(session),
        (None, _) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "sessionId is missing: post to the URI that the endpoint event of the stream names",
        )),
        (Some(_), Some(_)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "sessionId is there more than once",
        )),
    }
}

/// Messages are JSON. Browsers send nothing that calls itself so to another site without asking it before.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let only = match (types.next(), types.next()) {
        (Some(only), None) => only.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = only.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(refuse(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the Content-Type must be application/json",
    ))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn d5_the_session_is_named_in_the_query() {
        assert_eq!(endpoint("", "7"), "?sessionId=7");
        assert_eq!(endpoint("/messages", "7"), "/messages?sessionId=7");
        assert_eq!(endpoint("/m?key=1", "7"), "/m?key=1&sessionId=7");
        for query in ["sessionId=7", "a=b&sessionId=7", "sessionId=7&a"] {
            assert_eq!(session(Some(query)).unwrap(), "7", "{query}");
        }
        assert_eq!(session(Some("sessionId=")).unwrap(), "");
    }

    #[test]
    fn attack_16_a_session_is_named_once() {
        let wrong = [None, Some(""), Some("sessionId"), Some("sessionid=7")];
        let twice = [
            Some("sessionId=7&sessionId=8"),
            Some("sessionId=7&sessionId=7"),
        ];
        for query in wrong.into_iter().chain(twice) {
            let status = session(query).unwrap_err().status();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{query:?}");
        }
    }

    #[test]
    fn attack_2_only_json_is_taken() {
        let headers = |types: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for it in types {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(it));
            }
            headers
        };
        for right in ["application/json", "Application/JSON ; charset=utf-8"] {
            assert!(is_json(&headers(&[right])).is_ok(), "{right}");
        }
        let wrong: [&[_]; 7] = [
            &[],
            &[""],
            &["text/plain"],
            &["text/plain; application/json"],
            &["application/jsonp"],
            &["application/x-www-form-urlencoded"],
            &["application/json", "application/json"],
        ];
        for types in wrong {
            let status = is_json(&headers(types)).unwrap_err().status();
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{types:?}");
        }
    }
}

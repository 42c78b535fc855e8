//! How messages name their session.

use http::StatusCode;

use super::responses::{Refused, refuse};

/// The parameter that names the session.
const SESSION_ID: &str = "sessionId";

/// The URI to post to, which names the session.
pub(super) fn endpoint(messages: &str, session: &str) -> String {
    let joint = if messages.contains('?') { '&' } else { '?' };
    format!("{messages}{joint}{SESSION_ID}={session}")
}

/// Whether the query of a URI names a session.
pub(in crate::http::server) fn is_message(query: Option<&str>) -> bool {
    query.is_some_and(|query| session(Some(query)).is_ok())
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

#[cfg(test)]
mod tests {
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
}

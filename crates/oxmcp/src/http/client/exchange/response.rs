//! The response to a request: its form, its body, and the error in it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use memchr::memchr;
use oxmcp_json::Text;
use oxmcp_protocol::{
    ErrorCode, RequestId,
    framing::after_byte_order_mark,
    internal::{Envelope, Params},
    lenient::Leniency,
};
use tokio::time::timeout;

use crate::{
    error::{Error, Result},
    http::client::{
        exchange::requests::{EVENTS, JSON},
        redaction::Answering,
        transport::http_client::HttpBody,
    },
    logged::cut,
    transport::mirror::HeaderMirror,
};

/// The number of bytes that are read of an error's body: more than any JSON-RPC error has.
const MAX_ERROR_BODY: usize = 64 << 10;
/// The number of characters that are shown of an error body that is not JSON-RPC.
const SHOWN: usize = 200;
/// The time limit for reading the rest of a response that is not needed. It is read because a connection is reused only after the end of
/// its response.
pub(crate) const TRAILING: Duration = Duration::from_secs(1);

/// The form of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Events,
    /// Another media type, or none.
    Other,
}

impl Form {
    pub(crate) fn of<B>(response: &Response<B>) -> Self {
        let form = response.headers().get(CONTENT_TYPE);
        let form = form.map_or(&b""[..], HeaderValue::as_bytes);
        let end = memchr(b';', form).unwrap_or(form.len());
        let form = form.get(..end).unwrap_or_default().trim_ascii();
        if form.eq_ignore_ascii_case(JSON.as_bytes()) {
            Self::Json
        } else if form.eq_ignore_ascii_case(EVENTS.as_bytes()) {
            Self::Events
        } else {
            Self::Other
        }
    }

    /// The form of a response by the beginning of its body, which some servers label with another media type or with none, or else
    /// by its media type. Waits for the beginning.
    pub(crate) async fn of_body(response: &mut Response<HttpBody>, mirror: &HeaderMirror) -> Self {
        let labelled = Self::of(response);
        let beginning = response.body_mut().peek().await;
        let form = beginning.and_then(|beginning| Self::beginning_with(beginning));
        match form {
            Some(form) if form != labelled && mirror.tolerates(Leniency::ContentType, false) => {
                form
            }
            _ => labelled,
        }
    }

    /// The only form whose bodies can begin so.
    fn beginning_with(body: &[u8]) -> Option<Self> {
        const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b"id:", b"retry:", b":"];
        let text = after_byte_order_mark(body)
            .unwrap_or(body)
            .trim_ascii_start();
        match text.first()? {
            b'{' | b'[' => Some(Self::Json),
            _ if FIELDS.iter().any(|field| text.starts_with(field)) => Some(Self::Events),
            _ => None,
        }
    }
}

/// Reads a whole body. `None` if it is longer than `limit` bytes.
pub(crate) async fn read_body(body: &mut HttpBody, limit: usize) -> Result<Option<Bytes>> {
    let first = body.chunk().await?.unwrap_or_default();
    if first.len() > limit {
        return Ok(None);
    }
    let mut next = body.chunk().await?;
    if next.is_none() {
        // Most bodies are one chunk, and are not copied.
        return Ok(Some(first));
    }
    let mut whole = BytesMut::from(&*first);
    while let Some(chunk) = next {
        if whole.len() + chunk.len() > limit {
            return Ok(None);
        }
        whole.extend_from_slice(&chunk);
        next = body.chunk().await?;
    }
    Ok(Some(whole.freeze()))
}

/// Reads and drops a body, so that the connection can be reused.
pub(crate) async fn discard(body: HttpBody) {
    read_rest(body, |_| ()).await;
}

/// A response whose status is not a success, as an error.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: Error,
    /// The id of the request that the response names.
    names: Option<RequestId>,
}

/// Reads a response whose status is not a success.
pub(crate) async fn refusal(response: Response<HttpBody>) -> Refusal {
    let (mut head, body) = response.into_parts();
    let answering = head.extensions.remove::<Answering>();
    let challenges = challenges(&head.headers);
    let mut said = BytesMut::new();
    read_rest(body, |chunk| said.extend_from_slice(chunk)).await;
    let is_unserved = is_unserved(head.status, &head.headers);
    let mut refusal = refused(head.status, is_unserved, answering.as_ref(), &said);
    refusal.error = refusal.error.with_challenges(challenges);
    if let Some(wait) = asked_pause(head.status, &head.headers) {
        refusal.error = refusal.error.refused_for(wait);
    }
    refusal
}

/// Whether a response says that the request was not served. Some load balancers answer 503 without `Retry-After` if a server
/// closed the connection.
fn is_unserved(status: StatusCode, headers: &HeaderMap) -> bool {
    match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => headers.contains_key(RETRY_AFTER),
        _ => false,
    }
}

/// The pause that a response asks for, if it gives a number of seconds. A date would need clocks that agree.
fn asked_pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let may_ask = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let asked = headers
        .get(RETRY_AFTER)
        .filter(|_| may_ask.contains(&status))?;
    let seconds = asked.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The header `WWW-Authenticate` as one text.
fn challenges(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(WWW_AUTHENTICATE);
    let values: Vec<_> = values.iter().filter_map(|it| it.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

/// Reads a body, up to the maximum length and the time-out.
async fn read_rest(mut body: HttpBody, mut take: impl FnMut(&[u8])) {
    let reading = async {
        let mut room = MAX_ERROR_BODY;
        while room > 0
            && let Ok(Some(chunk)) = body.chunk().await
        {
            let chunk = chunk.get(..room).unwrap_or(&chunk);
            take(chunk);
            room -= chunk.len();
        }
    };
    let _ = timeout(TRAILING, reading).await;
}

/// Converts a refusal whose body has been read. A JSON-RPC error in the body is the answer, whatever id it names: each HTTP request
/// has one message.
fn refused(
    status: StatusCode,
    is_unserved: bool,
    answering: Option<&Answering>,
    body: &[u8],
) -> Refusal {
    let mut params = Text::UNREAD;
    let body = after_byte_order_mark(body).unwrap_or(body);
    if let Ok(Envelope::Response(response)) = Envelope::parse(body, &mut params)
        && let Err(error) = response.outcome
    {
        let error = Error::from(error).with_http_status(status.as_u16());
        return Refusal {
            error: error.refused_unserved(is_unserved),
            names: response.id,
        };
    }
    let said = excerpt(body);
    let colon = if said.is_empty() { "" } else { ": " };
    let hint = match status {
        StatusCode::UNAUTHORIZED => "; it requires credentials, or rejected those that were sent",
        StatusCode::FORBIDDEN => "; it denied access with these credentials, or without any",
        StatusCode::SERVICE_UNAVAILABLE if is_unserved => "; nothing was done: retry later",
        _ if status.is_server_error() => "; retry only if the call is idempotent",
        _ => "",
    };
    let url = answering.map(|Answering(url)| format!(" ({url})"));
    let url = url.unwrap_or_default();
    let text = format!("the server returned {status}{url}{colon}{said}{hint}");
    Refusal {
        error: Error::http(status.as_u16(), text).refused_unserved(is_unserved),
        names: None,
    }
}

impl Refusal {
    /// Whether a refusal of the request with the id `asked` may mean that the session is lost: the server has not dealt with the
    /// request itself, and gives no other reason.
    pub(crate) fn may_be_session_lost(&self, asked: Option<&RequestId>) -> bool {
        // Credentials, payment, the wrong form or size of a request, and requests to come back later.
        const OTHER_REASONS: [u16; 15] = [
            401, 402, 403, 405, 406, 407, 408, 411, 413, 414, 415, 425, 429, 431, 451,
        ];
        const OTHER_ERRORS: [ErrorCode; 3] = [
            ErrorCode::PARSE_ERROR,
            ErrorCode::METHOD_NOT_FOUND,
            ErrorCode::INVALID_PARAMS,
        ];
        let is_answer = self.names.is_some() && self.names.as_ref() == asked;
        let has_reason = self.error.is_protocol() && OTHER_ERRORS.contains(&self.error.code());
        let status = self.error.http_status().unwrap_or_default();
        let is_refused = (400..500).contains(&status) && !OTHER_REASONS.contains(&status);
        is_refused && !is_answer && !has_reason
    }

    /// Whether the server does not know the session of the request with the id `asked`. The specification wants 404; some
    /// servers respond with 400 and a text about the session. A response that names the request is its answer, whatever the
    /// text.
    pub(crate) fn is_session_lost(&self, asked: Option<&RequestId>) -> bool {
        let error = &self.error;
        match error.http_status() {
            // The server knows the session, but not the method.
            Some(404) => !(error.is_protocol() && error.code() == ErrorCode::METHOD_NOT_FOUND),
            Some(400) => {
                let is_answer = self.names.is_some() && self.names.as_ref() == asked;
                !is_answer && error.message().to_ascii_lowercase().contains("session")
            }
            _ => false,
        }
    }
}

/// The beginning of a text from the peer, in one line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line = String::new();
    for word in clean.collect::<String>().split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    cut(line, SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Attack: resource exhaustion.
    #[test]
    fn server_error_text_is_shortened_and_cleaned() {
        let body = format!("<p>\u{1b}[31mno\r\n\t{}\u{0}", "x".repeat(1 << 20));
        let error = refused(StatusCode::BAD_GATEWAY, false, None, body.as_bytes()).error;
        assert_eq!(error.http_status(), Some(502));
        assert!(error.message().len() < 300, "{error}");
        assert!(!error.message().contains(char::is_control), "{error}");
        assert!(
            error
                .message()
                .starts_with("the server returned 502 Bad Gateway: <p> [31mno xxx")
        );
    }

    #[test]
    fn error_in_the_body_is_the_answer() {
        let body = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}"#;
        let error = refused(StatusCode::NOT_FOUND, true, None, body).error;
        assert_eq!(
            (error.code().value(), error.http_status()),
            (-32601_i64, Some(404))
        );
        assert!(error.is_protocol());
        assert!(
            refused(StatusCode::UNAUTHORIZED, true, None, b"")
                .error
                .is_unauthorized()
        );
        assert!(
            !refused(StatusCode::FORBIDDEN, true, None, b"")
                .error
                .is_unauthorized()
        );
    }

    #[tokio::test]
    async fn error_reports_whether_request_may_have_been_served() {
        let json = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no room"}}"#;
        for (status, retry_after, is_unserved) in [
            (400, None, false),
            (401, None, true),
            (403, None, true),
            (404, None, true),
            (429, None, true),
            (500, Some("1"), false),
            (502, None, false),
            (503, None, false),
            (503, Some("1"), true),
            (504, None, false),
        ] {
            for body in ["", json] {
                let mut response = Response::new(HttpBody::from(Bytes::from(body)));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                let seconds = retry_after.map(|it| (RETRY_AFTER, HeaderValue::from_static(it)));
                response.headers_mut().extend(seconds);
                let error = refusal(response).await.error;
                assert_eq!(error.is_unserved(), is_unserved, "{status}: {error}");
                assert_eq!(error.copy().is_unserved(), is_unserved);
                let may_be_done = status >= 500 && !is_unserved && body.is_empty();
                let said = error
                    .message()
                    .contains("retry only if the call is idempotent");
                assert_eq!(said, may_be_done, "{status}: {error}");
            }
        }
    }
}

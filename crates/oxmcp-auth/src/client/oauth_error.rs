//! Errors of OAuth endpoints, as sentences without secrets.

use http::StatusCode;
use serde::Deserialize;

use crate::{
    error::{AuthError, AuthErrorKind},
    exchange::Response,
};

/// Characters of a description that are shown.
const MAX_SHOWN: usize = 300;

/// The body of an error ([RFC 6749, section 5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2)).
#[derive(Default, Deserialize)]
struct ErrorBody {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    error_description: Option<String>,
}

/// The code of a response that is an error, if it has one.
pub(super) fn code(response: &Response) -> Option<String> {
    read(response).error
}

fn read(response: &Response) -> ErrorBody {
    let body = response.body().as_ref();
    if body.len() > crate::metadata::document::MAX_DOCUMENT {
        return ErrorBody::default();
    }
    serde_json::from_slice(body).unwrap_or_default()
}

/// The error of a response: what was asked, what came, and nothing that was secret in the request.
pub(super) fn of(response: &Response, asked: &str, secrets: &[&str]) -> AuthError {
    let status = response.status();
    let body = read(response);
    let code = body.error.map(|code| shown(&code, secrets));
    let description = body.error_description.map(|text| shown(&text, secrets));
    let is_unavailable = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || matches!(
            code.as_deref(),
            Some("temporarily_unavailable" | "server_error")
        );
    let mut message = format!("{asked} answered {}", status.as_u16());
    if let Some(code) = &code {
        message = format!("{message}, {code}");
    }
    if let Some(description) = description {
        message = format!("{message}: {description}");
    }
    if is_unavailable {
        return AuthError::new(AuthErrorKind::Unavailable, message);
    }
    AuthError::refused(message, code.as_deref())
}

/// A peer's text as it may be shown: short, without control characters, and without what was secret.
pub(super) fn shown(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|it| !it.is_empty()) {
        text = text.replace(secret, "…");
    }
    text.chars()
        .take(MAX_SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

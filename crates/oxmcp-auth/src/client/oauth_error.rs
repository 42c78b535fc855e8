//! Errors of OAuth endpoints, with messages without secrets.

use http::{HeaderMap, HeaderName, StatusCode, header::AUTHORIZATION};
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::{authentication::Form, identity::Client};
use crate::{error::AuthError, exchange::Response, metadata::document, secret::Secret};

/// The most characters of a description that are shown.
const MAX_SHOWN: usize = 300;

/// The parameters of a form that are secrets.
const SECRET_PARAMETERS: [&str; 8] = [
    "code",
    "code_verifier",
    "refresh_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "subject_token",
    "token",
];

/// The secrets of a request, in the forms in which its receiver may quote them: plain, and encoded as in the form or the
/// header. The longest come first, since one may be part of another.
#[derive(Debug, Default)]
pub(crate) struct SentSecrets(Vec<Secret>);

impl SentSecrets {
    pub(crate) fn of(client: Option<&Client>, form: &Form, headers: &HeaderMap) -> Self {
        let in_form = form
            .iter()
            .filter(|(name, _)| SECRET_PARAMETERS.contains(name))
            .map(|(_, value)| value);
        let of_client = client.and_then(Client::secret);
        let plain = in_form.chain(of_client).flat_map(|secret| {
            let encoded: String = byte_serialize(secret.expose().as_bytes()).collect();
            [secret.clone(), encoded.into()]
        });
        let in_headers = [AUTHORIZATION, HeaderName::from_static("dpop")]
            .into_iter()
            .filter_map(|name| headers.get(name)?.to_str().ok())
            .map(|value| value.rsplit(' ').next().unwrap_or(value).into());
        let all = plain.chain(in_headers);
        let mut all: Vec<_> = all.filter(|it: &Secret| !it.expose().is_empty()).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.expose().len()));
        Self(all)
    }

    fn cut_from(&self, text: &str) -> String {
        let cut = |text: String, secret: &Secret| text.replace(secret.expose(), "…");
        self.0.iter().fold(text.to_owned(), cut)
    }
}

/// The body of an error response ([RFC 6749, section 5.2](https://www.rfc-editor.org/rfc/rfc6749#section-5.2)).
#[derive(Default)]
struct ErrorBody {
    code: Option<String>,
    description: Option<String>,
}

/// The error code of a response, if it has one.
pub(crate) fn code(response: &Response) -> Option<String> {
    read(response).code
}

/// Reads an error in the forms that servers use: the standard one, an object with a code and a message, or text.
fn read(response: &Response) -> ErrorBody {
    let body = document::without_mark(response.body().as_ref());
    if body.len() > document::MAX_DOCUMENT {
        return ErrorBody::default();
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        let text = String::from_utf8_lossy(body);
        let text = Some(text.trim()).filter(|it| !it.is_empty() && !it.starts_with(['<', '{']));
        return ErrorBody {
            code: None,
            description: text.map(str::to_owned),
        };
    };
    let error = value.get("error").filter(|it| !it.is_null());
    let inner = error.filter(|it| it.is_object()).unwrap_or(&value);
    let first = |from: &Value, names: &[&str]| {
        let texts = names.iter().filter_map(|name| from.get(name)?.as_str());
        texts.map(str::to_owned).find(|it| !it.is_empty())
    };
    let code = match error {
        Some(Value::String(code)) if !code.is_empty() => Some(code.clone()),
        Some(inner) => first(inner, &["error", "code", "status", "type"]),
        None => None,
    };
    let names = ["error_description", "description", "message", "detail"];
    ErrorBody {
        code,
        description: first(inner, &names).or_else(|| first(&value, &names)),
    }
}

/// The error of a response, whose message names the request and the response, and none of the secrets of the request.
pub(crate) fn of(response: &Response, asked: &str, sent: &SentSecrets) -> AuthError {
    let status = response.status();
    let body = read(response);
    let code = body.code.map(|code| shown(&sent.cut_from(&code)));
    let description = body.description.map(|text| shown(&sent.cut_from(&text)));
    let is_unavailable = status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || matches!(
            code.as_deref(),
            Some("temporarily_unavailable" | "server_error")
        );
    let mut answer = status.as_u16().to_string();
    if let Some(code) = &code {
        answer = format!("{answer}, {code}");
    }
    if let Some(description) = description {
        answer = format!("{answer}: {description}");
    }
    let refused = AuthError::refused(format!("{asked} failed with {answer}"), code.as_deref());
    match is_unavailable {
        true => AuthError::unavailable(refused.message()),
        false => refused,
    }
}

/// A peer's text for messages: shortened, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars()
        .take(MAX_SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

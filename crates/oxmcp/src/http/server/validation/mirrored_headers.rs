//! Headers that repeat what the body says.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, header::AsHeaderName};

use super::{
    message::{Message, member},
    refusal::Fault,
    rungs::Verdict,
};
use crate::{
    http::names::{METHOD, NAME},
    json::Text,
    protocol::{
        RequestParams,
        http_headers::{Given, ParamHeaders, decode},
        method::{self, REQUESTS_TO_SERVER},
    },
};

/// What stands under the name of a header.
fn given<'h>(headers: &'h HeaderMap, name: impl AsHeaderName) -> Given<'h> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Given::Nothing,
        (Some(value), None) => Given::Value(value.as_bytes()),
        (Some(_), Some(_)) => Given::Several,
    }
}

pub(super) fn is_repeated(headers: &HeaderMap, name: &str) -> bool {
    given(headers, name) == Given::Several
}

/// The value of a header that is never encoded.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Cow<'h, str>> {
    let value = headers.get(name)?.as_bytes().trim_ascii();
    Some(String::from_utf8_lossy(value))
}

/// The step [`Rung::MethodHeader`](super::rungs::Rung::MethodHeader).
pub(super) fn method(message: &Message<'_>) -> Verdict {
    let value = message.headers.get(&METHOD);
    if value.is_some_and(|value| value.as_bytes() == message.method.as_bytes()) {
        // What nearly all clients send, if they send it.
        return Ok(());
    }
    let header = text(message.headers, &METHOD);
    let must = message.is_modern_request();
    match header {
        None if must => Err("Header mismatch: Mcp-Method is missing".into()),
        Some(header) if (must || message.is_modern_notification()) && header != message.method => {
            let body = message.method;
            Err(
                format!("Header mismatch: Mcp-Method says {header:?}, and the body says {body:?}")
                    .into(),
            )
        }
        _ => Ok(()),
    }
}

/// The step [`Rung::NameHeader`](super::rungs::Rung::NameHeader).
pub(super) fn name(message: &Message<'_>) -> Verdict {
    if !message.is_modern_request() {
        return Ok(());
    }
    let row = method::find(REQUESTS_TO_SERVER, message.method);
    let said = |name: &str| member(message.params, name).and_then(Text::as_str);
    if let Some(name) = row.and_then(|row| row.named) {
        let given = given(message.headers, NAME);
        repeats(NAME.as_str(), given, said(name).as_deref())?;
    }
    let mut extensions = message.served.extensions.headers_of(message.method);
    extensions.try_for_each(|(name, header)| {
        let given = given(message.headers, header);
        repeats(header, given, said(name).as_deref())
    })
}

/// Whether a header says what the body says. Where the body says nothing that can be read, whoever reads it will complain.
fn repeats(header: &str, given: Given<'_>, body: Option<&str>) -> Verdict {
    let mismatch = |what: &str| Err(Fault::from(format!("Header mismatch: {header} {what}")));
    let value = match (given, body) {
        (Given::Nothing, None) => return Ok(()),
        (Given::Nothing, Some(_)) => return mismatch("is missing"),
        (Given::Several, _) => return mismatch("stands there twice"),
        (Given::Value(value), Some(body)) if is_plainly(value, body) => return Ok(()),
        (Given::Value(value), _) => value,
    };
    match (decode(value), body) {
        (Err(why), _) => mismatch(&format!("cannot be read: {why}")),
        (Ok(header), Some(body)) if header == body => Ok(()),
        (Ok(header), Some(body)) => {
            mismatch(&format!("says {header:?}, and the body says {body:?}"))
        }
        (Ok(header), None) => mismatch(&format!("says {header:?}, and the body says nothing")),
    }
}

/// Whether a value says a text without encoding it, as most do.
fn is_plainly(value: &[u8], text: &str) -> bool {
    value == text.as_bytes() && value.iter().all(u8::is_ascii_graphic) && !value.starts_with(b"=?")
}

/// The step [`Rung::ParamHeaders`](super::rungs::Rung::ParamHeaders).
pub(super) fn tool(
    headers: &HeaderMap,
    expected: &ParamHeaders,
    params: &RequestParams<'_>,
) -> Verdict {
    let arguments = params.arguments.unwrap_or(Text::EMPTY);
    let checked = expected.check(arguments, |name| given(headers, name));
    checked.map_err(|mismatch| mismatch.to_string().into())
}

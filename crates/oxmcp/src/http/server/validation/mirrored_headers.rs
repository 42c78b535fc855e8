//! Headers that mirror members of the body: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-`.

use http::HeaderMap;
use oxmcp_json::Text;
use oxmcp_protocol::{
    http_headers::{ParamHeaders, ReceivedHeader, decode},
    internal::RequestParams,
    lenient::{Leniency, Tolerated},
    method::{self, REQUESTS_TO_SERVER},
};

use super::{
    check::{Checked, Failure},
    head::{given, text},
    message::Message,
};
use crate::http::names::{METHOD, NAME};

/// [`Check::MethodHeader`](super::check::Check::MethodHeader).
pub(crate) fn method(message: &Message<'_>) -> Checked {
    if !message.is_modern() {
        return Ok(());
    }
    match text(message.headers, &METHOD) {
        None if message.is_modern_request() => {
            Err("Header mismatch: missing header `Mcp-Method`".into())
        }
        Some(header) if header != message.method => {
            let body = message.method;
            Err(
                format!("Header mismatch: `Mcp-Method` is {header:?}, but the body has {body:?}")
                    .into(),
            )
        }
        _ => Ok(()),
    }
}

/// [`Check::NameHeader`](super::check::Check::NameHeader).
pub(crate) fn name(message: &Message<'_>) -> Checked {
    if !message.is_modern_request() {
        return Ok(());
    }
    let row = method::find(REQUESTS_TO_SERVER, message.method);
    let said = |name: &str| message.params.only_member(name).and_then(Text::as_str);
    if let Some(name) = row.and_then(|row| row.named) {
        let given = given(message.headers, NAME);
        repeats(NAME.as_str(), given, said(name).as_deref())?;
    }
    let mut extensions = message.served.extensions.headers_for(message.method);
    extensions.try_for_each(|(name, header)| {
        let (given, said) = (given(message.headers, header), said(name));
        let is_missing = matches!(given, ReceivedHeader::Nothing) && said.is_some();
        if is_missing && may_be_missing(message, header) {
            return Ok(());
        }
        repeats(header, given, said.as_deref())
    })
}

/// Whether a header of an extension may be missing. Clients may know the method but not the header, and only proxies need it.
fn may_be_missing(message: &Message<'_>, header: &str) -> bool {
    let mut missing = Tolerated::new(Leniency::MissingHeader, "");
    header.clone_into(&mut missing.detail);
    let tolerance = message.served.tolerance;
    tolerance.is_some_and(|it| it.tolerate(None, message.method, missing))
}

/// Checks that a header has the same value as the body. If the member of the body cannot be parsed, the code that parses it rejects
/// it.
fn repeats(header: &str, given: ReceivedHeader<'_>, body: Option<&str>) -> Checked {
    let mismatch = |what: &str| Err(Failure::from(format!("Header mismatch: {what}")));
    let value = match (given, body) {
        (ReceivedHeader::Nothing, None) => return Ok(()),
        (ReceivedHeader::Nothing, Some(_)) => {
            return mismatch(&format!("missing header `{header}`"));
        }
        (ReceivedHeader::Several, _) => return mismatch(&format!("duplicate header `{header}`")),
        (ReceivedHeader::Value(value), _) => value,
    };
    match (decode(value), body) {
        (Err(why), _) => mismatch(&format!("invalid header `{header}`: {why}")),
        (Ok(value), Some(body)) if value == body => Ok(()),
        (Ok(value), Some(body)) => mismatch(&format!(
            "`{header}` is {value:?}, but the body has {body:?}"
        )),
        (Ok(value), None) => mismatch(&format!(
            "`{header}` is {value:?}, but the body has no value"
        )),
    }
}

/// [`Check::ParamHeaders`](super::check::Check::ParamHeaders).
pub(crate) fn params(
    headers: &HeaderMap,
    expected: &ParamHeaders,
    params: &RequestParams<'_>,
) -> Checked {
    let arguments = params.arguments.unwrap_or(Text::EMPTY);
    let checked = expected.check(arguments, |name| given(headers, name));
    checked.map_err(|mismatch| mismatch.to_string().into())
}

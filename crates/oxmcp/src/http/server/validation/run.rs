//! The order of the checks. Every endpoint starts with [`check_target`], and a protected endpoint then checks the token. The
//! 2024-11-05 transport uses no other check of this module: `sse_2024/service.rs` checks its POSTs and GETs.

use http::{HeaderMap, StatusCode, request::Parts};
use oxmcp_json::Cursor;
use oxmcp_protocol::{
    Method, Revision,
    internal::{Envelope, Era, Params, RequestParams},
    method::CallTool,
};

use super::{
    access::{self, Policy},
    check::{Check, Checked},
    head::{self, Accepted},
    message::{self, Message, Served, batched, named, unserved},
    mirrored_headers,
    refusal::Refusal,
};
use crate::{
    error::Error,
    http::server::response::{self, Refused},
    server::Features,
};

/// Checks `Host` and `Origin`.
///
/// # Errors
/// If a check fails: the refusal.
pub(crate) fn check_access(policy: &Policy, parts: &Parts) -> Result<(), Refusal> {
    require(Check::Host, access::host(policy, parts))?;
    require(Check::Origin, access::origin(policy, parts))
}

/// Checks `Host` and `Origin`, and rejects requests for metadata that is not served. An endpoint with metadata has answered
/// requests for it before.
///
/// # Errors
/// The response that refuses the request.
pub(crate) fn check_target(policy: &Policy, parts: &Parts) -> Result<(), Refused> {
    check_access(policy, parts)?;
    if head::seeks_metadata(parts) {
        let why =
            Error::invalid_request("not found: this MCP endpoint does not serve this metadata");
        return Err(response::refuse(StatusCode::NOT_FOUND, None, &why));
    }
    Ok(())
}

/// Checks that a client accepts both types of responses, as a strict server requires. The head was checked before.
///
/// # Errors
/// If the client does not accept both types of responses: the refusal.
pub(crate) fn check_accept(parts: &Parts, accepted: Accepted) -> Result<(), Refusal> {
    require(Check::Accept, head::accept_both(parts, accepted))
}

/// Checks the head of a request before the body, of at most `limit` bytes, is read. Its host and origin have been checked. Returns the
/// types of responses that the client accepts.
///
/// # Errors
/// If a check fails: the refusal.
pub(crate) fn check_head(limit: usize, parts: &Parts) -> Result<Accepted, Refusal> {
    require(Check::HttpMethod, head::http_method(parts))?;
    require(Check::ContentType, head::content_type(parts))?;
    let accepted = Accepted::of(&parts.headers);
    require(Check::Accept, head::accept(parts, accepted))?;
    require(Check::BodyLength, head::body_length(limit, parts))?;
    Ok(accepted)
}

/// A message that has passed all checks.
pub(crate) struct Validated {
    pub(crate) era: Era,
    /// The error to answer with if the caller may see the tool. A caller that may not see the tool must not learn from a refusal
    /// that it exists.
    pub(crate) mismatch: Option<Error>,
}

/// Checks a message, and returns the era whose rules apply to it.
///
/// # Errors
/// The refusal, if a check fails. The caller adds the request ID.
pub(crate) fn check_message<'m>(
    features: &'m Features,
    mut message: Message<'m>,
) -> Result<Validated, Refusal> {
    message.served = Served {
        revisions: &features.revisions,
        extensions: &features.extensions,
        tolerance: Some(&features.tolerance),
    };
    require(Check::Shape, message::shape(&message))?;
    require(Check::RepeatedHeader, message::repeated_header(&message))?;
    require(Check::AmbiguousParams, message::ambiguous_params(&message))?;
    require(Check::RevisionHeader, message::revision_header(&message))?;
    require(Check::Revision, message::revision(&message))?;
    require(Check::Meta, message::meta(&message))?;
    require(Check::Method, message::method(&message))?;
    require(Check::MethodHeader, mirrored_headers::method(&message))?;
    require(Check::NameHeader, mirrored_headers::name(&message))?;
    Ok(Validated {
        mismatch: param_headers(features, &message)?,
        era: message.era(),
    })
}

/// [`Check::ParamHeaders`], which needs the tool. If only some callers may see the tool, returns the failure as a value: only the
/// code that serves the request knows whether this caller may see it.
fn param_headers(features: &Features, message: &Message<'_>) -> Result<Option<Error>, Refusal> {
    if !message.is_modern_request() || message.method != CallTool::NAME {
        return Ok(None);
    }
    let name = message.params.name.and_then(|name| name.as_str());
    let Some(expected) = name.and_then(|name| features.param_headers(&name)) else {
        return Ok(None);
    };
    let checked = mirrored_headers::params(message.headers, expected.headers, message.params);
    match require(Check::ParamHeaders, checked) {
        Err(refusal) if !expected.is_for_all => Ok(Some(refusal.error.into())),
        checked => checked.map(|()| None),
    }
}

/// Checks that the server has sessions, before a client opens the GET stream of one or ends it.
///
/// # Errors
/// The refusal, if the server has no sessions, or the header names a revision that it does not serve.
pub(crate) fn check_session(features: &Features, headers: &HeaderMap) -> Result<(), Refusal> {
    let served = &features.revisions;
    if served.iter().all(|it| it.is_modern()) {
        return Err(Refusal::no_sessions());
    }
    match named(served, headers)? {
        Some(revision) if revision.is_modern() => Err(Refusal::no_sessions()),
        Some(revision) if !served.contains(&revision) => Err(unserved(served, revision.as_str())),
        _ => Ok(()),
    }
}

/// Checks that an array of messages may be accepted, as in sessions of 2025-03-26. The session checks its revision and rejects
/// elements that are not messages.
///
/// # Errors
/// The refusal, if the body is not an array, or if a header or one of the messages is modern.
pub(crate) fn check_batch(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    named(&Revision::ALL, headers)?;
    let mut outcome = Ok(());
    let text = str::from_utf8(body).unwrap_or_default();
    let mut cursor = Cursor::new(text);
    let array = cursor.items(|cursor| {
        let element = cursor.value()?;
        let mut params = RequestParams::UNREAD;
        if let Ok(envelope) = Envelope::parse_str(element.get(), &mut params)
            && outcome.is_ok()
        {
            outcome = batched(&Message::new(headers, &envelope));
        }
        Ok(())
    });
    if array.is_err() {
        return Err(unreadable_array());
    }
    outcome.map_err(|failure| Refusal::new(Check::Shape, failure))
}

pub(crate) fn unreadable_array() -> Refusal {
    let why = "not JSON: the array is incomplete";
    Refusal::new(Check::Json, why.into())
}

fn require(check: Check, checked: Checked) -> Result<(), Refusal> {
    checked.map_err(|failure| Refusal::new(check, failure))
}

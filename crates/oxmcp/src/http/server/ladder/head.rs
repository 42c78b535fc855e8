//! What a request is, before its body is read.

use http::{Method, header, request::Parts};

use super::{
    guard::Policy,
    media::{accepts, is_json},
    message::Served,
    refusal::{Fault, Refusal},
    rungs::Verdict,
};

/// The step [`Rung::Verb`](super::Rung::Verb). GET and DELETE belong to sessions.
pub(super) fn verb(_: &Policy, served: &Served<'_>, parts: &Parts) -> Verdict {
    let (allowed, allow): (&[Method], _) = if served.has_legacy() {
        (
            &[Method::POST, Method::GET, Method::DELETE],
            "GET, POST, DELETE",
        )
    } else {
        (&[Method::POST], "POST")
    };
    if allowed.contains(&parts.method) {
        return Ok(());
    }
    let message = format!("the endpoint has no {}; it has {allow}", parts.method);
    Err(Fault::from(message).with_allow(allow))
}

/// The step [`Rung::ContentType`](super::Rung::ContentType).
pub(super) fn content_type(_: &Policy, _: &Served<'_>, parts: &Parts) -> Verdict {
    if parts.method != Method::POST || is_json(&parts.headers) {
        return Ok(());
    }
    Err("messages are sent with `Content-Type: application/json`".into())
}

/// The step [`Rung::Accept`](super::Rung::Accept). Any answer can be either, so that the client must take both.
pub(super) fn accept(_: &Policy, _: &Served<'_>, parts: &Parts) -> Verdict {
    let json = || accepts(&parts.headers, "application", "json");
    let events = || accepts(&parts.headers, "text", "event-stream");
    match parts.method {
        Method::POST if !json() || !events() => Err(
            "a client that sends messages must take both: `Accept: application/json, text/event-stream`".into(),
        ),
        Method::GET if !events() => {
            Err("a client that listens must take events: `Accept: text/event-stream`".into())
        }
        _ => Ok(()),
    }
}

/// The step [`Rung::Length`](super::Rung::Length), for bodies that say how long they are.
pub(super) fn length(policy: &Policy, _: &Served<'_>, parts: &Parts) -> Verdict {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok());
    let limit = policy.max_body_bytes;
    if length
        .and_then(|length| length.parse::<u128>().ok())
        .is_some_and(|length| length > limit as u128)
    {
        return Err(Refusal::too_long(limit).error.message.into());
    }
    Ok(())
}

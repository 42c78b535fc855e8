//! What a request is, before its body is read.

use http::{Method, header, request::Parts};

use super::{
    media::{accepts, accepts_both, is_json},
    refusal::{Fault, Refusal},
    rungs::Verdict,
};

const ALLOW: &str = "GET, POST, DELETE";

/// The step [`Rung::Verb`](super::rungs::Rung::Verb). GET and DELETE belong to sessions, which whoever serves them looks for.
pub(super) fn verb(_: usize, parts: &Parts) -> Verdict {
    if matches!(parts.method, Method::GET | Method::POST | Method::DELETE) {
        return Ok(());
    }
    let message = format!("the endpoint has no {}; it has {ALLOW}", parts.method);
    Err(Fault::from(message).with_allow(ALLOW))
}

/// The step [`Rung::ContentType`](super::rungs::Rung::ContentType).
pub(super) fn content_type(_: usize, parts: &Parts) -> Verdict {
    if parts.method != Method::POST || is_json(&parts.headers) {
        return Ok(());
    }
    Err("messages are sent with `Content-Type: application/json`".into())
}

/// The step [`Rung::Accept`](super::rungs::Rung::Accept). Any answer can be either, so that the client must take both.
pub(super) fn accept(_: usize, parts: &Parts) -> Verdict {
    let events = || accepts(&parts.headers, "text", "event-stream");
    match parts.method {
        Method::POST if !accepts_both(&parts.headers) => Err(
            "a client that sends messages must take both: `Accept: application/json, text/event-stream`".into(),
        ),
        Method::GET if !events() => {
            Err("a client that listens must take events: `Accept: text/event-stream`".into())
        }
        _ => Ok(()),
    }
}

/// The step [`Rung::Length`](super::rungs::Rung::Length), for bodies that say how long they are.
pub(super) fn length(limit: usize, parts: &Parts) -> Verdict {
    let length = parts.headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok());
    if length
        .and_then(|length| length.parse::<u128>().ok())
        .is_some_and(|length| length > limit as u128)
    {
        return Err(Refusal::too_long(limit).error.message.into());
    }
    Ok(())
}

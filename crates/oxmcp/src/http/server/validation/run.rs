//! Going over the table.

use std::cell::OnceCell;

use http::{HeaderMap, request::Parts};

use super::{
    guard::Policy,
    message::{Admitted, Message, Served, batched, named, unserved},
    mirrored::tool,
    refusal::{Fault, Refusal},
    rungs::{Check, RUNGS, Rung},
};
use crate::{
    Error, Revision,
    extension::Extensions,
    json::Cursor,
    jsonrpc::{Envelope, Params},
    protocol::{Method, RequestParams, method::CallTool},
    server::Features,
};

/// Whether a request may come from where it comes from. For endpoints that have the other steps not, or otherwise.
///
/// # Errors
/// How it is refused.
pub(in crate::http::server) fn guard(policy: &Policy, parts: &Parts) -> Result<(), Refusal> {
    climb(|check| match check {
        Check::Guard(check) => check(policy, parts),
        _ => Ok(()),
    })
}

/// Whether a request may come from where it comes from, and its body, of at most `limit` bytes, is worth reading.
///
/// # Errors
/// How it is refused.
pub(in crate::http::server) fn head(
    policy: &Policy,
    limit: usize,
    parts: &Parts,
) -> Result<(), Refusal> {
    climb(|check| match check {
        Check::Guard(check) => check(policy, parts),
        Check::Head(check) => check(limit, parts),
        _ => Ok(()),
    })
}

/// What came up the ladder.
pub(in crate::http::server) struct Climbed {
    pub(in crate::http::server) admitted: Admitted,
    /// The error that answers where the caller sees the tool that the request names. Who does not see it must not
    /// learn from a refusal that there is one.
    pub(in crate::http::server) doubt: Option<Error>,
}

/// By which rules a message is to be served, if it is.
///
/// # Errors
/// How it is refused. The id is the caller's to echo.
pub(in crate::http::server) fn message(
    features: &Features,
    headers: &HeaderMap,
    envelope: &Envelope<'_, RequestParams<'_>>,
) -> Result<Climbed, Refusal> {
    let served = Served {
        revisions: &features.revisions,
        extensions: &features.extensions,
    };
    let message = Message::new(&served, headers, envelope);
    let doubt = OnceCell::new();
    climb(|check| match check {
        Check::Message(check) => check(&message),
        Check::Tool if message.is_modern_request() && message.method == CallTool::NAME => {
            let name = message.params.name.and_then(|name| name.as_str());
            let Some(expected) = name.and_then(|name| features.param_headers(&name)) else {
                return Ok(());
            };
            let checked = tool(headers, expected.headers, message.params);
            if expected.is_for_all {
                return checked;
            }
            checked.or_else(|fault| {
                // It is decided where the request is served, since nobody else can say who sees what.
                doubt.set(Refusal::new(Rung::ParamHeaders, fault)).ok();
                Ok(())
            })
        }
        _ => Ok(()),
    })?;
    let doubt = doubt.into_inner();
    Ok(Climbed {
        admitted: message.admitted(),
        doubt: doubt.map(|refusal| refusal.error.into()),
    })
}

/// Whether a session may be listened to, or ended.
///
/// # Errors
/// How it is refused: where the server has no sessions, or another revision is named than those that it serves.
pub(in crate::http::server) fn session(
    features: &Features,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
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

/// Whether an array of messages may be taken, which it is in sessions of 2025-03-26: that is the session's to see. Elements
/// that are no messages are, too.
///
/// # Errors
/// How it is refused: where it is no array, or a header or one of the messages is modern.
pub(in crate::http::server) fn batch(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    let served = Served {
        revisions: &Revision::ALL,
        extensions: &Extensions::default(),
    };
    named(served.revisions, headers)?;
    let mut verdict = Ok(());
    let text = str::from_utf8(body).unwrap_or_default();
    let mut cursor = Cursor::new(text);
    let array = cursor.items(|cursor| {
        let element = cursor.value()?;
        let mut params = RequestParams::UNREAD;
        if let Ok(envelope) = Envelope::parse_str(element.get(), &mut params)
            && verdict.is_ok()
        {
            verdict = batched(&Message::new(&served, headers, &envelope));
        }
        Ok(())
    });
    if array.is_err() {
        return Err(Refusal::new(
            Rung::Json,
            "not JSON, though it begins as an array".into(),
        ));
    }
    verdict.map_err(|fault| Refusal::new(Rung::Shape, fault))
}

/// Takes all steps, each by `step`, up to the first that fails.
fn climb(step: impl Fn(Check) -> Result<(), Fault>) -> Result<(), Refusal> {
    RUNGS
        .iter()
        .try_for_each(|row| step(row.check).map_err(|fault| Refusal::new(row.rung, fault)))
}

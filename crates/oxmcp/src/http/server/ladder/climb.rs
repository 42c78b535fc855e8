//! Going over the table.

use http::{HeaderMap, request::Parts};

use super::{
    guard::Policy,
    message::{Admitted, Message, Served, batched},
    mirrored::tool,
    refusal::{Fault, Refusal},
    rungs::{Check, RUNGS, Rung},
};
use crate::{
    jsonrpc::Envelope,
    protocol::{RequestParams, http_headers::ParamHeaders},
};

/// Whether a request may come from where it comes from. For every endpoint, and every method of HTTP.
///
/// # Errors
/// How it is refused.
pub(crate) fn guard(policy: &Policy, parts: &Parts) -> Result<(), Refusal> {
    climb(|check| match check {
        Check::Guard(check) => check(policy, parts),
        _ => Ok(()),
    })
}

/// Whether the body of a request is worth reading.
///
/// # Errors
/// How it is refused.
pub(crate) fn head(policy: &Policy, served: &Served<'_>, parts: &Parts) -> Result<(), Refusal> {
    climb(|check| match check {
        Check::Head(check) => check(policy, served, parts),
        _ => Ok(()),
    })
}

/// By which rules a message is to be served, if it is.
///
/// # Errors
/// How it is refused.
pub(crate) fn admit(
    served: &Served<'_>,
    headers: &HeaderMap,
    envelope: &Envelope<'_, RequestParams<'_>>,
) -> Result<Admitted, Refusal> {
    let message = Message::new(served, headers, envelope);
    climb(|check| match check {
        Check::Message(check) => check(&message),
        _ => Ok(()),
    })?;
    Ok(message.admitted())
}

/// Whether an array of messages may be read one by one: it may in a session of 2025-03-26, which is the caller's to see.
///
/// # Errors
/// How it is refused: where a header or one of the messages is modern.
pub(crate) fn admit_batch<'m, 'p: 'm>(
    served: &Served<'_>,
    headers: &HeaderMap,
    mut messages: impl Iterator<Item = &'m Envelope<'p, RequestParams<'p>>>,
) -> Result<(), Refusal> {
    messages
        .try_for_each(|envelope| batched(&Message::new(served, headers, envelope)))
        .map_err(|fault| Refusal::new(Rung::Shape, fault))
}

/// Whether the headers of a call of a tool repeat its arguments. Only modern calls do.
///
/// # Errors
/// How it is refused.
pub(crate) fn check_params(
    headers: &HeaderMap,
    expected: &ParamHeaders,
    params: Option<&RequestParams<'_>>,
) -> Result<(), Refusal> {
    climb(|check| match check {
        Check::Tool => tool(headers, expected, params),
        _ => Ok(()),
    })
}

/// Takes all steps, each by `step`, up to the first that fails.
fn climb(step: impl Fn(Check) -> Result<(), Fault>) -> Result<(), Refusal> {
    RUNGS
        .iter()
        .try_for_each(|row| step(row.check).map_err(|fault| Refusal::new(row.rung, fault)))
}

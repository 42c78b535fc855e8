//! Negotiation of the revision with a server, as pure functions.
//! See [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning), and the rules for
//! [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility) and for
//! [HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{jsonrpc::error::ErrorCode, revision::version::Revision};

/// The next step after the response to `server/discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum ProbeOutcome {
    /// The server is modern, and supports this revision.
    Modern(Revision),
    /// The server is modern but has refused the requested revision: repeat the request in this one, once.
    AskAgain(Revision),
    /// The server is legacy: open a session with `initialize`.
    Legacy,
    /// The response shows neither, or the server and client have no common revision. The user must see the error.
    Surface,
}

/// Decides after a `DiscoverResult`. `theirs` are the revision names that it lists, `ours` the revisions that this
/// client supports.
#[must_use]
pub fn on_discovered(theirs: &[String], ours: &[Revision]) -> ProbeOutcome {
    match newest_common(theirs, ours) {
        Some(revision) if revision.is_modern() => ProbeOutcome::Modern(revision),
        Some(_) => ProbeOutcome::Legacy,
        None => ProbeOutcome::Surface,
    }
}

/// The parts of a failure of `server/discover` or `initialize` that matter for the choice of the revision.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct ProbeFailure<'a> {
    /// The status of the HTTP response that carried the error.
    pub http_status: Option<u16>,
    /// The error code, if it is a JSON-RPC error.
    pub code: Option<ErrorCode>,
    /// The data of a JSON-RPC error.
    pub data: Option<&'a RawValue>,
    /// Whether the response was a result that could not be read.
    pub is_unreadable: bool,
}

/// Decides after an error and, over HTTP, its status. An error that does not depend on the era (a timeout, missing
/// credentials, a failed connection or proxy) is surfaced; an error that only modern servers send means modern; any
/// other response means legacy, and so does an unreadable result: some servers respond with an empty result to methods
/// that they do not know, and some with 500.
pub fn on_error<'a>(error: impl Into<ProbeFailure<'a>>, ours: &[Revision]) -> ProbeOutcome {
    let error = error.into();
    let is_fault = matches!(error.http_status, Some(500 | 501));
    if !is_fault && !is_answer(error) {
        return ProbeOutcome::Surface;
    }
    let Some(code) = error.code else {
        return ProbeOutcome::Legacy;
    };
    match code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => on_discovered_by_error(error, ours),
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY => ProbeOutcome::Surface,
        _ => ProbeOutcome::Legacy,
    }
}

/// Whether an HTTP status shows nothing about the revisions of the server, whatever the body is: it concerns the caller or
/// the rate of calls, or comes from a proxy. A redirection that was not followed leads to another server.
fn is_inconclusive(status: u16) -> bool {
    // Credentials, payment, and requests to retry later.
    const OF_THE_CALLER: [u16; 7] = [401, 402, 403, 407, 408, 425, 429];
    OF_THE_CALLER.contains(&status) || !matches!(status, 200..=299 | 400..=499)
}

/// Returns whether an error is the server's own response to the request, even if it is not a JSON-RPC error.
pub fn is_answer<'a>(error: impl Into<ProbeFailure<'a>>) -> bool {
    let error = error.into();
    match error.http_status {
        Some(status) => !is_inconclusive(status),
        None => error.code.is_some() || error.is_unreadable,
    }
}

/// Decides after an error response to `initialize`: returns the revision to try instead, if the server names one.
pub fn on_refused<'a>(
    error: impl Into<ProbeFailure<'a>>,
    asked: Revision,
    ours: &[Revision],
) -> Option<Revision> {
    newest_common(&supported_versions(error.into())?, ours).filter(|revision| *revision != asked)
}

/// The names of the revisions that a server lists in an error.
fn supported_versions(error: ProbeFailure<'_>) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data: Data = serde_json::from_str(error.data?.get()).ok()?;
    Some(data.supported)
}

fn on_discovered_by_error(error: ProbeFailure<'_>, ours: &[Revision]) -> ProbeOutcome {
    let Some(supported) = supported_versions(error) else {
        return ProbeOutcome::Surface;
    };
    match on_discovered(&supported, ours) {
        // Even if it is the refused revision: another node of the server may accept it.
        ProbeOutcome::Modern(revision) => ProbeOutcome::AskAgain(revision),
        other => other,
    }
}

fn newest_common(theirs: &[String], ours: &[Revision]) -> Option<Revision> {
    theirs
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|revision| ours.contains(revision))
        .max()
}

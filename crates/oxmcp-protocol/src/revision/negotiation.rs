//! Negotiation: the revision to speak with a server, as pure decisions.
//! See [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning), and the rules for
//! [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility) and for
//! [HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{jsonrpc::error::ErrorCode, revision::version::Revision};

/// What to do after the answer to `server/discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "only the SDK may use it")]
pub enum ProbeOutcome {
    /// The server is modern, and this is the revision to speak.
    Modern(Revision),
    /// The server is modern but has refused the revision that was asked for: ask again in this one, once.
    AskAgain(Revision),
    /// The server is legacy: open a session with `initialize`.
    Legacy,
    /// Neither can be told, or there is no revision that both speak. The error is what the user must see.
    Surface,
}

/// Decides on a `DiscoverResult`. `theirs` are the names that it lists, `ours` what this client may speak.
#[must_use]
pub fn on_discovered(theirs: &[String], ours: &[Revision]) -> ProbeOutcome {
    match newest_common(theirs, ours) {
        Some(revision) if revision.is_modern() => ProbeOutcome::Modern(revision),
        Some(_) => ProbeOutcome::Legacy,
        None => ProbeOutcome::Surface,
    }
}

/// Error that answered a question about revisions, as far as it says something about them.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "only the SDK may use it")]
pub struct ProbeFailure<'a> {
    /// The status of the HTTP answer that it came with.
    pub http_status: Option<u16>,
    /// The code, where it is a JSON-RPC error.
    pub code: Option<ErrorCode>,
    /// The data of a JSON-RPC error.
    pub data: Option<&'a RawValue>,
    /// Whether there was a result, which makes no sense.
    pub is_unreadable: bool,
}

/// Decides on an error, and on the status that it came with over HTTP. What says nothing about the era (a timeout, missing
/// credentials, a broken connection or server) is surfaced; an error that only modern servers know means modern; any other
/// answer means legacy, and so does one that makes no sense: some servers have an empty result for whatever they do not
/// know.
pub fn on_error<'a>(error: impl Into<ProbeFailure<'a>>, ours: &[Revision]) -> ProbeOutcome {
    let error = error.into();
    if !is_answer(error) {
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

/// Whether an HTTP status says nothing about what the server speaks, whatever its body says: it is about the caller, about
/// the rate of calls, or from a proxy on the way. A redirection that was not followed leads to another server.
fn is_inconclusive(status: u16) -> bool {
    // Credentials, payment, and "come back later".
    const OF_THE_CALLER: [u16; 7] = [401, 402, 403, 407, 408, 425, 429];
    OF_THE_CALLER.contains(&status) || !matches!(status, 200..=299 | 400..=499)
}

/// Whether an error is the server's own answer to what it was asked, be it one that is no JSON-RPC.
pub fn is_answer<'a>(error: impl Into<ProbeFailure<'a>>) -> bool {
    let error = error.into();
    match error.http_status {
        Some(status) => !is_inconclusive(status),
        None => error.code.is_some() || error.is_unreadable,
    }
}

/// Decides on an error in answer to `initialize`: the revision to try instead, where the server named one.
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
        // Be it the one that it has just refused: that is odd, and another node of the server may take it.
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

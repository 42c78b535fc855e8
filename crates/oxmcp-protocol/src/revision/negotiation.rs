//! Finding out which revision a server speaks, as pure decisions.
//! See [versioning](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning), and the rules for
//! [stdio](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio#backward-compatibility) and for
//! [HTTP](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#backward-compatibility).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{jsonrpc::error::ErrorCode, revision::version::Revision};

/// What to do after the answer to `server/discover`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
pub fn on_discovered(theirs: &[String], ours: &[Revision]) -> Verdict {
    match newest_common(theirs, ours) {
        Some(revision) if revision.is_modern() => Verdict::Modern(revision),
        Some(_) => Verdict::Legacy,
        None => Verdict::Surface,
    }
}

/// Error that answered a question about revisions, as far as it says something about them.
#[derive(Clone, Copy, Debug, Default)]
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
pub fn on_error<'a>(error: impl Into<ProbeFailure<'a>>, ours: &[Revision]) -> Verdict {
    let error = error.into();
    if !is_answer(error) {
        return Verdict::Surface;
    }
    let Some(code) = error.code else {
        return Verdict::Legacy;
    };
    match code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => on_discovered_by_error(error, ours),
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY => Verdict::Surface,
        _ => Verdict::Legacy,
    }
}

/// Whether an HTTP status says nothing about what the server speaks, whatever its body says: it is about who asks, about
/// how often, or from somebody on the way. A redirection that was not followed leads to another server.
fn says_nothing(status: u16) -> bool {
    // Credentials, payment, and "come back later".
    const OF_THE_CALLER: [u16; 7] = [401, 402, 403, 407, 408, 425, 429];
    OF_THE_CALLER.contains(&status) || !matches!(status, 200..=299 | 400..=499)
}

/// Whether an error is the server's own answer to what it was asked, be it one that is no JSON-RPC.
pub fn is_answer<'a>(error: impl Into<ProbeFailure<'a>>) -> bool {
    let error = error.into();
    match error.http_status {
        Some(status) => !says_nothing(status),
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

fn on_discovered_by_error(error: ProbeFailure<'_>, ours: &[Revision]) -> Verdict {
    let Some(supported) = supported_versions(error) else {
        return Verdict::Surface;
    };
    match on_discovered(&supported, ours) {
        // Be it the one that it has just refused: that is odd, and another node of the server may take it.
        Verdict::Modern(revision) => Verdict::AskAgain(revision),
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

#[cfg(test)]
mod tests {
use serde_json::json;

use super::*;

    const ALL: [Revision; 5] = Revision::ALL;
    const LATEST: Revision = Revision::LATEST;

    fn unsupported(supported: &[&str]) -> Error {
        Error::protocol(-32022, "no").with_data(json!({"supported": supported, "requested": "x"}))
    }

    #[test]
    fn a_discovery_names_the_newest_common_revision() {
        let table: &[(&[&str], &[Revision], Verdict)] = &[
            (&["2026-07-28"], &ALL, Verdict::Modern(LATEST)),
            (
                &["2025-11-25", "2026-07-28", "2099-01-01"],
                &ALL,
                Verdict::Modern(LATEST),
            ),
            (&["2025-11-25"], &ALL, Verdict::Legacy),
            (&["2099-01-01"], &ALL, Verdict::Surface),
            (&[], &ALL, Verdict::Surface),
            (&["2026-07-28"], &[Revision::V2025_11_25], Verdict::Surface),
        ];
        for (theirs, ours, verdict) in table {
            let names: Vec<_> = theirs.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(on_discovered(&names, ours), *verdict, "{theirs:?}");
        }
    }

    #[test]
    fn a_refusal_that_names_revisions_is_followed_once() {
        let asked = Revision::LATEST_LEGACY;
        let table = [
            (unsupported(&["2026-07-28"]), Some(LATEST)),
            (unsupported(&["2024-11-05"]), Some(Revision::V2024_11_05)),
            (unsupported(&["2025-11-25"]), None),
            (unsupported(&["1999-01-01"]), None),
            (Error::invalid_params("no names"), None),
        ];
        for (error, next) in table {
            assert_eq!(on_refused(&error, asked, &ALL), next, "{error}");
        }
    }

    #[test]
    fn an_error_tells_the_era_or_nothing() {
        let table = [
            (Error::method_not_found("server/discover"), Verdict::Legacy),
            (Error::invalid_params("what?"), Verdict::Legacy),
            (Error::protocol(-32000, "not initialized"), Verdict::Legacy),
            (Error::protocol(0, "odd"), Verdict::Legacy),
            (Error::protocol(-32020, "header"), Verdict::Surface),
            (Error::protocol(-32021, "capability"), Verdict::Surface),
            (Error::protocol(-32022, "no data"), Verdict::Surface),
            (unsupported(&["2025-11-25", "2024-11-05"]), Verdict::Legacy),
            (unsupported(&["2099-01-01"]), Verdict::Surface),
            (unsupported(&["2026-07-28"]), Verdict::AskAgain(LATEST)),
            (Error::timeout("slow"), Verdict::Surface),
            (Error::closed("gone"), Verdict::Surface),
            (Error::decode("no supportedVersions"), Verdict::Legacy),
        ];
        for (error, verdict) in table {
            assert_eq!(on_error(&error, &ALL), verdict, "{error}");
        }
    }

    /// Errors of every kind, with what they mean.
    fn of_every_kind(status: u16) -> [(Error, Verdict); 8] {
        [
            (Error::closed("no JSON-RPC"), Verdict::Legacy),
            (Error::method_not_found("server/discover"), Verdict::Legacy),
            (Error::protocol(-32000, "no session"), Verdict::Legacy),
            (Error::decode("no result"), Verdict::Legacy),
            (unsupported(&["2025-11-25"]), Verdict::Legacy),
            (unsupported(&["2026-07-28"]), Verdict::AskAgain(LATEST)),
            (Error::protocol(-32020, "header"), Verdict::Surface),
            (Error::protocol(-32021, "capability"), Verdict::Surface),
        ]
        .map(|(error, verdict)| (error.with_http_status(status), verdict))
    }

    #[test]
    fn w14_a_status_of_http_tells_the_era_or_nothing() {
        for status in [
            301, 302, 307, 308, 401, 402, 403, 407, 408, 425, 429, 500, 502, 503, 504, 599,
        ] {
            for (error, _) in of_every_kind(status) {
                let verdict = on_error(&error, &ALL);
                assert_eq!(verdict, Verdict::Surface, "{status} {error}");
                assert!(!is_answer(&error), "{status} {error}");
            }
        }
        for status in [
            200, 202, 204, 400, 404, 405, 406, 409, 410, 411, 413, 415, 421, 422, 426,
        ] {
            for (error, verdict) in of_every_kind(status) {
                assert_eq!(on_error(&error, &ALL), verdict, "{status} {error}");
                assert!(is_answer(&error), "{status} {error}");
            }
        }
    }

    #[test]
    fn w14_silence_and_a_broken_network_are_no_answers() {
        for error in [
            Error::timeout("slow"),
            Error::closed("gone"),
            Error::unreachable("no such host"),
            Error::network("cut off"),
        ] {
            assert!(!is_answer(&error), "{error}");
            assert_eq!(on_error(&error, &ALL), Verdict::Surface, "{error}");
        }
    }
}

//! Tests of negotiation: the decisions on errors of the SDK.

use oxmcp_protocol::{
    Revision,
    internal::negotiation::{ProbeOutcome, is_answer, on_discovered, on_error, on_refused},
};
use serde_json::json;

use super::Error;

const ALL: [Revision; 5] = Revision::ALL;
const LATEST: Revision = Revision::LATEST;

fn unsupported(supported: &[&str]) -> Error {
    Error::protocol(-32022, "no").with_data(json!({"supported": supported, "requested": "x"}))
}

#[test]
fn discovery_selects_the_newest_common_revision() {
    let table: &[(&[&str], &[Revision], ProbeOutcome)] = &[
        (&["2026-07-28"], &ALL, ProbeOutcome::Modern(LATEST)),
        (
            &["2025-11-25", "2026-07-28", "2099-01-01"],
            &ALL,
            ProbeOutcome::Modern(LATEST),
        ),
        (&["2025-11-25"], &ALL, ProbeOutcome::Legacy),
        (&["2099-01-01"], &ALL, ProbeOutcome::Surface),
        (&[], &ALL, ProbeOutcome::Surface),
        (
            &["2026-07-28"],
            &[Revision::V2025_11_25],
            ProbeOutcome::Surface,
        ),
    ];
    for (theirs, ours, outcome) in table {
        let names: Vec<_> = theirs.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(on_discovered(&names, ours), *outcome, "{theirs:?}");
    }
}

#[test]
fn refusal_naming_revisions_is_followed_once() {
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
fn error_reveals_the_era_or_nothing() {
    let table = [
        (
            Error::method_not_found("server/discover"),
            ProbeOutcome::Legacy,
        ),
        (Error::invalid_params("what?"), ProbeOutcome::Legacy),
        (
            Error::protocol(-32000, "not initialized"),
            ProbeOutcome::Legacy,
        ),
        (Error::protocol(0, "odd"), ProbeOutcome::Legacy),
        (Error::protocol(-32020, "header"), ProbeOutcome::Surface),
        (Error::protocol(-32021, "capability"), ProbeOutcome::Surface),
        (Error::protocol(-32022, "no data"), ProbeOutcome::Surface),
        (
            unsupported(&["2025-11-25", "2024-11-05"]),
            ProbeOutcome::Legacy,
        ),
        (unsupported(&["2099-01-01"]), ProbeOutcome::Surface),
        (unsupported(&["2026-07-28"]), ProbeOutcome::AskAgain(LATEST)),
        (Error::timeout("slow"), ProbeOutcome::Surface),
        (Error::closed("gone"), ProbeOutcome::Surface),
        (Error::decode("no supportedVersions"), ProbeOutcome::Legacy),
    ];
    for (error, outcome) in table {
        assert_eq!(on_error(&error, &ALL), outcome, "{error}");
    }
}

/// Errors of every kind, with the outcome of a probe that fails with them.
fn of_every_kind(status: u16) -> [(Error, ProbeOutcome); 8] {
    [
        (Error::closed("no JSON-RPC"), ProbeOutcome::Legacy),
        (
            Error::method_not_found("server/discover"),
            ProbeOutcome::Legacy,
        ),
        (Error::protocol(-32000, "no session"), ProbeOutcome::Legacy),
        (Error::decode("no result"), ProbeOutcome::Legacy),
        (unsupported(&["2025-11-25"]), ProbeOutcome::Legacy),
        (unsupported(&["2026-07-28"]), ProbeOutcome::AskAgain(LATEST)),
        (Error::protocol(-32020, "header"), ProbeOutcome::Surface),
        (Error::protocol(-32021, "capability"), ProbeOutcome::Surface),
    ]
    .map(|(error, outcome)| (error.with_http_status(status), outcome))
}

#[test]
fn http_status_reveals_the_era_or_nothing() {
    for status in [
        301, 302, 307, 308, 401, 402, 403, 407, 408, 425, 429, 502, 503, 504, 599,
    ] {
        for (error, _) in of_every_kind(status) {
            let outcome = on_error(&error, &ALL);
            assert_eq!(outcome, ProbeOutcome::Surface, "{status} {error}");
            assert!(!is_answer(&error), "{status} {error}");
        }
    }
    // A fault of the server may pass, and is then no answer.
    for status in [500, 501] {
        for (error, outcome) in of_every_kind(status) {
            assert_eq!(on_error(&error, &ALL), outcome, "{status} {error}");
            assert!(!is_answer(&error), "{status} {error}");
        }
    }
    for status in [
        200, 202, 204, 400, 404, 405, 406, 409, 410, 411, 413, 415, 421, 422, 426,
    ] {
        for (error, outcome) in of_every_kind(status) {
            assert_eq!(on_error(&error, &ALL), outcome, "{status} {error}");
            assert!(is_answer(&error), "{status} {error}");
        }
    }
}

#[test]
fn silence_and_network_errors_are_not_answers() {
    for error in [
        Error::timeout("slow"),
        Error::closed("gone"),
        Error::unreachable("no such host"),
        Error::network("cut off"),
    ] {
        assert!(!is_answer(&error), "{error}");
        assert_eq!(on_error(&error, &ALL), ProbeOutcome::Surface, "{error}");
    }
}

//! One fault for each step, and what becomes of several.

use proptest::{prelude::*, sample};
use serde_json::json;

use super::{
    super::{rungs::RUNGS, *},
    request::{Sent, meta},
};
use crate::{ErrorCode, Revision, http::server::exchange};

/// A call that has all of these faults, and no other.
fn call(faults: &[Rung]) -> Sent {
    let has = |rung| faults.contains(&rung);
    let version = if has(Rung::Version) {
        "v999.0.0"
    } else {
        "2026-07-28"
    };
    let method = if has(Rung::Method) {
        "tools/explode"
    } else {
        "tools/call"
    };
    let mut sent = Sent::post(&body(faults, version, method));
    let header = if has(Rung::Agreement) {
        "2025-11-25"
    } else {
        version
    };
    let wrong = |rung, right| if has(rung) { "wrong" } else { right };
    sent.set("mcp-protocol-version", header);
    sent.set("mcp-method", wrong(Rung::MethodHeader, method));
    sent.set("mcp-name", wrong(Rung::NameHeader, "move"));
    sent.set("mcp-param-region", wrong(Rung::ParamHeaders, "eu"));
    sent.set("content-type", wrong(Rung::ContentType, "application/json"));
    if has(Rung::Host) {
        sent.set("host", "evil.example");
    }
    if has(Rung::Origin) {
        sent.set("origin", "http://evil.example");
    }
    if has(Rung::Verb) {
        sent.verb = "PUT";
    }
    if has(Rung::Accept) {
        sent.set("accept", "application/json");
    }
    if has(Rung::Length) {
        sent.set("content-length", "9999999");
    }
    if has(Rung::Repeated) {
        let session = ("mcp-session-id".to_owned(), "x".to_owned());
        sent.headers.extend([session.clone(), session]);
    }
    sent
}

fn body(faults: &[Rung], version: &str, method: &str) -> String {
    let has = |rung| faults.contains(&rung);
    let mut meta = meta(version);
    if has(Rung::Envelope) {
        meta["io.modelcontextprotocol/clientCapabilities"] = json!([]);
    }
    let params = json!({"name": "move", "arguments": {"region": "eu"}, "_meta": meta});
    let mut body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    if has(Rung::Shape) {
        body["jsonrpc"] = json!("1.0");
    }
    let mut body = body.to_string();
    if has(Rung::Ambiguous) {
        body = body.replace(r#""arguments""#, r#""arguments":{},"arguments""#);
    }
    if has(Rung::Json) {
        body.pop();
    }
    body
}

#[test]
fn the_table_is_in_order_and_each_step_stands_there_once() {
    assert!(RUNGS.is_sorted_by(|a, b| a.rung < b.rung));
    assert_eq!(RUNGS.len(), Rung::ParamHeaders as usize + 1);
    assert!(RUNGS.iter().all(|row| !row.must.is_empty()));
    let climbed = call(&[]).climb();
    assert_eq!(climbed.unwrap(), Admitted::Modern(Revision::LATEST));
}

/// What clients see of each step. Who serves a request has statuses of its own.
#[test]
fn each_step_has_its_status_and_code() {
    let table = [
        (Rung::Host, 403, -32600),
        (Rung::Origin, 403, -32600),
        (Rung::Verb, 405, -32600),
        (Rung::ContentType, 415, -32600),
        (Rung::Accept, 406, -32600),
        (Rung::Length, 413, -32600),
        (Rung::Json, 400, -32700),
        (Rung::Shape, 400, -32600),
        (Rung::Repeated, 400, -32020),
        (Rung::Ambiguous, 400, -32602),
        (Rung::Agreement, 400, -32020),
        (Rung::Version, 400, -32022),
        (Rung::Envelope, 400, -32602),
        (Rung::Method, 404, -32601),
        (Rung::MethodHeader, 400, -32020),
        (Rung::NameHeader, 400, -32020),
        (Rung::ParamHeaders, 400, -32020),
    ];
    assert_eq!(table.len(), RUNGS.len());
    for (rung, status, code) in table {
        let refusal = call(&[rung]).fails(rung, status, code);
        assert_eq!(refusal.allow.is_some(), rung == Rung::Verb, "{rung:?}");
    }
}

/// Who serves a request can use the same codes. Then HTTP has no part in it, but for a capability that is missing.
#[test]
fn codes_of_handlers_are_no_matter_of_http() {
    for row in RUNGS {
        assert_eq!(
            exchange::status(None, Some(row.code)),
            200,
            "{:?}",
            row.rung
        );
    }
    let missing = ErrorCode::MISSING_CLIENT_CAPABILITY;
    assert_eq!(exchange::status(None, Some(missing)), 400);
}

proptest! {
    #[test]
    fn of_several_faults_the_first_in_the_table_counts(
        faults in sample::subsequence(RUNGS.iter().map(|row| row.rung).collect::<Vec<_>>(), 1..=RUNGS.len()),
    ) {
        let refusal = call(&faults).climb().unwrap_err();
        prop_assert_eq!(Some(&refusal.rung), faults.first(), "{:?}", faults);
        let row = RUNGS.iter().find(|row| row.rung == refusal.rung).unwrap();
        prop_assert_eq!((refusal.status, refusal.error.code), (row.status, row.code));
    }

    #[test]
    fn attack_16_no_header_makes_the_ladder_fail(
        name in sample::select(vec![
            "host", "origin", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name",
            "mcp-param-region", "content-length",
        ]),
        value in prop_oneof!["[ -~]{0,30}", "[\\[\\]:/@;,=?0-9a-z\t\u{80}-\u{ff}]{0,20}"],
    ) {
        let right = call(&[]);
        let was = right.headers.iter().find(|(it, _)| it == name).map(|(_, it)| it.clone());
        let sent = right.with(name, &value);
        if let Ok(admitted) = sent.climb() {
            // Only what says the same comes up.
            prop_assert_eq!(admitted, Admitted::Modern(Revision::LATEST));
            if name.starts_with("mcp-") {
                prop_assert_eq!(Some(value.trim()), was.as_deref());
            }
        }
    }
}

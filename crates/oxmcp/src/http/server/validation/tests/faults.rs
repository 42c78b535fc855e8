//! Tests with a fault for each check, and with several faults.

use oxmcp_protocol::{ErrorCode, Revision, internal::Era};
use proptest::{prelude::*, sample};
use serde_json::json;

use super::{
    super::*,
    request::{Sent, meta},
};
use crate::http::server::stateless;

/// A call with exactly these faults.
fn call(faults: &[Check]) -> Sent {
    let has = |check| faults.contains(&check);
    let version = if has(Check::Revision) {
        "v999.0.0"
    } else {
        "2026-07-28"
    };
    let method = if has(Check::Method) {
        "tools/explode"
    } else {
        "tools/call"
    };
    let mut sent = Sent::post(&body(faults, version, method));
    let header = if has(Check::RevisionHeader) {
        "2025-11-25"
    } else {
        version
    };
    let wrong = |check, right| if has(check) { "wrong" } else { right };
    sent.set("mcp-protocol-version", header);
    sent.set("mcp-method", wrong(Check::MethodHeader, method));
    sent.set("mcp-name", wrong(Check::NameHeader, "move"));
    sent.set("mcp-param-region", wrong(Check::ParamHeaders, "eu"));
    sent.set(
        "content-type",
        wrong(Check::ContentType, "application/json"),
    );
    if has(Check::Host) {
        sent.set("host", "evil.example");
    }
    if has(Check::Origin) {
        sent.set("origin", "http://evil.example");
    }
    if has(Check::HttpMethod) {
        sent.verb = "PUT";
    }
    if has(Check::Accept) {
        sent.set("accept", "text/html");
    }
    if has(Check::BodyLength) {
        sent.set("content-length", "9999999");
    }
    if has(Check::RepeatedHeader) {
        let session = ("mcp-session-id".to_owned(), "x".to_owned());
        sent.headers.extend([session.clone(), session]);
    }
    sent
}

fn body(faults: &[Check], version: &str, method: &str) -> String {
    let has = |check| faults.contains(&check);
    let mut meta = meta(version);
    if has(Check::Meta) {
        meta["io.modelcontextprotocol/clientCapabilities"] = json!([]);
    }
    let params = json!({"name": "move", "arguments": {"region": "eu"}, "_meta": meta});
    let mut body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    if has(Check::Shape) {
        body["jsonrpc"] = json!("1.0");
    }
    let mut body = body.to_string();
    if has(Check::AmbiguousParams) {
        body = body.replace(r#""arguments""#, r#""arguments":{},"arguments""#);
    }
    if has(Check::Json) {
        body.pop();
    }
    body
}

#[test]
fn each_check_appears_once_in_order() {
    assert!(Check::ALL.is_sorted_by(|a, b| a < b));
    assert_eq!(Check::ALL.len(), Check::ParamHeaders as usize + 1);
    let validated = call(&[]).validate();
    assert_eq!(validated.unwrap(), Era::Modern(Revision::LATEST));
}

/// The status and code that clients see for each check. The code that serves requests has its own statuses.
#[test]
fn each_step_has_its_status_and_code() {
    let table = [
        (Check::Host, 403, -32600),
        (Check::Origin, 403, -32600),
        (Check::HttpMethod, 405, -32600),
        (Check::ContentType, 415, -32600),
        (Check::Accept, 406, -32600),
        (Check::BodyLength, 413, -32600),
        (Check::Json, 400, -32700),
        (Check::Shape, 400, -32600),
        (Check::RepeatedHeader, 400, -32020),
        (Check::AmbiguousParams, 400, -32602),
        (Check::RevisionHeader, 400, -32020),
        (Check::Revision, 400, -32022),
        (Check::Meta, 400, -32602),
        (Check::Method, 404, -32601),
        (Check::MethodHeader, 400, -32020),
        (Check::NameHeader, 400, -32020),
        (Check::ParamHeaders, 400, -32020),
    ];
    assert_eq!(table.len(), Check::ALL.len());
    for (check, status, code) in table {
        let refusal = call(&[check]).fails(check, status, code);
        assert_eq!(
            refusal.allow.is_some(),
            check == Check::HttpMethod,
            "{check:?}"
        );
    }
}

/// The code that serves requests can use the same codes. They do not determine the HTTP status, except for a missing capability.
#[test]
fn handler_error_codes_do_not_set_http_status() {
    for check in Check::ALL {
        assert_eq!(
            stateless::status(None, Some(check.code())),
            200,
            "{check:?}"
        );
    }
    let missing = ErrorCode::MISSING_CLIENT_CAPABILITY;
    assert_eq!(stateless::status(None, Some(missing)), 400);
}

#[test]
fn first_of_two_faults_is_reported() {
    for (index, first) in Check::ALL.into_iter().enumerate() {
        for second in &Check::ALL[index + 1..] {
            let refusal = call(&[first, *second]).validate().unwrap_err();
            assert_eq!(refusal.check, first, "{second:?}");
        }
    }
}

proptest! {
    #[test]
    fn first_of_several_faults_is_reported(
        faults in sample::subsequence(Check::ALL.to_vec(), 1..=Check::ALL.len()),
    ) {
        let refusal = call(&faults).validate().unwrap_err();
        prop_assert_eq!(Some(&refusal.check), faults.first(), "{:?}", faults);
        prop_assert_eq!(refusal.error.code, refusal.check.code());
    }

    // Attack: input that two readers read differently.
    #[test]
    fn validation_survives_any_header(
        name in sample::select(vec![
            "host", "origin", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name",
            "mcp-param-region", "content-length",
        ]),
        value in prop_oneof!["[ -~]{0,30}", "[\\[\\]:/@;,=?0-9a-z\t\u{80}-\u{ff}]{0,20}"],
    ) {
        let right = call(&[]);
        let was = right.headers.iter().find(|(it, _)| it == name).map(|(_, it)| it.clone());
        let sent = right.with(name, &value);
        if let Ok(era) = sent.validate() {
            // Only a value with the same meaning passes.
            prop_assert_eq!(era, Era::Modern(Revision::LATEST));
            if name.starts_with("mcp-") {
                prop_assert_eq!(Some(value.trim()), was.as_deref());
            }
        }
    }
}

//! Tests of the era of a message: modern, legacy, or neither.

use oxmcp_protocol::{EmptyParams, EmptyResult, Method, Revision, internal::Era};
use serde_json::{Value, json};

use super::{
    super::*,
    request::{Sent, meta, server},
};
use crate::extension::Extension;

const MODERN: Era = Era::Modern(Revision::LATEST);

fn request(method: &str, params: &Value) -> Sent {
    Sent::post(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
}

fn initialize() -> Sent {
    request("initialize", &json!({"protocolVersion": "2025-11-25"}))
}

#[test]
fn messages_without_modern_marks_belong_to_sessions() {
    let list = || request("tools/list", &json!({}));
    let table = [
        initialize(),
        // Probes of the conformance suite.
        initialize()
            .with("mcp-protocol-version", "2025-11-25")
            .with("mcp-method", "initialize"),
        // Before a revision is negotiated, the header cannot name it.
        initialize().with("mcp-protocol-version", "2026-07-28"),
        initialize().with("mcp-protocol-version", "2099-01-01"),
        list(),
        list().with("mcp-protocol-version", "2025-06-18"),
        list().with("mcp-protocol-version", "2024-11-05"),
        list()
            .with("mcp-protocol-version", "2025-11-25")
            .with("mcp-method", "other"),
        request("no/such", &json!({"_meta": {"progressToken": 1}})),
        Sent::post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        Sent::post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
    ];
    for sent in table {
        assert_eq!(sent.validate().unwrap(), Era::Legacy, "{sent:?}");
    }
}

#[test]
fn modern_requests_are_identified_by_content() {
    let discover = || Sent::modern("server/discover", json!({}));
    assert_eq!(discover().validate().unwrap(), MODERN);
    let bare = || request("server/discover", &json!({})).with("mcp-method", "server/discover");
    let refusal = bare()
        .with("mcp-protocol-version", "2026-07-28")
        .fails(Check::Meta, 400, -32602);
    for key in ["protocolVersion", "clientCapabilities"] {
        assert!(refusal.error.message.contains(key));
    }
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut meta = meta("2026-07-28");
        let keys = meta.as_object_mut().unwrap();
        keys.remove(&format!("io.modelcontextprotocol/{missing}"));
        let sent = request("server/discover", &json!({"_meta": meta}));
        let sent = sent.with("mcp-protocol-version", "2026-07-28");
        let refusal = sent.fails(Check::Meta, 400, -32602);
        assert!(refusal.error.message.contains(missing));
    }
    // A request that claims to be modern does not open a session, whatever its method.
    let capabilities = json!({"io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"protocolVersion": "2025-11-25", "_meta": capabilities});
    request("initialize", &params)
        .with("mcp-protocol-version", "2099-01-01")
        .fails(Check::Revision, 400, -32022);
}

#[test]
fn header_and_body_name_the_same_revision() {
    let discover = || Sent::modern("server/discover", json!({}));
    discover()
        .without("mcp-protocol-version")
        .fails(Check::RevisionHeader, 400, -32020);
    for header in ["2025-11-25", "v999.0.0", "2026-07-28, 2026-07-28", ""] {
        discover()
            .with("mcp-protocol-version", header)
            .fails(Check::RevisionHeader, 400, -32020);
    }
    let other = request("server/discover", &json!({"_meta": meta("v999.0.0")}));
    other
        .clone()
        .with("mcp-protocol-version", "2026-07-28")
        .fails(Check::RevisionHeader, 400, -32020);
    let refusal =
        other
            .with("mcp-protocol-version", "v999.0.0")
            .fails(Check::Revision, 400, -32022);
    let data: Value = serde_json::from_str(refusal.error.data.unwrap().get()).unwrap();
    assert_eq!(data["requested"], "v999.0.0");
    assert_eq!(data["supported"][0], "2026-07-28");
    let legacy = request("tools/list", &json!({"_meta": meta("2025-11-25")}));
    legacy
        .with("mcp-protocol-version", "2025-11-25")
        .fails(Check::Revision, 400, -32022);
}

#[test]
fn session_must_name_a_served_revision() {
    let list = || request("tools/list", &json!({}));
    list()
        .with("mcp-protocol-version", "2025-01-01")
        .fails(Check::Revision, 400, -32022);
    let new = server().revisions([Revision::LATEST_LEGACY, Revision::LATEST]);
    let old = list().with("mcp-protocol-version", "2025-03-26");
    assert_eq!(old.validate_at(&new).unwrap_err().check, Check::Revision);
    assert!(list().validate_at(&new).is_ok());
    let (features, headers) = (new.features(), |sent: &Sent| sent.parts().headers);
    let refusal = check_session(
        &features,
        &headers(&list().with("mcp-protocol-version", "2025-03-26")),
    );
    assert_eq!(refusal.unwrap_err().check, Check::Revision);
    assert!(check_session(&features, &headers(&list())).is_ok());
    let old = server().revisions([Revision::LATEST_LEGACY]);
    let modern = Sent::modern("tools/list", json!({}));
    assert_eq!(modern.validate_at(&old).unwrap_err().check, Check::Revision);
}

#[test]
fn modern_server_names_its_revisions_to_legacy_clients() {
    let modern = server().revisions([Revision::LATEST]);
    let validate = |sent: Sent| sent.validate_at(&modern);
    let refusal = validate(initialize()).unwrap_err();
    assert_eq!(refusal.check, Check::Revision);
    let data: Value = serde_json::from_str(refusal.error.data.unwrap().get()).unwrap();
    assert_eq!(
        data,
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})
    );
    let bare = validate(request("tools/list", &json!({}))).unwrap_err();
    assert_eq!(bare.check, Check::RevisionHeader);
    let named = request("tools/list", &json!({})).with("mcp-protocol-version", "2025-11-25");
    assert_eq!(validate(named).unwrap_err().check, Check::Revision);
    let half = json!({"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}});
    let half = validate(request("tools/list", &half)).unwrap_err();
    assert_eq!(half.check, Check::Meta);
}

#[test]
fn methods_removed_by_the_revision_are_not_found() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
    ] {
        Sent::modern(method, json!({})).fails(Check::Method, 404, -32601);
    }
}

#[test]
fn header_must_match_the_requested_name() {
    let call = || Sent::modern("tools/call", json!({"name": "move"}));
    let table = [
        (call(), false),
        (call().with("mcp-name", "move"), true),
        (call().with("Mcp-Name", "  move  "), true),
        (call().with("mcp-name", "=?base64?bW92ZQ==?="), true),
        (call().with("mcp-name", "Move"), false),
        (call().with("mcp-name", "=?base64?bW92ZQ?="), false),
        (
            Sent::modern("resources/read", json!({"uri": "file:///a%20b"}))
                .with("mcp-name", "file:///a%20b"),
            true,
        ),
        (
            Sent::modern("prompts/get", json!({"name": "x"})).with("mcp-name", "y"),
            false,
        ),
        // Faults in the params are reported by the code that parses them.
        (Sent::modern("tools/call", json!({})), true),
        (
            Sent::modern("tools/call", json!({})).with("mcp-name", "move"),
            false,
        ),
        (
            Sent::modern("tools/list", json!({})).with("mcp-name", "x"),
            true,
        ),
    ];
    for (sent, fits) in table {
        let check = sent.validate().map_err(|refusal| refusal.check);
        let expected = if fits {
            Ok(MODERN)
        } else {
            Err(Check::NameHeader)
        };
        assert_eq!(check, expected, "{sent:?}");
    }
    for method in ["TOOLS/LIST", "tools/call", ""] {
        Sent::modern("tools/list", json!({}))
            .with("mcp-method", method)
            .fails(Check::MethodHeader, 400, -32020);
    }
    Sent::modern("tools/list", json!({}))
        .without("mcp-method")
        .fails(Check::MethodHeader, 400, -32020);
}

#[test]
fn notification_era_comes_from_body_before_header() {
    let bare = || Sent::post(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
    let claim = || {
        let params = json!({"_meta": meta("2026-07-28")});
        Sent::post(&json!({"jsonrpc": "2.0", "method": "notifications/x", "params": params}))
    };
    let header = |sent: Sent, version| sent.with("mcp-protocol-version", version);
    assert_eq!(claim().validate().unwrap(), MODERN);
    assert_eq!(header(claim(), "2026-07-28").validate().unwrap(), MODERN);
    assert_eq!(header(bare(), "2026-07-28").validate().unwrap(), MODERN);
    header(claim(), "2025-11-25").fails(Check::RevisionHeader, 400, -32020);
    header(bare(), "2026-07-28")
        .with("mcp-method", "notifications/y")
        .fails(Check::MethodHeader, 400, -32020);
    let response = Sent::post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    header(response, "2026-07-28").fails(Check::Shape, 400, -32600);
}

#[test]
fn batches_may_not_contain_modern_messages() {
    let array = |sent: &[Sent], headers: &Sent| {
        let bodies: Vec<&str> = sent.iter().map(|sent| &*sent.body).collect();
        let body = format!(" [{}] ", bodies.join(" , "));
        check_batch(&headers.parts().headers, body.as_bytes()).map_err(|refusal| {
            (
                refusal.check,
                refusal.check.status().as_u16(),
                refusal.error.code.value(),
            )
        })
    };
    let legacy = request("tools/list", &json!({}));
    let modern = Sent::modern("tools/list", json!({}));
    let refused = Err((Check::Shape, 400, -32600));
    let both = [legacy.clone(), modern.clone()];
    assert_eq!(array(&both[..1], &legacy), Ok(()));
    assert_eq!(array(&both, &legacy), refused);
    assert_eq!(array(&[modern.clone(), legacy.clone()], &legacy), refused);
    assert_eq!(array(&both[..1], &modern), refused);
    assert_eq!(
        array(&[], &legacy),
        Ok(()),
        "the session says what a batch is"
    );
    assert_eq!(array(&[Sent::post("7")], &legacy), Ok(()));
    let headers = legacy.parts().headers;
    for body in [&b"["[..], b"[1,", b"[\xff]"] {
        let refusal = check_batch(&headers, body).unwrap_err();
        assert_eq!(
            (refusal.check, refusal.error.code.value()),
            (Check::Json, -32700)
        );
    }
}

struct Wind;

impl Method for Wind {
    const NAME: &'static str = "com.example/clock/wind";
    type Params = EmptyParams;
    type Result = EmptyResult;
}

#[test]
fn methods_and_headers_of_extensions_are_known() {
    let clock = Extension::new("com.example/clock")
        .method::<Wind, _>(Revision::LATEST.., || async { EmptyResult::default() })
        .header::<Wind>("clockId", "Mcp-Name")
        .header::<Wind>("zone", "Mcp-Zone");
    let wind = Sent::modern(Wind::NAME, json!({"clockId": "c-1"}));
    let strict = server().extension(clock.clone()).strict();
    let refused = wind.validate_at(&strict).map_err(|refusal| refusal.check);
    assert_eq!(refused, Err(Check::NameHeader));
    let server = server().extension(clock);
    let validate = |sent: &Sent| sent.validate_at(&server).map_err(|refusal| refusal.check);
    // Clients that do not know the header are served.
    assert_eq!(validate(&wind), Ok(MODERN));
    assert_eq!(
        validate(&wind.clone().with("mcp-name", "c-2")),
        Err(Check::NameHeader)
    );
    let wind = wind.with("mcp-name", "c-1");
    assert_eq!(validate(&wind), Ok(MODERN));
    let mut twice = wind.with("mcp-zone", "utc");
    assert_eq!(validate(&twice), Err(Check::NameHeader));
    twice.headers.push(("Mcp-Zone".into(), "utc".into()));
    assert_eq!(validate(&twice), Err(Check::RepeatedHeader));
}

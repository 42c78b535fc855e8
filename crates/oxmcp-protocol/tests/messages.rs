//! Messages as a gateway sees them: every line is written as it was read, and fitted to each revision.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

use oxmcp_protocol::{
    ErrorCode, ErrorObject, Method, Revision,
    message::{Message, Notification, Request, Response},
    method::{CallTool, Elicit, ListTools, LoggingMessage, Ping},
};
use serde_json::{Value, json, value::to_raw_value};

fn message(value: &Value) -> Message {
    Message::parse(value.to_string().as_bytes()).unwrap()
}

fn value(message: &Message) -> Value {
    let line = message.encode();
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn messages_are_written_verbatim() {
    for text in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": "a\"b", "method": "x/y", "params": {"z": 1, "a": [null]}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": {"a": 1}}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [], "more": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -3, "message": "no", "data": [1]}}),
    ] {
        assert_eq!(value(&message(&text)), text);
        let pretty = serde_json::to_string_pretty(&text).unwrap();
        let read = Message::parse(pretty.as_bytes()).unwrap();
        assert_eq!(value(&read), text, "line breaks become spaces");
    }
    let unreadable = json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}});
    assert_eq!(value(&message(&unreadable)), unreadable);
}

#[test]
fn invalid_message_gets_a_descriptive_error() {
    for (text, id, code) in [
        ("{", Value::Null, ErrorCode::PARSE_ERROR),
        ("[]", Value::Null, ErrorCode::INVALID_REQUEST),
        (
            r#"{"jsonrpc":"2.0","id":3}"#,
            json!(3),
            ErrorCode::INVALID_REQUEST,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"a","params":[]}"#,
            json!(3),
            ErrorCode::INVALID_REQUEST,
        ),
    ] {
        let error = Message::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error.is_syntax(), code == ErrorCode::PARSE_ERROR, "{text}");
        assert!(!error.to_string().is_empty());
        let refusal = value(&error.into_response().into());
        assert_eq!(refusal["error"]["code"], code.value(), "{text}");
        assert_eq!(refusal["id"], id, "{text}");
    }
}

#[test]
fn batch_messages_are_read_one_by_one() {
    let batch =
        br#" [{"jsonrpc":"2.0","id":1,"method":"ping"}, 7, {"jsonrpc":"2.0","method":"x"}] "#;
    let read = Message::parse_batch(batch);
    let kinds: Vec<_> = read.iter().map(Result::is_ok).collect();
    assert_eq!(kinds, [true, false, true]);
    let one = Message::parse_batch(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(matches!(&*one, [Ok(Message::Request(_))]));
    for broken in [&b"[1"[..], b"\xff", b"", b"[] x"] {
        assert!(
            matches!(&*Message::parse_batch(broken), [Err(_)]),
            "{broken:?}"
        );
    }
    assert!(Message::parse_batch(b"[]").is_empty());
}

#[test]
fn params_are_read_changed_and_fitted() {
    let mut request = Request::new(1, CallTool::NAME);
    let params = json!({"name": "add", "arguments": {"a": 1}, "task": {"ttl": 5}});
    request.set_params(&params).unwrap();
    assert_eq!(request.params_of::<CallTool>().unwrap().name, "add");
    request.fit(Revision::V2025_06_18).unwrap();
    let fitted = value(&request.clone().into());
    assert_eq!(
        fitted["params"],
        json!({"name": "add", "arguments": {"a": 1}})
    );
    request.set_params(&json!({"name": 3})).unwrap();
    assert!(request.fit(Revision::LATEST).unwrap_err().is_unreadable());

    let mut unknown = Request::new("x", "vendor/method");
    unknown.set_params(&params).unwrap();
    unknown.fit(Revision::LATEST).unwrap();
    assert_eq!(value(&unknown.into())["params"], params);

    let mut ping = Request::new(1, Ping::NAME);
    assert!(ping.fit(Revision::V2024_11_05).is_ok());
    assert!(!ping.fit(Revision::LATEST).unwrap_err().is_unreadable());
    let mut elicit = Request::new(1, Elicit::NAME);
    assert!(elicit.fit(Revision::V2025_03_26).is_err());
    assert!(elicit.fit(Revision::LATEST).is_ok(), "within a result");

    let mut log = Notification::new("notifications/message");
    log.set_params(&json!({"level": "info", "data": 1}))
        .unwrap();
    assert!(log.params_of::<LoggingMessage>().is_ok());
    assert!(log.fit(Revision::LATEST).is_ok());
    let mut list_changed = Notification::new("notifications/roots/list_changed");
    assert!(list_changed.fit(Revision::LATEST).is_err());
}

#[test]
fn results_are_fitted_to_each_revision() {
    let list = json!({
        "resultType": "complete",
        "tools": [{"name": "add", "title": "Add", "inputSchema": {"type": "object"}}],
    });
    let response = || Response::new(1, Ok(to_raw_value(&list).unwrap()));
    for revision in Revision::ALL {
        let mut response = response();
        response.fit(ListTools::NAME, revision).unwrap();
        let tools = response.result_of::<ListTools>().unwrap().unwrap().tools;
        let has_title = tools[0].title.is_some();
        assert_eq!(has_title, revision >= Revision::V2025_06_18, "{revision}");
        let is_typed = value(&response.into())["result"]
            .get("resultType")
            .is_some();
        assert_eq!(is_typed, revision.is_modern(), "{revision}");
    }
    let asks = json!({"resultType": "input_required", "requestState": "s"});
    let mut response = Response::new(1, Ok(to_raw_value(&asks).unwrap()));
    response.fit(CallTool::NAME, Revision::LATEST).unwrap();
    assert_eq!(value(&response.clone().into())["result"], asks);
    assert!(response.fit(CallTool::NAME, Revision::V2025_11_25).is_err());
    let error = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "no");
    let mut response = Response::new(1, Err(error));
    response.fit("resources/read", Revision::LATEST).unwrap();
    assert_eq!(value(&response.clone().into())["error"]["code"], -32602);
    assert!(response.result_of::<ListTools>().is_none());
}

//! Invalid messages of every kind: each gets an error that names the problem, and the session
//! continues.

use oxmcp::{Client, Revision};
use serde_json::{Value, json};

use crate::session::*;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The message, the error code of the answer, its id, and a part of its error message.
type Case = (&'static str, i64, Value, &'static str);

async fn check(peer: &mut ScriptedPeer, cases: &[Case]) {
    for (line, code, id, message) in cases {
        peer.send_line(line).await.unwrap();
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"]["code"], *code, "{line}: {answer}");
        // If the id is unknown it is left out: no revision's schema allows null as an id.
        assert_eq!(
            answer.get("id"),
            Some(id).filter(|it| !it.is_null()),
            "{line}: {answer}"
        );
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains(message), "{line}: {said}");
        assert_alive(peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_messages_are_answered_and_session_continues() {
    let mut peer = client_of(&server().strict(), Revision::V2025_11_25).await;
    let none = || Value::Null;
    check(
        &mut peer,
        &[
            ("nonsense", PARSE_ERROR, none(), "not JSON"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"pi"#,
                PARSE_ERROR,
                none(),
                "not JSON",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
                PARSE_ERROR,
                none(),
                "not JSON",
            ),
            ("7", INVALID_REQUEST, none(), "object"),
            ("{}", INVALID_REQUEST, none(), "jsonrpc"),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                INVALID_REQUEST,
                json!(1),
                "2.0",
            ),
            (
                r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#,
                INVALID_REQUEST,
                json!(1),
                "2.0",
            ),
            (
                r#"{"id":1,"method":"ping"}"#,
                INVALID_REQUEST,
                json!(1),
                "2.0",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1e-2,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn nonsensical_envelopes_are_answered_and_session_continues() {
    let mut peer = client_of(&server().strict(), Revision::V2025_11_25).await;
    let none = || Value::Null;
    check(
        &mut peer,
        &[
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1}"#,
                INVALID_REQUEST,
                json!(1),
                "method",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
                INVALID_REQUEST,
                json!(1),
                "method",
            ),
            (
                r#"{"jsonrpc":"2.0","ID":1,"method":7}"#,
                INVALID_REQUEST,
                none(),
                "method",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
                INVALID_REQUEST,
                none(),
                "duplicate key",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
                INVALID_REQUEST,
                none(),
                "duplicate key",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}"#,
                INVALID_REQUEST,
                none(),
                "duplicate key",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
                INVALID_REQUEST,
                json!(1),
                "not both",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                INVALID_REQUEST,
                json!(1),
                "object",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
                INVALID_REQUEST,
                json!(1),
                "object",
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn malformed_responses_are_not_answered_under_own_ids() {
    let mut peer = client_of(&server().strict(), Revision::V2025_11_25).await;
    check(
        &mut peer,
        &[
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
                INVALID_REQUEST,
                Value::Null,
                "not both",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
                INVALID_REQUEST,
                Value::Null,
                "code",
            ),
            (
                r#"{"jsonrpc":"2.0","result":{}}"#,
                INVALID_REQUEST,
                Value::Null,
                "id",
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
                INVALID_REQUEST,
                Value::Null,
                "id",
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
                INVALID_REQUEST,
                Value::Null,
                "2.0",
            ),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_params_and_unknown_method_errors_explain_problem() {
    let mut peer = client_of(&server().strict(), Revision::V2025_11_25).await;
    check(
        &mut peer,
        &[
            (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, METHOD_NOT_FOUND, json!("a"), "no/such"),
            (r#"{"jsonrpc":"2.0","id":"a","method":"Ping"}"#, METHOD_NOT_FOUND, json!("a"), "Ping"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"prompts/list"}"#, METHOD_NOT_FOUND, json!(2), "prompts/list"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call"}"#, INVALID_PARAMS, json!(2), "name"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":7}}"#, INVALID_PARAMS, json!(2), "tools/call"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nosuch"}}"#, INVALID_PARAMS, json!(2), "nosuch"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":7}}"#, INVALID_PARAMS, json!(2), "tools/list"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":7}}"#, INVALID_PARAMS, json!(2), "_meta"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":["2026-07-28"]}}"#, INVALID_PARAMS, json!(2), "_meta"),
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn duplicate_id_is_refused_and_first_request_continues() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    peer.send(call(1, "slow", json!({"ms": 100})))
        .await
        .unwrap();
    // A ping is answered at its first poll, but a duplicate id is refused before that.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for again in [call(1, "fast", json!({})), ping] {
        let refused = peer.ask(again).await.unwrap();
        assert_eq!(refused["error"]["code"], INVALID_REQUEST);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("in flight"), "{message}");
    }
    // The same text as a string is a different id.
    let other = peer.ask(call("1", "fast", json!({}))).await.unwrap();
    assert_eq!((&other["id"], text(&other)), (&json!("1"), "fast"));
    assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    // Once the request is answered, the id is free again.
    assert_eq!(
        text(&peer.ask(call(1, "fast", json!({}))).await.unwrap()),
        "fast"
    );
}

#[tokio::test(start_paused = true)]
async fn answers_to_unknown_ids_are_ignored() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    for message in [
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"jsonrpc": "2.0", "id": "x", "result": {}}),
        json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}}),
        json!({"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}),
        cancel(99),
        cancel("unknown"),
        notification("notifications/cancelled", json!({})),
        notification("notifications/cancelled", json!({"requestId": {}})),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        notification(
            "notifications/progress",
            json!({"progressToken": 5, "progress": 1}),
        ),
        notification("notifications/progress", json!({"progressToken": []})),
        notification("notifications/no/such", json!({"a": 1})),
    ] {
        peer.send(message).await.unwrap();
        assert_alive(&mut peer).await;
    }
    assert_silent(&mut peer).await;
}

#[tokio::test(start_paused = true)]
async fn client_ignores_unexpected_messages_of_a_server() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    for nonsense in [
        "listening on port 7",
        "[1,2]",
        r#"{"jsonrpc":"1.0","method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
    ] {
        peer.send_line(nonsense).await.unwrap();
    }
    let calling = tokio::spawn({
        let session = session.clone();
        async move { session.ping().await }
    });
    let asked = peer.receive().await.unwrap();
    assert_eq!(asked["method"], "ping", "nonsense is not answered");
    peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
        .await
        .unwrap();
    calling.await.unwrap().unwrap();
    // Requests of the server are still answered, too.
    assert_alive(&mut peer).await;
    let answer = peer.ask(request(1, "no/such", json!({}))).await.unwrap();
    assert_eq!(answer["error"]["code"], METHOD_NOT_FOUND);
}

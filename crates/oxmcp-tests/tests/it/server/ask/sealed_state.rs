//! The sealed state that a modern client carries between rounds.

use std::time::Duration;

use oxmcp::{Limits, RequestContext, Revision, Server, Tool, ToolError, keys::StateKey};
use serde_json::{Value, json};

use crate::server::ask::{Confirm, User, accept, deleting};
use crate::support::{idle, text};

const MODERN: Revision = Revision::LATEST;

/// A server whose tools ask once.
fn asking(name: &str) -> Server {
    let handler = |cx: RequestContext| async move {
        let secret = cx
            .step("secret", || async {
                "what only the server knows".to_owned()
            })
            .await?;
        let Confirm { keep } = cx.ask("confirm", "Sure?").await?;
        Ok::<_, ToolError>(format!("{secret}, {keep}"))
    };
    let dynamic = |cx: RequestContext, _arguments| async move {
        let Confirm { keep } = cx.ask("confirm", "Sure?").await?;
        Ok(keep)
    };
    Server::new(name, "1.0.0")
        .tools([
            Tool::new("one", "", handler),
            Tool::new("other", "", handler),
            idle("idle"),
        ])
        .tool(Tool::dynamic(
            "dynamic",
            "",
            json!({"type": "object"}),
            dynamic,
        ))
}

async fn state(server: &Server, tool: &str, arguments: Value) -> Value {
    let mut user = User::new(server, MODERN).await;
    let first = user.call_once(tool, arguments, json!({})).await;
    let state = first["result"]["requestState"].clone();
    assert!(state.is_string(), "{first}");
    state
}

/// The answer of the second round with this state.
async fn again(server: &Server, tool: &str, arguments: Value, state: &Value) -> Value {
    let mut user = User::new(server, MODERN).await;
    let yes = json!({"confirm": accept(json!({"keep": true}))});
    let more = json!({"requestState": state, "inputResponses": yes});
    user.call_once(tool, arguments, more).await
}

fn assert_refused(answer: &Value) {
    let refused = json!({"code": -32602, "message": "Invalid or expired requestState"});
    assert_eq!(answer["error"], refused, "{answer}");
}

#[tokio::test]
async fn state_opens_on_any_connection_and_is_opaque() {
    let server = asking("s");
    let state = state(&server, "one", json!({})).await;
    assert!(!state.as_str().unwrap().contains("secret"));
    let answer = again(&server, "one", json!({}), &state).await;
    assert_eq!(text(&answer), "what only the server knows, true");
}

#[tokio::test]
async fn state_of_another_request_is_refused_without_details() {
    let server = asking("s").state_keys([StateKey::new([1; 32])]);
    let good = state(&server, "dynamic", json!({"a": 1, "b": 2})).await;
    let answer = again(&server, "dynamic", json!({"b": 2, "a": 1}), &good).await;
    assert_eq!(text(&answer), "true");

    let text = good.as_str().unwrap();
    let tampered = [
        format!("{text}-TAMPERED"),
        text.chars().skip(1).collect(),
        "A".repeat(200),
        String::new(),
    ];
    for tampered in tampered {
        assert_refused(
            &again(
                &server,
                "dynamic",
                json!({"a": 1, "b": 2}),
                &json!(tampered),
            )
            .await,
        );
    }
    for (tool, arguments) in [
        ("dynamic", json!({"a": 1, "b": 3})),
        ("dynamic", json!({})),
        ("one", json!({})),
        // A tool that never asks does not accept the state either.
        ("idle", json!({})),
    ] {
        assert_refused(&again(&server, tool, arguments, &good).await);
    }
    let other = asking("t").state_keys([StateKey::new([1; 32])]);
    assert_refused(&again(&other, "dynamic", json!({"a": 1, "b": 2}), &good).await);
    let one = state(&server, "one", json!({})).await;
    assert_refused(&again(&server, "other", json!({}), &one).await);
}

#[tokio::test]
async fn expired_state_is_refused() {
    let server = asking("s").state_lifetime(Duration::ZERO);
    let state = state(&server, "one", json!({})).await;
    assert_refused(&again(&server, "one", json!({}), &state).await);
}

#[tokio::test]
async fn keys_can_be_changed_and_shared() {
    let (old, new) = (StateKey::new([1; 32]), StateKey::new([2; 32]));
    let before = asking("s").state_keys([old.clone()]);
    let state_before = state(&before, "one", json!({})).await;
    let meanwhile = asking("s").state_keys([new.clone(), old]);
    let answer = again(&meanwhile, "one", json!({}), &state_before).await;
    assert_eq!(text(&answer), "what only the server knows, true");
    let state_meanwhile = state(&meanwhile, "one", json!({})).await;
    let after = asking("s").state_keys([new]);
    assert_refused(&again(&after, "one", json!({}), &state_before).await);
    let answer = again(&after, "one", json!({}), &state_meanwhile).await;
    assert_eq!(text(&answer), "what only the server knows, true");
    // A server without a given key has a random one.
    assert_refused(&again(&asking("s"), "one", json!({}), &state_meanwhile).await);
}

#[tokio::test]
async fn oversized_state_is_neither_sent_nor_opened() {
    let server = |most| {
        let limits = Limits::default().max_request_state(most);
        let keys = [StateKey::new([1; 32])];
        asking("s").limits(limits).state_keys(keys)
    };
    let state = state(&server(1_000), "one", json!({})).await;
    assert!((150..500).contains(&state.as_str().unwrap().len()));
    let answer = again(&server(500), "one", json!({}), &state).await;
    assert_eq!(text(&answer), "what only the server knows, true");
    let server = server(149);
    assert_refused(&again(&server, "one", json!({}), &state).await);
    let mut user = User::new(&server, MODERN).await;
    let answer = user.call_once("one", json!({}), json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the largest part is step \"secret\" with 28 bytes"),
        "{answer}"
    );
}

#[tokio::test]
async fn legacy_requests_have_no_state() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let more = json!({"requestState": "nonsense", "inputResponses": 7});
    let asked = user
        .call_once("delete", json!({"project": "x"}), more)
        .await;
    assert_eq!(asked["method"], "elicitation/create");
}

//! Sampling: the client samples a model for a server, in every revision.

use oxmcp::{
    Client, Error, RequestContext, Revision,
    protocol::{CreateMessageParams, CreateMessageResult, SamplingContent, StopReason},
};
use serde_json::{Value, json};

use crate::client::{ask, client, session_of};

fn question() -> Value {
    json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "2 + 2?"}}],
        "maxTokens": 10,
    })
}

async fn answered(client: Client, revision: Revision, params: Value) -> Value {
    let (mut peer, session, _) = session_of(client, revision).await;
    ask((&mut peer, &session), "sampling/createMessage", params).await
}

fn model() -> Client {
    client().on_sample(|asked: CreateMessageParams| async move {
        let text = asked.messages[0].content[0]
            .as_text()
            .unwrap()
            .replace('?', " is 4");
        CreateMessageResult::new("abacus", text).with_stop_reason(StopReason::EndTurn)
    })
}

#[tokio::test(start_paused = true)]
async fn declared_sampling_capabilities_follow_the_handlers() {
    for revision in Revision::ALL {
        let declared = async |client: Client| session_of(client, revision).await.2;
        assert_eq!(declared(client().sampling_tools()).await, json!({}));
        assert_eq!(declared(model()).await, json!({"sampling": {}}));
        let all = declared(model().sampling_tools().sampling_context()).await;
        let parts = match revision {
            Revision::V2025_11_25 | Revision::V2026_07_28 => json!({"tools": {}, "context": {}}),
            _ => json!({}),
        };
        assert_eq!(all, json!({"sampling": parts}), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_handler_is_called_in_every_revision() {
    for revision in Revision::ALL {
        let answer = answered(model(), revision, question()).await;
        let expected = json!({
            "role": "assistant",
            "content": {"type": "text", "text": "2 + 2 is 4"},
            "model": "abacus",
            "stopReason": "endTurn",
        });
        assert_eq!(answer["result"], expected, "{revision}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn handler_knows_the_asking_server_and_reports_errors() {
    for revision in Revision::ALL {
        let client = client().on_sample(|_: CreateMessageParams, cx: RequestContext| async move {
            let session = cx.client_session().unwrap();
            assert_eq!(cx.peer_info(), session.server_info());
            assert_eq!(cx.meta().get("com.example/a"), Some(&json!(1)));
            Err::<CreateMessageResult, _>(Error::protocol(-1, "User rejected sampling request"))
        });
        let mut params = question();
        params["_meta"] = json!({"com.example/a": 1});
        let answer = answered(client, revision, params).await;
        let error = json!({"code": -1, "message": "User rejected sampling request"});
        assert_eq!(answer["error"], error, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_sent_only_to_declaring_clients() {
    let mut params = question();
    params["tools"] = json!([{"name": "add", "inputSchema": {"type": "object"}}]);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let answer = answered(model(), revision, params.clone()).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("sampling.tools"), "{revision}: {said}");
        if !revision.is_modern() {
            assert_eq!(answer["error"]["code"], -32602);
        }
        let with_tools =
            client()
                .sampling_tools()
                .on_sample(|asked: CreateMessageParams| async move {
                    assert_eq!(asked.tools[0].name, "add");
                    let mut result = CreateMessageResult::new("abacus", "let me see");
                    let call = json!({"type": "tool_use", "id": "1", "name": "add", "input": {}});
                    result
                        .content
                        .push(serde_json::from_str::<SamplingContent>(&call.to_string()).unwrap());
                    result
                });
        let answer = answered(with_tools, revision, params.clone()).await;
        assert_eq!(
            answer["result"]["content"][1]["type"], "tool_use",
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn sampling_is_refused_without_a_model() {
    for revision in Revision::ALL {
        let answer = answered(client(), revision, question()).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(
            said.contains("did not declare the capability sampling"),
            "{revision}: {said}"
        );
        if !revision.is_modern() {
            assert_eq!(answer["error"]["code"], -32601);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requested_tool_must_have_a_result() {
    let mut params = question();
    let asks = json!({"type": "tool_use", "id": "1", "name": "add", "input": {}});
    params["messages"] = json!([{"role": "assistant", "content": asks}]);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let answer = answered(model(), revision, params.clone()).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("Tool result missing"), "{revision}: {said}");
        if !revision.is_modern() {
            assert_eq!(answer["error"]["code"], -32602);
        }
    }
}

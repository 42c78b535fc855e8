//! Questions to clients that cannot answer, and questions without an answer.

use std::time::Duration;

use oxmcp::{
    Error, Reply, RequestContext, Revision, Server, Tool, ToolCall,
    protocol::{
        CreateMessageParams, EmptyParams, IncludeContext, InputRequest, InputRequiredResult,
        SamplingMessage,
    },
};
use serde_json::json;
use tokio::time::Instant;

use crate::server::ask::{Name, User, deleting};
use crate::support::text;

#[tokio::test]
async fn unanswerable_questions_are_not_asked() {
    let (server, ..) = deleting();
    for revision in Revision::ALL {
        let mut user = User::able(&server, revision, json!({"roots": {}})).await;
        let answer = user
            .call_once("delete", json!({"project": "x"}), json!({}))
            .await;
        let missing = match revision {
            Revision::V2024_11_05 | Revision::V2025_03_26 => "has no elicitation",
            _ => "did not declare the capability \"elicitation\"",
        };
        let said = if revision.is_modern() {
            let error = &answer["error"];
            assert_eq!(error["code"], -32021, "{revision}: {answer}");
            assert_eq!(
                error["data"]["requiredCapabilities"],
                json!({"elicitation": {"form": {}}}),
                "{answer}"
            );
            error["message"].as_str().unwrap()
        } else {
            // No other request could succeed: the model is told, and can choose another way.
            assert_eq!(answer["result"]["isError"], true, "{revision}: {answer}");
            text(&answer)
        };
        assert!(said.contains(missing), "{answer}");
    }
}

#[tokio::test]
async fn form_and_url_capabilities_are_respected_separately() {
    let url = Tool::new("url", "", |cx: RequestContext| async move {
        let asked = cx.ask_url("u", "Log in", "https://example.com/").await;
        asked.unwrap_err().is_unsupported()
    });
    let form = Tool::new("form", "", |cx: RequestContext| async move {
        let asked = cx.ask::<Name>("n", "Who?").await;
        asked.err().is_some_and(|error| error.is_unsupported())
    });
    let server = Server::new("s", "1").tools([url, form]);
    for (revision, capabilities) in [
        (Revision::V2025_06_18, json!({"elicitation": {}})),
        (Revision::V2025_11_25, json!({"elicitation": {}})),
        (Revision::V2026_07_28, json!({"elicitation": {"form": {}}})),
    ] {
        let mut user = User::able(&server, revision, capabilities).await;
        let answer = user.call_once("url", json!({}), json!({})).await;
        assert_eq!(text(&answer), "true", "{revision}");
    }
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut user = User::able(&server, revision, json!({"elicitation": {"url": {}}})).await;
        let answer = user.call_once("form", json!({}), json!({})).await;
        assert_eq!(text(&answer), "true", "{revision}");
    }
}

#[tokio::test]
async fn invalid_questions_are_not_asked() {
    let url = Tool::new("url", "", |cx: RequestContext| async move {
        let asked = cx.ask_url("u", "Log in", "javascript:alert(1)").await;
        asked.unwrap_err().message().to_owned()
    });
    let model = Tool::new("model", "", |cx: RequestContext| async move {
        let messages = json!([{
            "role": "assistant",
            "content": {"type": "tool_use", "id": "1", "name": "add", "input": {}},
        }]);
        let params = json!({"messages": messages, "maxTokens": 10});
        let params = serde_json::from_str::<CreateMessageParams>(&params.to_string()).unwrap();
        let asked = cx.sample("m", params).await;
        asked.unwrap_err().message().to_owned()
    });
    let server = Server::new("s", "1").tools([url, model]);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut user = User::new(&server, revision).await;
        for (tool, said) in [
            ("url", "cannot send the user to"),
            ("model", "Tool result missing"),
        ] {
            let answer = user.call_once(tool, json!({}), json!({})).await;
            assert!(text(&answer).contains(said), "{revision}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn question_is_cancelled_with_its_request() {
    let (server, ..) = deleting();
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let question = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    assert_eq!(question["method"], "elicitation/create");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    // The question is cancelled at once, not only when the handler's grace period is over.
    let begin = Instant::now();
    let cancelled = user.peer.ask(cancel).await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn question_without_an_answer_times_out() {
    let (server, ..) = deleting();
    let server = server.ask_timeout(Duration::from_secs(7));
    let mut user = User::new(&server, Revision::V2025_06_18).await;
    let question = user
        .call_once("delete", json!({"project": "x"}), json!({}))
        .await;
    let start = Instant::now();
    assert_eq!(question["method"], "elicitation/create");
    let cancelled = user.peer.receive().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(start.elapsed().as_secs(), 7);
    let answer = user.peer.receive().await.unwrap();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("within 7s"),
        "{answer}"
    );
}

#[tokio::test]
async fn nothing_is_asked_in_a_batch() {
    let tool = || {
        Tool::new("t", "", |cx: RequestContext| async move {
            cx.roots().await.unwrap_err().to_string()
        })
    };
    let detachable = tool().layer(|call: ToolCall| async move {
        let mut call = call.detachable();
        call.run().await
    });
    let returning = Tool::new("t", "", || async {
        let roots = InputRequest::ListRoots(EmptyParams::default());
        Reply::<String>::InputRequired(InputRequiredResult::new().with_input_request("r", roots))
    });
    for tool in [tool(), detachable, returning] {
        let server = Server::new("s", "1").tool(tool);
        let mut user = User::new(&server, Revision::V2025_03_26).await;
        let call = crate::support::request(1, "tools/call", json!({"name": "t"}));
        let answers = user.peer.ask(json!([call])).await.unwrap();
        assert!(answers.to_string().contains("in a batch"), "{answers}");
    }
}

#[tokio::test]
async fn missing_capability_can_become_a_protocol_error() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let asked = cx.ask::<Name>("n", "Who?").await.map(|it| it.name);
        asked.map_err(|error| {
            assert!(error.is_unsupported() && error.is_protocol());
            Error::protocol(error.code(), error.message().to_owned())
        })
    });
    let server = Server::new("s", "1").tool(tool);
    let mut user = User::able(&server, Revision::V2025_11_25, json!({})).await;
    let answer = user.call_once("t", json!({}), json!({})).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
}

#[tokio::test]
async fn server_context_is_requested_only_if_supported() {
    let params = || {
        let mut params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10);
        params.include_context = Some(IncludeContext::AllServers);
        params
    };
    let ask = Tool::new("ask", "", move |cx: RequestContext| async move {
        cx.sample("m", params()).await.map(|it| it.model)
    });
    let reply = Tool::new("reply", "", move || async move {
        let asked = InputRequiredResult::new().with_input_request("m", params());
        Reply::<String>::InputRequired(asked)
    });
    let session = Tool::new("session", "", move |cx: RequestContext| async move {
        let session = cx.server_session().unwrap();
        session.create_message(params()).await.map(|it| it.model)
    });
    let server = Server::new("s", "1").tools([ask, reply, session]);
    for revision in Revision::ALL {
        for has_context in [false, true] {
            let sampling = if has_context {
                json!({"context": {}})
            } else {
                json!({})
            };
            for tool in ["ask", "reply", "session"] {
                if tool == "session" && revision.is_modern() {
                    continue;
                }
                let mut user = User::able(&server, revision, json!({"sampling": sampling})).await;
                let asked = user.call_once(tool, json!({}), json!({})).await;
                let params = if revision.is_modern() {
                    &asked["result"]["inputRequests"]["m"]["params"]
                } else {
                    &asked["params"]
                };
                assert_eq!(params["maxTokens"], 10, "{asked}");
                // Before 2025-11-25 there is no such capability, and every client may be asked.
                let is_asked = has_context || revision < Revision::V2025_11_25;
                let expected = if is_asked {
                    json!("allServers")
                } else {
                    json!(null)
                };
                assert_eq!(
                    params["includeContext"], expected,
                    "{tool} {revision}: {asked}"
                );
            }
        }
    }
}

//! Handlers that ask by returning questions.

use oxmcp::{
    Reply, RequestContext, Revision, Server, Tool, ToolError,
    protocol::{
        CallToolResult, CreateMessageParams, ElicitFormParams, ElicitParams, ElicitResult,
        ElicitSchema, InputRequiredResult, SamplingMessage, StringSchema,
    },
};
use serde_json::json;

use crate::server::ask::{ASKING, Name, User, accept};
use crate::support::text;

fn who(key: &str) -> InputRequiredResult {
    let form = ElicitSchema::new().required("name", StringSchema::default());
    let mut params = ElicitFormParams::new(key, form);
    params.meta.insert("com.example/why", "tests");
    InputRequiredResult::new().with_input_request(key, ElicitParams::Form(params))
}

/// Asks twice, and counts in a state that is not sealed.
async fn twice(cx: RequestContext) -> Result<Reply<String>, ToolError> {
    let round: usize = cx.request_state().map_or(Ok(0), |state| state.parse())?;
    let key = format!("q{round}");
    if round < 2 {
        let next = (round + 1).to_string();
        return Ok(Reply::InputRequired(who(&key).with_request_state(next)));
    }
    let responses = cx.input_responses();
    let last: ElicitResult = responses.get("q1").unwrap().decode()?;
    let Name { name } = last.decode()?;
    Ok(Reply::Complete(format!(
        "{round} {name} {}",
        responses.len()
    )))
}

#[tokio::test]
async fn returned_questions_are_asked_in_every_revision() {
    let server = Server::new("s", "1").tool(Tool::new("t", "", twice));
    for revision in ASKING {
        let mut user = User::new(&server, revision).await;
        let answer = user
            .call("t", json!({}), |_, params| {
                assert_eq!(params["_meta"]["com.example/why"], "tests", "{revision}");
                accept(json!({"name": params["message"]}))
            })
            .await;
        assert_eq!(text(&answer), "2 q1 1", "{revision}");
        assert_eq!(user.asked.len(), 2);
    }
}

#[tokio::test]
async fn odd_answers_reach_returning_handlers_repaired() {
    let server = || Server::new("s", "1").tool(Tool::new("t", "", twice));
    for revision in ASKING {
        for (server, is_read) in [(server(), true), (server().strict(), false)] {
            let mut user = User::new(&server, revision).await;
            let answer = user
                .call(
                    "t",
                    json!({}),
                    |_, _| json!({"action": "ACCEPTED", "content": {"name": "ann"}}),
                )
                .await;
            let is_complete = answer["result"]["content"][0]["text"] == "2 ann 1";
            assert_eq!(is_complete, is_read, "{revision}: {answer}");
        }
    }
}

#[tokio::test]
async fn returned_state_is_passed_unsealed() {
    let server = Server::new("s", "1").tool(Tool::new("t", "", twice));
    let mut user = User::new(&server, Revision::LATEST).await;
    let answer = user
        .call_once("t", json!({}), json!({"requestState": "1"}))
        .await;
    assert_eq!(answer["result"]["requestState"], "2");
    assert_eq!(answer["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn dynamic_tool_can_forward_another_servers_questions() {
    let proxy = |cx: RequestContext, _arguments| async move {
        if cx.input_responses().is_empty() {
            let params = CreateMessageParams::new([SamplingMessage::user("Hello")], 10);
            let asked = InputRequiredResult::new().with_input_request("said", params);
            return Ok(Reply::InputRequired(asked));
        }
        Ok(Reply::Complete(CallToolResult::text("done")))
    };
    let schema = json!({"type": "object"});
    let server = Server::new("s", "1").tool(Tool::dynamic("t", "", schema, proxy));
    for revision in Revision::ALL {
        let mut user = User::new(&server, revision).await;
        let said =
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}});
        let answer = user.call("t", json!({}), |_, _| said.clone()).await;
        assert_eq!(text(&answer), "done", "{revision}");
        // A client is not asked a question that it does not support.
        let mut user = User::able(&server, revision, json!({})).await;
        let answer = user.call_once("t", json!({}), json!({})).await;
        if revision.is_modern() {
            assert_eq!(answer["error"]["code"], -32021, "{answer}");
        } else {
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert!(text(&answer).contains("sampling"), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn endlessly_repeating_handler_is_slowed_and_bounded() {
    let again = || async {
        Reply::<String>::InputRequired(InputRequiredResult::new().with_request_state("s"))
    };
    let nothing = || async { Reply::<String>::InputRequired(InputRequiredResult::new()) };
    let tools = [
        Tool::new("again", "", again),
        Tool::new("nothing", "", nothing),
    ];
    let server = Server::new("s", "1").tools(tools);
    let mut user = User::new(&server, Revision::V2025_11_25).await;
    let start = tokio::time::Instant::now();
    let answer = user.call_once("again", json!({}), json!({})).await;
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("more than 100 times"),
        "{answer}"
    );
    assert_eq!(start.elapsed().as_millis(), 25_000);
    for revision in ASKING {
        let mut user = User::new(&server, revision).await;
        let answer = user.call_once("nothing", json!({}), json!({})).await;
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("asked for nothing"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn two_ways_of_asking_do_not_mix() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let error = cx.ask::<Name>("n", "Who?").await.err();
        Reply::Complete(error.map(|error| error.to_string()).unwrap_or_default())
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in ASKING {
        let mut user = User::new(&server, revision).await;
        let answer = user.call_once("t", json!({}), json!({})).await;
        assert!(
            text(&answer).contains("asks by returning `Reply::InputRequired`"),
            "{answer}"
        );
    }
}

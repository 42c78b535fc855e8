//! Rounds of questions that the caller answers by hand.

use oxmcp::{
    CallOutcome, Revision,
    protocol::{CallToolParams, ElicitAction, ElicitResult, InputResponse, method},
};
use serde_json::json;

use crate::client::{answer, asks, done, expect, session};

#[tokio::test(start_paused = true)]
async fn call_can_be_continued_manually() {
    let (mut peer, session) = session(Revision::LATEST).await;
    let call = tokio::spawn(session.call_tool("t", json!({"a": 1})).manual());
    let request = expect(&mut peer, "tools/call").await;
    let question = json!({"k": {"method": "x/y", "params": {"z": 1}}});
    answer(&mut peer, &request, asks(question)).await;
    let CallOutcome::InputRequired(asked) = call.await.unwrap().unwrap() else {
        panic!("it is not done yet");
    };
    assert_eq!(
        asked
            .input_requests
            .as_ref()
            .unwrap()
            .get("k")
            .unwrap()
            .method(),
        "x/y"
    );

    let declined = InputResponse::new(&ElicitResult::new(ElicitAction::Decline)).unwrap();
    let call = session
        .call_tool("t", json!({"a": 1}))
        .input_responses([("k", declined.clone())])
        .input_responses([("l", declined)])
        .request_state(asked.request_state.unwrap());
    let call = tokio::spawn(call.manual());
    let again = expect(&mut peer, "tools/call").await;
    let params = &again["params"];
    let no = json!({"action": "decline"});
    assert_eq!(params["inputResponses"], json!({"k": no, "l": no}));
    assert_eq!(params["requestState"], "the state");
    assert_eq!(
        (&params["name"], &params["arguments"]),
        (&json!("t"), &json!({"a": 1}))
    );
    answer(&mut peer, &again, done()).await;
    assert!(
        matches!(call.await.unwrap().unwrap(), CallOutcome::Complete(result) if result.content.len() == 1)
    );
}

#[tokio::test(start_paused = true)]
async fn typed_params_can_be_continued() {
    let (mut peer, session) = session(Revision::LATEST).await;
    let mut params = CallToolParams::new("t");
    params.request_state = Some("old".into());
    let call = session
        .request::<method::CallTool>(params)
        .request_state("new");
    let call = tokio::spawn(async move { call.await });
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["requestState"], "new");
    assert_eq!(request["params"]["name"], "t");
    // From here on the call answers questions by itself, and the state is the newest.
    let state = json!({"resultType": "input_required", "requestState": "newer"});
    answer(&mut peer, &request, state).await;
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["requestState"], "newer");
    answer(&mut peer, &request, done()).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn legacy_calls_have_no_rounds() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let error = session
        .call_tool("t", ())
        .request_state("s")
        .manual()
        .await
        .unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    let call = tokio::spawn(session.call_tool("t", ()).manual());
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, done()).await;
    assert!(matches!(
        call.await.unwrap().unwrap(),
        CallOutcome::Complete(_)
    ));
}

//! Rounds of questions of modern servers: the client answers, and repeats the request.

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use oxmcp::{
    Accept, Client, Limits, RequestContext, Result, Revision, middleware,
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
        ReadResourceResult, Root,
    },
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    sync::Barrier,
    time::{Instant, timeout},
};

use crate::client::{answer, asks, calling, client, done, expect, pass_on, session_of, soon};

pub(crate) const MODERN: Revision = Revision::LATEST;

/// A client that answers every kind of question.
fn answering() -> Client {
    client()
        .on_elicit(|_: ElicitFormParams| async { Accept(json!({"name": "Ann"})) })
        .on_sample(|_: CreateMessageParams| async { CreateMessageResult::new("abacus", "4") })
        .roots([Root::new("file:///home")])
}

pub(crate) fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": schema}})
}

pub(crate) fn sample() -> Value {
    json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
}

fn without_meta(request: &Value) -> Value {
    let mut params = request["params"].clone();
    params.as_object_mut().unwrap().remove("_meta");
    params
}

pub(crate) async fn assert_silent(peer: &mut ScriptedPeer) {
    let next = timeout(Duration::from_secs(1), peer.receive()).await;
    assert!(next.is_err(), "it said {next:?}");
}

#[tokio::test(start_paused = true)]
async fn all_questions_are_answered_and_the_request_repeated() {
    for through_middleware in [false, true] {
        let mut client = answering();
        if through_middleware {
            client = client
                .layer(middleware::from_fn(pass_on))
                .outgoing_layer(middleware::from_fn(pass_on));
        }
        let (mut peer, session, _) = session_of(client, MODERN).await;
        let call = calling(&session);
        let first = expect(&mut peer, "tools/call").await;
        let inputs = json!({"z": form(), "a": sample(), "m": {"method": "roots/list"}});
        let mut question = asks(inputs);
        question["requestState"] = json!("\u{e9} \" \\ \n");
        answer(&mut peer, &first, question).await;

        let second = expect(&mut peer, "tools/call").await;
        assert_ne!(second["id"], first["id"]);
        assert_eq!(second["params"]["_meta"], first["params"]["_meta"]);
        let expected = json!({
            "name": "t",
            "arguments": {"a": 1},
            "inputResponses": {
                "z": {"action": "accept", "content": {"name": "Ann"}},
                "a": {"role": "assistant", "content": {"type": "text", "text": "4"}, "model": "abacus"},
                "m": {"roots": [{"uri": "file:///home"}]},
            },
            "requestState": "\u{e9} \" \\ \n",
        });
        assert_eq!(without_meta(&second), expected);

        // Only the answers and the state of the last round are sent.
        let other = json!({"resultType": "input_required", "inputRequests": {"again": form()}});
        answer(&mut peer, &second, other).await;
        let third = expect(&mut peer, "tools/call").await;
        let again = json!({"again": {"action": "accept", "content": {"name": "Ann"}}});
        let expected = json!({"name": "t", "arguments": {"a": 1}, "inputResponses": again});
        assert_eq!(without_meta(&third), expected);
        answer(&mut peer, &third, done()).await;
        assert_eq!(
            call.await.unwrap().unwrap().content[0].as_text(),
            Some("done")
        );
        assert_silent(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn only_tools_prompts_and_resources_may_ask() {
    let (mut peer, session, _) = session_of(answering(), MODERN).await;
    let mut asked_and_done = async |method: &str, params: Value, mut result: Value| {
        let first = expect(&mut peer, method).await;
        answer(&mut peer, &first, asks(json!({"k": form()}))).await;
        let again = expect(&mut peer, method).await;
        let mut expected = params;
        expected["inputResponses"] = json!({"k": {"action": "accept", "content": {"name": "Ann"}}});
        expected["requestState"] = json!("the state");
        assert_eq!(without_meta(&again), expected);
        result["resultType"] = json!("complete");
        answer(&mut peer, &again, result).await;
    };
    let prompt = tokio::spawn(session.get_prompt("p", [("a", "b")]).into_future());
    let params = json!({"name": "p", "arguments": {"a": "b"}});
    asked_and_done("prompts/get", params, json!({"messages": []})).await;
    prompt.await.unwrap().unwrap();
    let resource = tokio::spawn(session.read_resource("file:///x").into_future());
    let params = json!({"uri": "file:///x"});
    asked_and_done("resources/read", params, json!({"contents": []})).await;
    resource.await.unwrap().unwrap();

    let listing = tokio::spawn(session.list_tools(Default::default()).into_future());
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, asks(json!({"k": form()}))).await;
    let error = listing.await.unwrap().unwrap_err();
    assert!(
        error.message().contains("this method does not support it"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn state_without_questions_is_returned_verbatim_after_pause() {
    let (mut peer, session, _) = session_of(client(), MODERN).await;
    let call = calling(&session);
    let mut request = expect(&mut peer, "tools/call").await;
    for pause in [50, 100, 200, 250, 250] {
        let id = &request["id"];
        let state = r#""\ud800\u0041\/""#;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":{state}}}}}"#
        );
        peer.send_line(&line).await.unwrap();
        let start = Instant::now();
        // The state is not text that a JSON value could hold.
        let error = peer.receive().await.unwrap_err();
        assert!(error.to_string().contains(state), "{error}");
        assert_eq!(start.elapsed(), Duration::from_millis(pause));
        let next = request["id"].as_i64().unwrap() + 1;
        request["id"] = json!(next);
    }
    answer(&mut peer, &request, done()).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn rounds_are_bounded() {
    for (limits, rounds) in [
        (Limits::default(), 10),
        (Limits::default().client(|client| client.max_rounds(2)), 2),
        (Limits::default().client(|client| client.max_rounds(0)), 0),
    ] {
        for question in [
            asks(json!({"k": form()})),
            json!({"resultType": "input_required", "requestState": ""}),
        ] {
            let (mut peer, session, _) =
                session_of(answering().limits(limits.clone()), MODERN).await;
            let call = calling(&session);
            for _ in 0..=rounds {
                let request = expect(&mut peer, "tools/call").await;
                answer(&mut peer, &request, question.clone()).await;
            }
            let error = call.await.unwrap().unwrap_err();
            assert!(
                error.is_limit() && error.message().contains("max_rounds"),
                "{error}"
            );
            assert_silent(&mut peer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn odd_request_for_input_is_tolerated() {
    let odd = json!({"resultType": "input_required", "inputRequests": [], "requestState": "s"});
    let (mut peer, session, _) = session_of(answering(), MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, odd.clone()).await;
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["requestState"], "s");
    answer(
        &mut peer,
        &request,
        json!({"resultType": "complete", "content": []}),
    )
    .await;
    call.await.unwrap().unwrap();
    let tolerated = session.tolerated();
    assert_eq!(tolerated[0].leniency.name(), "empty-array");

    let (mut peer, session, _) = session_of(answering().strict(), MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, odd).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.message().contains("invalid request for input"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn oversized_state_is_refused() {
    for (length, fits) in [(100, true), (101, false)] {
        let limits = Limits::default().max_request_state(100);
        let (mut peer, session, _) = session_of(answering().limits(limits), MODERN).await;
        let call = calling(&session);
        let request = expect(&mut peer, "tools/call").await;
        let state = "s".repeat(length);
        let asked = json!({"resultType": "input_required", "requestState": state, "inputRequests": {"k": form()}});
        answer(&mut peer, &request, asked).await;
        if fits {
            let again = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &again, done()).await;
            call.await.unwrap().unwrap();
        } else {
            let error = call.await.unwrap().unwrap_err();
            assert!(
                error.is_limit() && error.message().contains("max_request_state"),
                "{error}"
            );
            assert_silent(&mut peer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unanswerable_questions_fail_with_an_explanation() {
    let many: serde_json::Map<String, Value> = (0..3).map(|n| (n.to_string(), form())).collect();
    let cases = [
        (
            client(),
            json!({"k": form()}),
            "did not declare the capability elicitation",
        ),
        (
            client(),
            json!({"k": sample()}),
            "did not declare the capability sampling",
        ),
        (
            client(),
            json!({"k": {"method": "roots/list"}}),
            "did not declare the capability roots",
        ),
        (
            answering(),
            json!({"odd": {"method": "x/y"}}),
            "unsupported input request \"odd\"",
        ),
        (
            answering(),
            json!({"k": {"method": "ping"}}),
            "Method not found: ping",
        ),
        (answering(), json!([1]), "invalid request for input"),
        (
            answering(),
            json!({"k": {"method": "elicitation/create"}}),
            "invalid params of",
        ),
        (
            answering().limits(Limits::default().max_in_flight(2)),
            Value::Object(many),
            "sent 3 input requests at once",
        ),
    ];
    for (client, inputs, named) in cases {
        let (mut peer, session, _) = session_of(client.strict(), MODERN).await;
        let call = calling(&session);
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, asks(inputs)).await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.message().contains(named), "{error}");
        assert_silent(&mut peer).await;
    }
    let (mut peer, session, _) = session_of(client(), MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, json!({"resultType": "input_required"})).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error
            .message()
            .contains("neither `inputRequests` nor `requestState`"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_question_is_asked_if_one_is_unanswerable() {
    let client = client().on_elicit(|_: ElicitFormParams| async {
        if true {
            panic!("it was asked");
        }
        ElicitAction::Accept
    });
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(
        &mut peer,
        &request,
        asks(json!({"a": form(), "b": sample()})),
    )
    .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.is_unsupported() && error.message().contains("\"b\""),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_asked_together_are_answered_together() {
    let barrier = Arc::new(Barrier::new(3));
    let client = client().on_elicit(move |_: ElicitFormParams, cx: RequestContext| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Accept(json!({"name": cx.request_id().unwrap().to_string()}))
        }
    });
    let (mut peer, session, _) = session_of(client, MODERN).await;
    let call = calling(&session);
    let request = expect(&mut peer, "tools/call").await;
    answer(
        &mut peer,
        &request,
        asks(json!({"a": form(), "b": form(), "c": form()})),
    )
    .await;
    let again = expect(&mut peer, "tools/call").await;
    for key in ["a", "b", "c"] {
        let name = &again["params"]["inputResponses"][key]["content"]["name"];
        assert!(name.as_str().unwrap().contains(key), "{again}");
    }
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn progress_continues_with_a_token_for_each_round() {
    let (mut peer, session, _) = session_of(answering(), MODERN).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let call = session
        .call_tool("t", ())
        .meta("com.example/a", 1)
        .on_progress({
            let told = Arc::clone(&told);
            move |update| told.lock().unwrap().push(update.progress)
        });
    let call = tokio::spawn(call.into_future());
    let mut tokens = Vec::new();
    for progress in 1..=3 {
        let request = expect(&mut peer, "tools/call").await;
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["com.example/a"], 1);
        tokens.push(meta["progressToken"].clone());
        let params = json!({"progressToken": meta["progressToken"], "progress": progress});
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            .await
            .unwrap();
        let result = if progress < 3 {
            asks(json!({"k": form()}))
        } else {
            done()
        };
        answer(&mut peer, &request, result).await;
    }
    call.await.unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), [1.0, 2.0, 3.0]);
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn result_stays_typed_after_questions() -> Result<()> {
    let (mut peer, session, _) = session_of(answering(), MODERN).await;
    let call = tokio::spawn(session.call_tool("t", ()).structured::<f64>());
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, asks(json!({"k": form()}))).await;
    let again = expect(&mut peer, "tools/call").await;
    let result = json!({"resultType": "complete", "content": [], "structuredContent": 7});
    answer(&mut peer, &again, result).await;
    assert_eq!(call.await.unwrap()?, 7.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn modern_servers_still_cannot_make_requests() {
    let (mut peer, session, _) = session_of(answering(), MODERN).await;
    let mut request = form();
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!(1);
    peer.send(request).await.unwrap();
    let call = calling(&session);
    // The client sent nothing before the call.
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, done()).await;
    call.await.unwrap().unwrap();
}

const URI: &str = "file:///a";

/// A client that reads a resource before it answers a question.
fn curious() -> Client {
    client().on_elicit(|_: ElicitFormParams, cx: RequestContext| async move {
        let session = cx.client_session().unwrap();
        let read: ReadResourceResult = session.read_resource(URI).await?;
        Ok::<_, oxmcp::Error>(Accept(json!({"name": read.contents.len().to_string()})))
    })
}

fn contents() -> Value {
    json!({"resultType": "complete", "contents": [{"uri": URI, "text": "x"}], "ttlMs": 60_000})
}

/// Answers the handler's own request for the resource.
async fn let_it_read(peer: &mut ScriptedPeer) {
    let nested = expect(peer, "resources/read").await;
    assert_eq!(nested["params"].get("inputResponses"), None);
    answer(peer, &nested, contents()).await;
}

#[tokio::test(start_paused = true)]
async fn question_handler_may_read_the_same_resource() {
    let (mut peer, session, _) = session_of(curious(), Revision::LATEST).await;
    let reading = tokio::spawn(session.read_resource(URI).into_future());
    let request = expect(&mut peer, "resources/read").await;
    answer(&mut peer, &request, asks(json!({"key": form()}))).await;
    let_it_read(&mut peer).await;
    let again = expect(&mut peer, "resources/read").await;
    let said = &again["params"]["inputResponses"]["key"]["content"]["name"];
    assert_eq!(said, "1");
    answer(&mut peer, &again, contents()).await;
    let read = soon("answer", reading).await.unwrap().unwrap();
    assert_eq!(read.contents.len(), 1);

    let (mut peer, session, _) = session_of(curious(), Revision::V2025_11_25).await;
    let reading = tokio::spawn(session.read_resource(URI).into_future());
    let request = expect(&mut peer, "resources/read").await;
    let mut question = form();
    question["jsonrpc"] = "2.0".into();
    question["id"] = "q".into();
    peer.send(question).await.unwrap();
    let_it_read(&mut peer).await;
    let said = soon("answer", peer.receive()).await.unwrap();
    assert_eq!(said["result"]["content"]["name"], "1");
    answer(&mut peer, &request, contents()).await;
    soon("answer", reading).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn concurrent_caller_is_not_blocked_by_user_question() {
    let client = client().on_elicit(|_: ElicitFormParams| async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Accept(json!({"name": "Ann"}))
    });
    let (mut peer, session, _) = session_of(client, Revision::LATEST).await;
    let read = || {
        tokio::spawn(
            session
                .read_resource(URI)
                .max_total(Duration::MAX)
                .into_future(),
        )
    };
    let [first, second] = [read(), read()];
    let request = expect(&mut peer, "resources/read").await;
    answer(&mut peer, &request, asks(json!({"key": form()}))).await;
    let request = expect(&mut peer, "resources/read").await;
    assert_eq!(request["params"].get("inputResponses"), None);
    answer(&mut peer, &request, contents()).await;
    soon("answer", second).await.unwrap().unwrap();
    // The user takes longer than the timeout of any answer, which is allowed.
    let again = expect(&mut peer, "resources/read").await;
    assert!(again["params"]["inputResponses"].is_object());
    answer(&mut peer, &again, contents()).await;
    soon("answer", first).await.unwrap().unwrap();
}

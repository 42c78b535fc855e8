//! Servers that send invalid or unexpected tasks.

use oxmcp::{Accept, protocol::ElicitFormParams};

use super::*;

/// The error of a call whose task is polled once at most, and whether the client cancelled the task.
async fn error_after(made: Value, got: Option<Value>) -> (String, bool) {
    let capabilities = json!({"tools": {}, "extensions": {ID: {}}});
    let mut office = Office::of(client().strict(), capabilities).await;
    let call = office.call();
    office.answer("tools/call", made).await;
    if let Some(got) = got {
        office.answer("tasks/get", got).await;
    }
    let error = call.await.unwrap().unwrap_err();
    let next = timeout(Duration::from_secs(600), office.peer.receive()).await;
    let is_cancelled = next.is_ok_and(|it| it.unwrap()["method"] == "tasks/cancel");
    (error.message().to_owned(), is_cancelled)
}

#[tokio::test(start_paused = true)]
async fn nonsensical_task_is_an_error_and_cancelled() {
    let inlined = |result: Value| Some(state("completed", json!({"result": result})));
    let cases = [
        (created(json!({"taskId": ""})), None, "1 to 1024", false),
        (
            created(json!({"taskId": "x".repeat(2000)})),
            None,
            "2000 bytes",
            false,
        ),
        (
            created(json!({"status": {"a": 1}})),
            None,
            "invalid result",
            false,
        ),
        (
            created(json!({})),
            Some(state("working", json!({"taskId": "another"}))),
            "a different task",
            true,
        ),
        (
            created(json!({})),
            Some(state("working", json!({"pollIntervalMs": "soon"}))),
            "tasks/get",
            true,
        ),
        (
            created(json!({})),
            Some(state("completed", json!({}))),
            "without a result",
            false,
        ),
        (
            created(json!({})),
            inlined(json!({"resultType": "task", "taskId": "more"})),
            "not a final result",
            false,
        ),
        (
            created(json!({})),
            inlined(json!({"resultType": "input_required"})),
            "not a final result",
            false,
        ),
        (
            created(json!({})),
            inlined(json!([1])),
            "expected an object",
            false,
        ),
        (
            created(json!({})),
            inlined(json!({"content": 7})),
            "invalid result",
            false,
        ),
        (
            created(json!({})),
            Some(state(
                "input_required",
                json!({"inputRequests": {"a": {"method": "sampling/createMessage"}}}),
            )),
            "did not declare",
            true,
        ),
        (
            created(json!({})),
            Some(state("input_required", json!({"inputRequests": {"a": 7}}))),
            "invalid request for input: invalid type: integer `7`, expected an object",
            true,
        ),
    ];
    for (made, got, expected, cancels) in cases {
        let (error, is_cancelled) = error_after(made.clone(), got).await;
        assert!(error.contains(expected), "{made}: {error}");
        assert_eq!(is_cancelled, cancels, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn unrequested_task_is_refused() {
    // The server has not declared the extension.
    let mut office = Office::of(client(), json!({"tools": {}})).await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.message().contains("without declaring the extension"),
        "{error}"
    );
    office.silence().await;
    // The client has not declared the extension.
    let plain = Client::new("tester", "1.0.0");
    let mut office = Office::of(plain, json!({"tools": {}, "extensions": {ID: {}}})).await;
    let call = office.call();
    let request = office.answer("tools/call", created(json!({}))).await;
    let declared = &request["params"]["_meta"][Meta::CLIENT_CAPABILITIES];
    assert!(declared.get("extensions").is_none(), "{declared}");
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().contains("unknown result type"), "{error}");
    // The method cannot become a task.
    let mut office = Office::open().await;
    let call = tokio::spawn(office.session.read_resource("a:b").into_future());
    office.answer("resources/read", created(json!({}))).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().contains("unknown result type"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn forgotten_task_is_not_an_argument_error() {
    let mut office = Office::open().await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    office.refuse("tasks/get", -32602).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().contains("its task is gone"), "{error}");
    assert_eq!(error.code().value(), -32602);
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn poll_intervals_are_clamped() {
    for (interval, pause) in [(0, 50), (u64::MAX, 60_000)] {
        let mut office = Office::open().await;
        let call = office
            .session
            .call_tool("report", ())
            .timeout(Duration::from_secs(1000));
        let call = tokio::spawn(call.into_future());
        office
            .answer("tools/call", created(json!({"pollIntervalMs": interval})))
            .await;
        let start = Instant::now();
        office.answer("tasks/get", completed()).await;
        assert_eq!(start.elapsed().as_millis(), pause);
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn question_rounds_of_a_task_are_limited() {
    let client = client().on_elicit(|_: ElicitFormParams| async { Accept(json!({})) });
    let mut office = Office::of(client, json!({"tools": {}, "extensions": {ID: {}}})).await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    let mut asked = 0;
    loop {
        let request = office.peer.receive().await.unwrap();
        match request["method"].as_str().unwrap() {
            "tasks/get" => {
                asked += 1;
                let form = json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {
                    "type": "object", "properties": {},
                }}});
                let questions = json!({format!("q{asked}"): form});
                let asks = state("input_required", json!({"inputRequests": questions}));
                give(&mut office.peer, &request, asks).await;
            }
            "tasks/update" => {
                give(
                    &mut office.peer,
                    &request,
                    json!({"resultType": "complete"}),
                )
                .await;
            }
            "tasks/cancel" => break,
            _ => {}
        }
    }
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.is_limit() && error.message().contains("max_rounds"),
        "{error}"
    );
    assert_eq!(asked, 11);
}

#[tokio::test(start_paused = true)]
async fn backward_status_does_not_reopen_a_finished_task() {
    let mut office = Office::open().await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    office.answer("tasks/get", completed()).await;
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn long_result_is_bounded_like_any_message() {
    let limits = oxmcp::Limits::default().max_message_bytes(1 << 20);
    let mut office = Office::of(
        client().limits(limits),
        json!({"tools": {}, "extensions": {ID: {}}}),
    )
    .await;
    let call = office
        .session
        .call_tool("report", ())
        .timeout(Duration::from_secs(90));
    let call = tokio::spawn(call.into_future());
    office.answer("tools/call", created(json!({}))).await;
    let long = json!({"content": [{"type": "text", "text": "x".repeat(10 << 20)}]});
    let get = office.expect("tasks/get").await;
    let line = json!({"jsonrpc": "2.0", "id": get["id"], "result": state("completed", json!({"result": long}))});
    // The rest of a line that is too long is not read.
    office.peer.send(line).await.ok();
    call.await.unwrap().unwrap_err();
}

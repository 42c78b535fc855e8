//! Calls that have become tasks, while their caller waits.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Accept, JsonSchema, RequestContext, Server, Tool,
    protocol::ElicitFormParams,
    tasks::{TaskPolicy, TaskTool, Tasks},
    testing,
};

use super::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

#[tokio::test(start_paused = true)]
async fn call_that_becomes_a_task_is_awaited_transparently() {
    for policy in [
        TaskPolicy::Required,
        TaskPolicy::Always,
        TaskPolicy::After(Duration::from_secs(1)),
    ] {
        let tool = Tool::new("delete", "Delete", |cx: RequestContext| async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let answer: Confirm = cx.ask("sure", "Sure?").await?;
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok::<_, oxmcp::Error>(format!("sure: {}", answer.sure))
        });
        let server = Server::new("office", "1.0.0")
            .extension(Tasks::in_memory().extension())
            .tool(tool.task(policy));
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let client = client().on_elicit(move |_: ElicitFormParams| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { Accept(json!({"sure": true})) }
        });
        let session = testing::connect(&server).client(&client).await.unwrap();
        let said: String = session.call_tool("delete", ()).structured().await.unwrap();
        assert_eq!(said, "sure: true");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn task_is_polled_at_the_servers_interval() {
    let mut office = Office::open().await;
    let call = office.call();
    let request = office
        .answer("tools/call", created(json!({"pollIntervalMs": 7000})))
        .await;
    let declared = &request["params"]["_meta"][Meta::CLIENT_CAPABILITIES];
    assert_eq!(declared["extensions"], json!({ID: {}}));
    let start = Instant::now();
    let get = office
        .answer(
            "tasks/get",
            state("working", json!({"pollIntervalMs": 2000})),
        )
        .await;
    assert_eq!(get["params"]["taskId"], "the-id");
    assert_eq!(start.elapsed().as_secs(), 7);
    office.refuse("subscriptions/listen", -32601).await;
    office.answer("tasks/get", completed()).await;
    assert_eq!(start.elapsed().as_secs(), 9);
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn task_created_finished_is_fetched_at_once() {
    let mut office = Office::open().await;
    let call = office.call();
    office
        .answer("tools/call", created(json!({"status": "completed"})))
        .await;
    let start = Instant::now();
    office.answer("tasks/get", completed()).await;
    assert!(start.elapsed().is_zero());
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
}

#[tokio::test(start_paused = true)]
async fn answered_question_is_not_answered_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let client = client().on_elicit(move |_: ElicitFormParams| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Accept(json!({"sure": true})) }
    });
    let mut office = Office::of(client, json!({"tools": {}, "extensions": {ID: {}}})).await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    let form = json!({"method": "elicitation/create", "params": {"message": "Sure?", "requestedSchema": {
        "type": "object", "properties": {"sure": {"type": "boolean"}},
    }}});
    let asks = |keys: &[&str]| {
        let questions: serde_json::Map<_, _> = keys
            .iter()
            .map(|key| ((*key).to_owned(), form.clone()))
            .collect();
        state("input_required", json!({"inputRequests": questions}))
    };
    office.answer("tasks/get", asks(&["a"])).await;
    let update = office
        .answer("tasks/update", json!({"resultType": "complete"}))
        .await;
    let answer = json!({"action": "accept", "content": {"sure": true}});
    assert_eq!(update["params"]["inputResponses"], json!({"a": answer}));
    office.refuse("subscriptions/listen", -32601).await;
    // The server has not processed the answer yet, and then asks another question.
    office.answer("tasks/get", asks(&["a"])).await;
    office.answer("tasks/get", asks(&["a", "b"])).await;
    let update = office
        .answer("tasks/update", json!({"resultType": "complete"}))
        .await;
    assert_eq!(update["params"]["inputResponses"], json!({"b": answer}));
    office.answer("tasks/get", completed()).await;
    call.await.unwrap().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn server_that_notifies_of_changes_is_not_polled() {
    let mut office = Office::open().await;
    let call = office.call();
    office.answer("tools/call", created(json!({}))).await;
    office
        .answer("tasks/get", state("working", json!({})))
        .await;
    let listen = office.expect("subscriptions/listen").await;
    assert_eq!(
        listen["params"]["notifications"],
        json!({"taskIds": ["the-id"]})
    );
    let tell = |method: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let filter = json!({"notifications": {"taskIds": ["the-id"]}});
    office
        .peer
        .send(tell("notifications/subscriptions/acknowledged", filter))
        .await
        .unwrap();
    // Changes before the subscription are not notified, so the task is polled at once.
    let start = Instant::now();
    office
        .answer("tasks/get", state("working", json!({})))
        .await;
    assert!(start.elapsed().is_zero());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut foreign = completed();
    foreign["taskId"] = json!("another");
    foreign["result"]["content"][0]["text"] = json!("another report");
    office
        .peer
        .send(tell("notifications/tasks", foreign))
        .await
        .unwrap();
    office
        .peer
        .send(tell("notifications/tasks", completed()))
        .await
        .unwrap();
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    assert_eq!(start.elapsed().as_secs(), 20);
    let ended = office.expect("notifications/cancelled").await;
    assert_eq!(ended["params"]["requestId"], listen["id"]);
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn transient_poll_failures_are_retried_until_expiry() {
    let mut office = Office::open().await;
    let call = office.call();
    office
        .answer("tools/call", created(json!({"ttlMs": 30_000})))
        .await;
    office.refuse("tasks/get", -32603).await;
    office.refuse("tasks/get", -32603).await;
    office
        .answer("tasks/get", state("working", json!({"ttlMs": 30_000})))
        .await;
    office.refuse("subscriptions/listen", -32601).await;
    let start = Instant::now();
    while !call.is_finished() {
        let next = timeout(Duration::from_secs(1), office.peer.receive()).await;
        let Ok(Ok(request)) = next else { continue };
        if request["method"] == "tasks/get" {
            let error = json!({"code": -32603, "message": "no"});
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
            office.peer.send(answer).await.unwrap();
        }
    }
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().contains("cannot get the status"), "{error}");
    assert!(
        (20..60).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn abandoned_call_cancels_its_task() {
    for way in ["dropped", "timeout", "token"] {
        let mut office = Office::open().await;
        let token = oxmcp::CancellationToken::new();
        let call = office
            .session
            .call_tool("report", ())
            .timeout(Duration::from_secs(5));
        let call = call.cancel_with(token.clone());
        let call = tokio::spawn(call.into_future());
        office
            .answer("tools/call", created(json!({"pollIntervalMs": 60_000})))
            .await;
        tokio::task::yield_now().await;
        match way {
            "dropped" => call.abort(),
            "token" => token.cancel(),
            _ => {}
        }
        let cancel = office
            .answer("tasks/cancel", json!({"resultType": "complete"}))
            .await;
        assert_eq!(cancel["params"]["taskId"], "the-id", "{way}");
        match (way, call.await) {
            ("dropped", Err(error)) => assert!(error.is_cancelled()),
            ("timeout", Ok(Err(error))) => assert!(error.is_timeout(), "{error}"),
            ("token", Ok(Err(error))) => assert!(error.is_cancelled(), "{error}"),
            (way, other) => panic!("{way}: {other:?}"),
        }
        office.silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn task_changes_restart_the_timeout_up_to_limit() {
    let mut office = Office::open().await;
    let call = office
        .session
        .call_tool("report", ())
        .timeout(Duration::from_secs(5));
    let call = tokio::spawn(call.max_total(Duration::from_secs(30)).into_future());
    office
        .answer("tools/call", created(json!({"pollIntervalMs": 4000})))
        .await;
    let start = Instant::now();
    for second in 0_u64.. {
        let request = office.peer.receive().await.unwrap();
        match request["method"].as_str().unwrap() {
            "tasks/get" => {
                let more = json!({"statusMessage": second.to_string(), "pollIntervalMs": 4000});
                give(&mut office.peer, &request, state("working", more)).await;
            }
            "tasks/cancel" => break,
            _ => {}
        }
    }
    assert_eq!(start.elapsed().as_secs(), 30);
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.is_timeout() && error.message().contains("max_total"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn task_outcome_equals_the_calls_outcome() {
    let outcomes = [
        (
            state(
                "failed",
                json!({"error": {"code": -32000, "message": "broken", "data": 7}}),
            ),
            "broken",
        ),
        (
            state("cancelled", json!({"statusMessage": "enough"})),
            "enough",
        ),
        (state("failed", json!({"statusMessage": "odd"})), "odd"),
    ];
    for (outcome, expected) in outcomes {
        let mut office = Office::open().await;
        let call = office.call();
        office.answer("tools/call", created(json!({}))).await;
        let is_cancelled = outcome["status"] == "cancelled";
        office.answer("tasks/get", outcome).await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(error.is_cancelled(), is_cancelled);
        assert_eq!(error.data().is_some(), expected == "broken");
        office.silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn task_result_is_validated_against_output_schema() {
    let mut office = Office::open().await;
    let session = office.session.clone();
    let listing = tokio::spawn(async move { session.tools().all().await });
    let tool = json!({"name": "report", "inputSchema": {"type": "object"}, "outputSchema": {
        "type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"],
    }});
    office
        .answer(
            "tools/list",
            json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"}),
        )
        .await;
    listing.await.unwrap().unwrap();
    let call = office.session.call_tool("report", ());
    let call = tokio::spawn(async move { call.structured::<Value>().await });
    office.answer("tools/call", created(json!({}))).await;
    let result = json!({"content": [], "structuredContent": {"pages": "many"}});
    office
        .answer("tasks/get", state("completed", json!({"result": result})))
        .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.message().contains("/pages"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn outcome_takes_precedence_over_unknown_status() {
    let report =
        || json!({"resultType": "complete", "content": [{"type": "text", "text": "the report"}]});
    let error = || json!({"code": -32000, "message": "broken"});
    for (status, outcome, expected) in [
        ("archived", json!({"result": report()}), "the report"),
        ("archived", json!({"error": error()}), "error: broken"),
        ("completed", json!({"error": error()}), "error: broken"),
        ("failed", json!({"error": error()}), "error: broken"),
        ("failed", json!({"result": report()}), "failed: the report"),
        (
            "failed",
            json!({"result": {}, "statusMessage": "on fire"}),
            "error: on fire",
        ),
        (
            "failed",
            json!({"statusMessage": "on fire"}),
            "error: on fire",
        ),
    ] {
        let mut office = Office::open().await;
        let call = office.call();
        office.answer("tools/call", created(json!({}))).await;
        office.answer("tasks/get", state(status, outcome)).await;
        let ended = match call.await.unwrap() {
            Ok(result) if result.is_error => format!("failed: {}", text(&result)),
            Ok(result) => text(&result).to_owned(),
            Err(error) => format!("error: {}", error.message()),
        };
        assert_eq!(ended, expected, "{status}");
    }
}

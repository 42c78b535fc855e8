//! The tasks of servers that speak 2025-11-25.

use oxmcp::{
    Accept,
    protocol::{ElicitFormParams, TaskStatus},
    tasks::AsTask,
};

use super::*;

/// The capabilities of a server that runs tools as tasks, and can cancel them.
fn capabilities() -> Value {
    json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}})
}

/// An [`Office`] whose server speaks 2025-11-25.
async fn legacy(client: Client, capabilities: Value) -> Office {
    let client = client.revisions([Revision::V2025_11_25]);
    let (mut peer, transport) = ScriptedPeer::new().await;
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    let opening = expect(&mut peer, "initialize").await;
    let agreed = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"},
    });
    give(&mut peer, &opening, agreed).await;
    expect(&mut peer, "notifications/initialized").await;
    let session = connecting.await.unwrap().unwrap();
    Office { peer, session }
}

fn tools(support: &str) -> Value {
    let tool = json!({
        "name": "report", "inputSchema": {"type": "object"}, "execution": {"taskSupport": support},
    });
    json!({"tools": [tool]})
}

/// Lets the client list the tools.
async fn list(office: &mut Office, support: &str) {
    let session = office.session.clone();
    let listing = tokio::spawn(async move { session.tools().all().await });
    office.answer("tools/list", tools(support)).await;
    listing.await.unwrap().unwrap();
}

fn task(status: &str) -> Value {
    json!({
        "taskId": "the-id", "status": status, "ttl": 60_000, "pollInterval": 2000,
        "createdAt": "2026-11-24T00:00:00Z", "lastUpdatedAt": "2026-11-24T00:00:00Z",
    })
}

fn made() -> Value {
    json!({"task": task("working")})
}

fn report() -> Value {
    json!({
        "content": [{"type": "text", "text": "the report"}],
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "the-id"}},
    })
}

#[tokio::test(start_paused = true)]
async fn tool_requiring_a_task_is_called_as_one() {
    let mut office = legacy(client(), capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    let request = office.answer("tools/call", made()).await;
    assert_eq!(request["params"], json!({"name": "report", "task": {}}));
    let start = Instant::now();
    let get = office.answer("tasks/get", task("working")).await;
    assert_eq!(get["params"], json!({"taskId": "the-id"}));
    assert_eq!(start.elapsed().as_secs(), 2);
    office.answer("tasks/get", task("completed")).await;
    let result = office.answer("tasks/result", report()).await;
    assert_eq!(result["params"], json!({"taskId": "the-id"}));
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn unlisted_tool_is_looked_up_after_refusal() {
    let mut office = legacy(client(), capabilities()).await;
    let call = office.call();
    office.refuse("tools/call", -32601).await;
    office.answer("tools/list", tools("required")).await;
    let request = office.answer("tools/call", made()).await;
    assert_eq!(request["params"]["task"], json!({}));
    office.answer("tasks/get", task("completed")).await;
    office.answer("tasks/result", report()).await;
    call.await.unwrap().unwrap();
    // A tool that the list does not have is not looked up again.
    let call = tokio::spawn(office.session.call_tool("other", ()).into_future());
    office.refuse("tools/call", -32601).await;
    assert_eq!(call.await.unwrap().unwrap_err().code().value(), -32601);
}

#[tokio::test(start_paused = true)]
async fn tool_is_looked_up_after_any_protocol_error() {
    for code in [-32603, -32600, -32602, -32000, 7] {
        let mut office = legacy(client(), capabilities()).await;
        let call = office.call();
        office.refuse("tools/call", code).await;
        office.answer("tools/list", tools("required")).await;
        office.answer("tools/call", made()).await;
        office.answer("tasks/get", task("completed")).await;
        office.answer("tasks/result", report()).await;
        call.await.unwrap().unwrap();
        // A tool that can run without a task may have done something before it failed.
        let mut office = legacy(client(), capabilities()).await;
        let call = office.call();
        office.refuse("tools/call", code).await;
        office.answer("tools/list", tools("optional")).await;
        assert_eq!(call.await.unwrap().unwrap_err().code().value(), code);
        // One lookup is enough for a session.
        let call = office.call();
        office.refuse("tools/call", code).await;
        call.await.unwrap().unwrap_err();
        office.silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_may_be_a_tool_error_result() {
    let refusal = || {
        let content = json!([{"type": "text", "text": "MCP error -32601: it requires a task"}]);
        json!({"content": content, "isError": true})
    };
    for (support, is_called_again) in [("required", true), ("optional", false)] {
        let mut office = legacy(client(), capabilities()).await;
        let call = office.call();
        office.answer("tools/call", refusal()).await;
        office.answer("tools/list", tools(support)).await;
        if is_called_again {
            let request = office.answer("tools/call", made()).await;
            assert_eq!(request["params"]["task"], json!({}));
            office.answer("tasks/get", task("completed")).await;
            office.answer("tasks/result", report()).await;
        }
        assert_eq!(call.await.unwrap().unwrap().is_error, !is_called_again);
        // The tools are not listed again for another tool that fails.
        let call = tokio::spawn(office.session.call_tool("other", ()).into_future());
        office.answer("tools/call", refusal()).await;
        assert!(call.await.unwrap().unwrap().is_error);
        office.silence().await;
    }
    // If the list cannot be fetched, the refusal is the result.
    let mut office = legacy(client(), capabilities()).await;
    let call = office.call();
    office.answer("tools/call", refusal()).await;
    office.refuse("tools/list", -32603).await;
    assert!(call.await.unwrap().unwrap().is_error);
}

#[tokio::test(start_paused = true)]
async fn task_questions_arrive_while_awaiting_its_result() {
    let client = client().on_elicit(|_: ElicitFormParams| async { Accept(json!({"sure": true})) });
    let mut office = legacy(client, capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    office.answer("tools/call", made()).await;
    office.answer("tasks/get", task("input_required")).await;
    let waiting = office.expect("tasks/result").await;
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "the-id"}},
    }});
    let answer = office.peer.ask(question).await.unwrap();
    assert_eq!(
        answer["result"]["content"],
        json!({"sure": true}),
        "{answer}"
    );
    // The client continues to poll the task, but does not request its result again.
    office.answer("tasks/get", task("working")).await;
    office.answer("tasks/get", task("input_required")).await;
    office.answer("tasks/get", task("completed")).await;
    give(&mut office.peer, &waiting, report()).await;
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn failed_task_yields_the_calls_own_outcome() {
    let mut office = legacy(client(), capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    office.answer("tools/call", made()).await;
    office.answer("tasks/get", task("failed")).await;
    let failed = json!({"content": [{"type": "text", "text": "broken"}], "isError": true});
    office.answer("tasks/result", failed).await;
    assert!(call.await.unwrap().unwrap().is_error);
    let call = office.call();
    office.answer("tools/call", made()).await;
    office.answer("tasks/get", task("failed")).await;
    office.refuse("tasks/result", -32603).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.code().value(), error.message()), (-32603, "no"));
    let call = office.call();
    office.answer("tools/call", made()).await;
    office.answer("tasks/get", task("cancelled")).await;
    assert!(call.await.unwrap().unwrap_err().is_cancelled());
    office.silence().await;
}

fn explained(status: &str) -> Value {
    let mut task = task(status);
    task["statusMessage"] = json!("the printer is on fire");
    task
}

#[tokio::test(start_paused = true)]
async fn failed_task_is_never_a_success() {
    let empty = || json!({"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "the-id"}}});
    // The answers to `tasks/result`, and the error of the call.
    let no_content = [
        empty(),
        json!({"content": []}),
        json!({"content": null, "isError": false}),
    ];
    for result in no_content {
        let mut office = legacy(client(), capabilities()).await;
        list(&mut office, "required").await;
        let call = office.call();
        office.answer("tools/call", made()).await;
        office.answer("tasks/get", explained("failed")).await;
        office.answer("tasks/result", result).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.message(), "the printer is on fire");
    }
    // A result with content is that of a tool that has failed, whether or not it says so.
    for is_error in [json!(null), json!(false), json!(true)] {
        let mut office = legacy(client(), capabilities()).await;
        list(&mut office, "required").await;
        let call = office.call();
        office.answer("tools/call", made()).await;
        office.answer("tasks/get", explained("failed")).await;
        let mut result = report();
        if !is_error.is_null() {
            result["isError"] = is_error;
        }
        office.answer("tasks/result", result).await;
        let result = call.await.unwrap().unwrap();
        assert!(result.is_error);
        assert_eq!(text(&result), "the report");
    }
    for (code, expected, message) in [
        (-32601, -32603, "the printer is on fire"),
        (-32603, -32603, "the printer is on fire: no"),
        (-32000, -32000, "the printer is on fire: no"),
    ] {
        let mut office = legacy(client(), capabilities()).await;
        list(&mut office, "required").await;
        let call = office.call();
        office.answer("tools/call", made()).await;
        office.answer("tasks/get", explained("failed")).await;
        office.refuse("tasks/result", code).await;
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.code().value(), error.message()), (expected, message));
    }
    // A server may never answer.
    let mut office = legacy(client(), capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    office.answer("tools/call", made()).await;
    let mut kept = explained("failed");
    kept["ttl"] = json!(3_600_000);
    office.answer("tasks/get", kept).await;
    office.expect("tasks/result").await;
    let start = Instant::now();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 60, "it is not asked again");
    assert!(
        error.message().starts_with("the printer is on fire"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn early_result_is_judged_by_the_status() {
    // The final status, the result, and whether the call fails, as an error or as a result.
    for (status, has_content, expected) in [
        ("completed", true, "the report"),
        ("failed", true, "failed: the report"),
        ("failed", false, "the printer is on fire"),
        ("cancelled", true, "cancelled"),
        ("gone", true, "the report"),
    ] {
        let mut office = legacy(client(), capabilities()).await;
        let handle = tokio::spawn(office.session.call_tool("report", ()).as_task());
        office.answer("tools/list", tools("required")).await;
        office.answer("tools/call", made()).await;
        let handle = handle.await.unwrap().unwrap();
        office.answer("tasks/get", task("input_required")).await;
        let waiting = office.expect("tasks/result").await;
        let result = if has_content { report() } else { json!({}) };
        give(&mut office.peer, &waiting, result).await;
        if status == "gone" {
            office.refuse("tasks/get", -32602).await;
        } else {
            office.answer("tasks/get", explained(status)).await;
        }
        let outcome = match handle.result().await {
            Ok(result) if result.is_error => format!("failed: {}", text(&result)),
            Ok(result) => text(&result).to_owned(),
            Err(error) if error.is_cancelled() => "cancelled".to_owned(),
            Err(error) => error.message().to_owned(),
        };
        assert_eq!(outcome, expected, "{status}");
        // The last state is the final one.
        let last = handle.state().unwrap().status.clone();
        let status = if status == "gone" {
            "completed"
        } else {
            status
        };
        assert_eq!(last.as_str(), status);
        office.silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn error_that_comes_first_fails_the_task() {
    let mut office = legacy(client(), capabilities()).await;
    let handle = tokio::spawn(office.session.call_tool("report", ()).as_task());
    office.answer("tools/list", tools("required")).await;
    office.answer("tools/call", made()).await;
    let handle = handle.await.unwrap().unwrap();
    office.answer("tasks/get", task("input_required")).await;
    office.refuse("tasks/result", -32603).await;
    office.answer("tasks/get", explained("working")).await;
    let error = handle.result().await.unwrap_err();
    assert_eq!(error.message(), "the printer is on fire: no");
    assert_eq!(handle.state().unwrap().status, TaskStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn unknown_status_is_settled_by_the_result() {
    let mut office = legacy(client(), capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    office.answer("tools/call", made()).await;
    office.answer("tasks/get", task("archived")).await;
    office.answer("tasks/result", report()).await;
    office.answer("tasks/get", task("archived")).await;
    assert_eq!(text(&call.await.unwrap().unwrap()), "the report");
    office.silence().await;
}

#[tokio::test(start_paused = true)]
async fn abandoned_call_cancels_its_task_if_possible() {
    let without = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    for (capabilities, cancels) in [(capabilities(), true), (without, false)] {
        let mut office = legacy(client(), capabilities).await;
        list(&mut office, "required").await;
        let call = office.call();
        office.answer("tools/call", made()).await;
        tokio::task::yield_now().await;
        call.abort();
        if cancels {
            office.answer("tasks/cancel", task("cancelled")).await;
        }
        office.silence().await;
    }
}

#[tokio::test(start_paused = true)]
async fn optional_task_is_used_only_when_requested() {
    for support in ["optional", "forbidden", "required"] {
        let mut office = legacy(client(), capabilities()).await;
        let call = office.session.call_tool("report", ());
        let handle = tokio::spawn(call.as_task());
        office.answer("tools/list", tools(support)).await;
        let request = office.expect("tools/call").await;
        let asks = request["params"].get("task").is_some();
        assert_eq!(asks, support != "forbidden");
        give(
            &mut office.peer,
            &request,
            if asks { made() } else { report() },
        )
        .await;
        let handle = handle.await.unwrap().unwrap();
        assert_eq!(handle.id(), asks.then_some("the-id"));
        if asks {
            office.answer("tasks/get", task("completed")).await;
            office.answer("tasks/result", report()).await;
        }
        assert_eq!(text(&handle.result().await.unwrap()), "the report");
        if support == "optional" {
            let call = office.call();
            let request = office.answer("tools/call", report()).await;
            assert_eq!(request["params"], json!({"name": "report"}));
            call.await.unwrap().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn server_without_tasks_receives_no_task_requests() {
    let mut office = legacy(client(), json!({"tools": {}})).await;
    list(&mut office, "required").await;
    let task = tokio::spawn(office.session.call_tool("report", ()).as_task());
    let request = office.answer("tools/call", report()).await;
    assert_eq!(request["params"], json!({"name": "report"}));
    assert_eq!(task.await.unwrap().unwrap().id(), None);
    // A client without tasks does not call a tool as a task either.
    let mut office = legacy(Client::new("tester", "1.0.0"), capabilities()).await;
    list(&mut office, "required").await;
    let call = office.call();
    office.refuse("tools/call", -32601).await;
    call.await.unwrap().unwrap_err();
    office.silence().await;
}

//! Calls and requests that are refused, and calls that continue although no task can be created for them.

use oxmcp::{JsonSchema, tasks::MemoryTaskStore};
use serde::Deserialize;

use super::*;
use crate::{http::log_lines::LogLines, support::subscribe};

#[derive(Deserialize, JsonSchema)]
struct Pages {
    count: u8,
}

/// A server whose store has room for a single task, and a tool that waits for a second and then counts.
fn printer(policy: TaskPolicy, max_tasks: usize) -> (Server, std::sync::Arc<MemoryTaskStore>) {
    let store = std::sync::Arc::new(MemoryTaskStore::new().max_tasks(max_tasks));
    let run = |Pages { count }: Pages| async move {
        if count > 9 {
            return "at once".to_owned();
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        format!("{count} pages")
    };
    let tool = Tool::new("print", "Print pages", run).task(policy);
    let server = Server::new("office", "1.0.0")
        .extension(Tasks::new(std::sync::Arc::clone(&store)).extension())
        .tool(tool);
    (server, store)
}

#[tokio::test(start_paused = true)]
async fn started_work_continues_without_a_task() {
    let log = LogLines::default();
    let _guard = subscribe(log.clone());
    for (policy, count, expected) in [
        (TaskPolicy::After(Duration::from_secs(1)), 2, "2 pages"),
        (TaskPolicy::Always, 2, "2 pages"),
        (TaskPolicy::Always, 10, "at once"),
    ] {
        let (server, _store) = printer(policy, 0);
        let mut peer = Peer::of(&server).await;
        let call = json!({"name": "print", "arguments": {"count": count}});
        let answer = peer.ask("tools/call", call).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(answer["result"]["content"][0]["text"], expected);
        // The operator learns that the store is too small.
        let warning = "could not create a task; the call continues without one";
        let lines = log.take();
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(has(warning) && has("too many tasks"), "{lines:?}");
    }
    // A handler that has not begun is not run.
    let (server, _store) = printer(TaskPolicy::Required, 0);
    let mut peer = Peer::of(&server).await;
    let call = json!({"name": "print", "arguments": {"count": 2}});
    let refused = peer.ask("tools/call", call).await;
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("too many tasks")
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_create_no_task() {
    for policy in [
        TaskPolicy::Required,
        TaskPolicy::Always,
        TaskPolicy::After(Duration::ZERO),
    ] {
        let (server, store) = printer(policy, 9);
        let mut peer = Peer::of(&server).await;
        for arguments in [json!({}), json!({"count": "many"}), json!({"count": 1000})] {
            let call = json!({"name": "print", "arguments": arguments});
            let answer = peer.ask("tools/call", call).await;
            assert_eq!(answer["result"]["isError"], true, "{policy:?} {answer}");
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("/count") || text.contains("count"), "{text}");
        }
        let (server, legacy_store) = printer(policy, 9);
        let mut peer = script(&server).await;
        let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
        }});
        peer.ask(open).await.unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "print", "arguments": {"count": "many"}, "task": {},
        }});
        let answer = peer.ask(call).await.unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("/count"), "{message}");
        for store in [store, legacy_store] {
            let kept = oxmcp::tasks::TaskStore::list(&*store, None, None, 9)
                .await
                .unwrap();
            assert_eq!(kept, [""; 0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_requests_are_refused_with_parser_message() {
    let (server, _store) = printer(TaskPolicy::Always, 9);
    let mut peer = Peer::of(&server).await;
    let mut said = Vec::new();
    for (method, params) in [
        ("tasks/get", json!({})),
        ("tasks/get", json!({"taskId": 5})),
        ("tasks/cancel", json!({"taskId": ["x"]})),
        ("tasks/update", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": 5})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": []})),
        (
            "subscriptions/listen",
            json!({"notifications": {"taskIds": 5}}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"taskIds": true}}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"taskIds": "x"}}),
        ),
        (
            "subscriptions/listen",
            json!({"notifications": {"taskIds": {"x": 1}}}),
        ),
    ] {
        let answer = peer.ask(method, params).await;
        let error = &answer["error"];
        said.push(format!(
            "{} {}",
            error["code"],
            error["message"].as_str().unwrap_or("-")
        ));
    }
    insta::assert_snapshot!(said.join("\n"), @r"
    -32602 invalid params of tasks/get: missing field `taskId`
    -32602 invalid params of tasks/get: invalid type: integer `5`, expected a string
    -32602 invalid params of tasks/cancel: found an array, expected a string
    -32602 invalid params of tasks/update: missing field `inputResponses`
    -32602 invalid params of tasks/update: invalid type: integer `5`, expected an object
    -32602 invalid params of tasks/update: found an array, expected an object
    -32602 invalid `taskIds`: found `5`; expected an array of task IDs
    -32602 invalid `taskIds`: found `true`; expected an array of task IDs
    -32602 invalid `taskIds`: found a string; expected an array of task IDs
    -32602 invalid `taskIds`: found an object; expected an array of task IDs
    ");
}

#[tokio::test(start_paused = true)]
async fn empty_id_list_is_not_a_subscription() {
    let (server, _store) = printer(TaskPolicy::Always, 9);
    for ids in [json!(null), json!([])] {
        let mut peer = Peer::of(&server).await;
        let params = json!({"notifications": {"taskIds": ids}});
        peer.0
            .send(declaring(1, "subscriptions/listen", params))
            .await
            .unwrap();
        let acknowledged = peer.0.receive().await.unwrap();
        assert_eq!(
            acknowledged["method"],
            "notifications/subscriptions/acknowledged"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn corrected_arguments_create_a_task() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Pages {
        pages: u32,
    }
    let schema = json!({"type": "object", "properties": {"pages": {"type": "integer"}}});
    let tools = [
        Tool::new("report", "Write it.", |it: Pages| async move { it.pages }),
        Tool::dynamic("report", "Write it.", schema, |_, arguments| async move {
            let pages: Pages = serde_json::from_str(arguments.get())?;
            Ok(pages.pages.to_string())
        }),
    ];
    for tool in tools {
        let mut peer = Peer::of(&server(tool.task(TaskPolicy::Required))).await;
        let call = json!({"name": "report", "arguments": {"pages": "7", "more": null}});
        let answer = peer.ask("tools/call", call).await;
        let id = answer["result"]["taskId"].as_str().unwrap();
        let done = peer.until(id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], "7", "{done}");
    }
}

//! Calls that become tasks, and the outcomes of those tasks.

use std::sync::Arc;

use oxmcp::{
    Error, JsonSchema, Revision,
    protocol::CallToolResult,
    tasks::{MemoryTaskStore, ServerTasks, TaskContext, TaskStore},
    testing,
};

use super::*;

#[tokio::test(start_paused = true)]
async fn call_becomes_a_task_if_client_declares_tasks() {
    let (tool, open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let answer = peer.ask("tools/call", json!({"name": "report"})).await;
    let created = &answer["result"];
    let expected = [
        "_meta",
        "createdAt",
        "lastUpdatedAt",
        "pollIntervalMs",
        "resultType",
        "status",
        "taskId",
        "ttlMs",
    ];
    assert_eq!(members(created), expected);
    assert_eq!(
        (&created["status"], &created["ttlMs"]),
        (&json!("working"), &json!(3_600_000))
    );
    let id = created["taskId"].as_str().unwrap();
    assert!(
        id.len() == 32
            && id
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    );
    assert_eq!(peer.get(id).await["status"], "working");
    open.send(true).unwrap();
    let done = peer.until(id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "the report", "{done}");
    assert!(
        done.get("error").is_none() && done.get("inputRequests").is_none(),
        "{done}"
    );
    // A request that does not declare the extension waits for its result, whatever earlier requests declared.
    let plain = peer
        .0
        .ask(modern(90, "tools/call", json!({"name": "report"})))
        .await
        .unwrap();
    assert_eq!(plain["result"]["resultType"], "complete", "{plain}");
    assert_eq!(plain["result"]["content"][0]["text"], "the report");
    let legacy = testing::connect(&server)
        .revision(Revision::LATEST_LEGACY)
        .await
        .unwrap();
    assert_eq!(
        legacy.call_tool("report", ()).await.unwrap().to_text(),
        "the report"
    );
}

#[tokio::test(start_paused = true)]
async fn call_becomes_a_task_exactly_after_its_time() {
    let after = Duration::from_secs(5);
    for (takes, expected) in [(4999, "complete"), (5000, "complete"), (5001, "task")] {
        let tool = Tool::new("nap", "Sleep", move || async move {
            tokio::time::sleep(Duration::from_millis(takes)).await;
            "slept"
        });
        let server = server(tool.task(TaskPolicy::After(after)));
        let mut peer = Peer::of(&server).await;
        let answer = peer.ask("tools/call", json!({"name": "nap"})).await;
        assert_eq!(
            answer["result"]["resultType"], expected,
            "{takes}: {answer}"
        );
        if let Some(id) = answer["result"]["taskId"].as_str() {
            let done = peer.until(id, "completed").await;
            assert_eq!(done["result"]["content"][0]["text"], "slept");
        } else {
            assert_eq!(answer["result"]["content"][0]["text"], "slept");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tool_failure_completes_task_protocol_failure_fails_it() {
    let panics = Tool::new("panics", "Fail", || async {
        tokio::task::yield_now().await;
        if true {
            panic!("a secret");
        }
    });
    for policy in [TaskPolicy::Always, TaskPolicy::Required] {
        let tools = || {
            let late = |tool: Tool| tool.task(policy);
            [
                late(Tool::new("bad", "Fail", || async {
                    Err::<String, _>(ToolError::new("no paper"))
                })),
                late(Tool::new("broken", "Fail", || async {
                    Err::<String, _>(Error::invalid_params("no"))
                })),
            ]
        };
        let server = server(Tool::new("idle", "Nothing", || async {})).tools(tools());
        let mut peer = Peer::of(&server).await;
        let id = peer.begin("bad").await;
        let done = peer.until(&id, "completed").await;
        assert_eq!(done["result"]["isError"], true, "{done}");
        let id = peer.begin("broken").await;
        let failed = peer.until(&id, "failed").await;
        assert_eq!(failed["error"]["code"], -32602, "{failed}");
        assert!(
            failed.get("result").is_none() && failed["statusMessage"] == "no",
            "{failed}"
        );
    }
    let server = server(panics.task(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("panics").await;
    let failed = peer.until(&id, "failed").await;
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert!(!failed.to_string().contains("secret"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_task_stays_cancelled_whatever_handler_does() {
    let heeds = Tool::new("heeds", "Wait", |cx: RequestContext| async move {
        cx.cancelled().await;
        "late"
    });
    let deaf = Tool::new("deaf", "Wait", || async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        "late"
    });
    let server = server(heeds.task(TaskPolicy::Always)).tool(deaf.task(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    for tool in ["heeds", "deaf"] {
        let id = peer.begin(tool).await;
        for _ in 0..2 {
            let ack = peer.ask("tasks/cancel", json!({"taskId": id})).await;
            assert_eq!(members(&ack["result"]), ["_meta", "resultType"], "{ack}");
            assert_eq!(peer.get(&id).await["status"], "cancelled");
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let state = peer.get(&id).await;
        assert_eq!(state["status"], "cancelled", "{state}");
        assert!(state.get("result").is_none(), "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_requiring_tasks_is_refused_without_them() {
    let (tool, _open) = gated(TaskPolicy::Required);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let refused = peer
        .0
        .ask(modern(9, "tools/call", json!({"name": "report"})))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let extensions = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert_eq!(*extensions, json!({ID: {}}));
    for revision in Revision::ALL.into_iter().filter(|it| !it.is_modern()) {
        // 2025-11-25 has tasks of its own.
        if revision == Revision::V2025_11_25 {
            continue;
        }
        let connecting = testing::connect(&server).revision(revision);
        let legacy = connecting.await.unwrap();
        assert!(legacy.tools().all().await.unwrap().is_empty());
        let refused = legacy.call_tool("report", ()).await.unwrap_err();
        let said = refused.message();
        for word in ["\"report\"", &revision.to_string(), "2026-07-28", ID] {
            assert!(said.contains(word), "{word}: {said}");
        }
        // The error about an unknown tool does not name the hidden tool either.
        let unknown = legacy.call_tool("repot", ()).await.unwrap_err();
        assert!(!unknown.message().contains("report"), "{unknown}");
    }
    // The server must have the extension, too.
    let (tool, _open) = gated(TaskPolicy::Always);
    let error = Server::new("s", "1").tool(tool).check().unwrap_err();
    assert!(error.message().contains(ID), "{error}");
}

#[tokio::test(start_paused = true)]
async fn progress_becomes_the_status_message() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    let tool = Tool::new(
        "write",
        "Write",
        |cx: RequestContext, _: Nothing| async move {
            tokio::task::yield_now().await;
            for page in 1..=1000 {
                cx.progress(page)
                    .total(1000)
                    .message(format!("page {page}"))
                    .await;
            }
            cx.cancelled().await;
        },
    );
    let server = server(tool.task(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("write").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(peer.get(&id).await["statusMessage"], "page 1000");
}

#[tokio::test(start_paused = true)]
async fn rapid_status_messages_are_coalesced() {
    let store = Arc::new(MemoryTaskStore::new());
    let tool = Tool::new("write", "Write", |cx: RequestContext| async move {
        for page in 1..=100 {
            cx.progress(page).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cx.cancelled().await;
    });
    let server = Server::new("office", "1.0.0")
        .extension(Tasks::new(Arc::clone(&store)).extension())
        .tool(tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("write").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(peer.get(&id).await["statusMessage"], "100");
    let kept = store.load(&id).await.unwrap().unwrap();
    // One revision when the task is made, one when it is leased, and four per second.
    assert!(kept.revision <= 8, "{}", kept.revision);
}

#[tokio::test(start_paused = true)]
async fn last_progress_before_task_is_its_first_status() {
    let after = TaskPolicy::After(Duration::from_secs(5));
    for (policy, asks) in [(after, true), (after, false), (TaskPolicy::Always, false)] {
        let tool = Tool::new("write", "Write", |cx: RequestContext| async move {
            cx.progress(1).message("reading").await;
            cx.progress(2).message("writing").await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            cx.progress(3).message("printing").await;
            cx.cancelled().await;
        });
        let server = server(tool.task(policy));
        let mut peer = Peer::of(&server).await;
        let mut call = declaring(1, "tools/call", json!({"name": "write"}));
        if asks {
            call["params"]["_meta"]["progressToken"] = json!("p");
        }
        peer.0.send(call).await.unwrap();
        if asks {
            // The caller still receives the progress.
            for done in 1..=2 {
                let told = peer.0.receive().await.unwrap();
                assert_eq!(told["params"]["progress"].as_f64(), Some(f64::from(done)));
            }
        }
        let created = peer.0.receive().await.unwrap();
        assert_eq!(created["result"]["statusMessage"], "writing", "{created}");
        let id = created["result"]["taskId"].as_str().unwrap();
        peer.1 = 1;
        assert_eq!(peer.get(id).await["statusMessage"], "writing");
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(peer.get(id).await["statusMessage"], "printing");
    }
}

#[tokio::test(start_paused = true)]
async fn task_can_be_completed_externally() {
    let (told, mut ids) = tokio::sync::mpsc::channel(16);
    let tool = Tool::new("order", "Order", move |cx: RequestContext| {
        let told = told.clone();
        async move {
            told.try_send(cx.task_id()).unwrap();
            std::future::pending::<String>().await
        }
    });
    let server = server(tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("order").await;
    assert_eq!(ids.recv().await.unwrap().as_deref(), Some(&*id));
    let tasks = server.tasks().unwrap();
    tasks.report(&id, "on its way").await.unwrap();
    assert_eq!(peer.get(&id).await["statusMessage"], "on its way");
    assert!(
        tasks
            .complete(&id, CallToolResult::text("here"))
            .await
            .unwrap()
    );
    assert!(
        !tasks
            .fail(&id, &Error::invalid_params("late"))
            .await
            .unwrap()
    );
    let done = peer.get(&id).await;
    assert_eq!(done["result"]["content"][0]["text"], "here", "{done}");
    assert!(
        tasks
            .complete("unknown", CallToolResult::text("here"))
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_concurrent_completion_wins() {
    let tool = Tool::new("wait", "Wait", std::future::pending::<String>);
    let server = server(tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    for _ in 0..20 {
        let id = peer.begin("wait").await;
        let tasks = server.tasks().unwrap();
        let ends = (0..8).map(|number| {
            let (tasks, id) = (tasks.clone(), id.clone());
            tokio::spawn(async move {
                let result = CallToolResult::text(number.to_string());
                tasks.complete(&id, result).await.unwrap().then_some(number)
            })
        });
        let ends: Vec<_> = ends.collect();
        peer.ask("tasks/cancel", json!({"taskId": id})).await;
        let mut right = Vec::new();
        for end in ends {
            right.extend(end.await.unwrap());
        }
        let state = peer.get(&id).await;
        match right.as_slice() {
            [] => assert_eq!(state["status"], "cancelled", "{state}"),
            [one] => assert_eq!(
                state["result"]["content"][0]["text"],
                one.to_string(),
                "{state}"
            ),
            many => panic!("{many:?} have ended one task: {state}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn task_expires_only_after_it_finished() {
    let tool = || {
        Tool::new("nap", "Sleep", || async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            "slept"
        })
    };
    let tasks = Tasks::in_memory().ttl(Duration::from_secs(10));
    let server = Server::new("s", "1")
        .extension(tasks.extension())
        .tool(tool().task(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("nap").await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(peer.get(&id).await["status"], "working");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(peer.get(&id).await["status"], "completed");
    tokio::time::sleep(Duration::from_secs(20)).await;
    let gone = peer.ask("tasks/get", json!({"taskId": id})).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
}

#[tokio::test(start_paused = true)]
async fn task_outlives_the_connection_that_created_it() {
    let (tool, open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let id = Peer::of(&server).await.begin("report").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    open.send(true).unwrap();
    let done = Peer::of(&server).await.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "the report");
}

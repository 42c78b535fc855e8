//! Access to tasks, and subscriptions to their changes.

use std::collections::BTreeMap;

use oxmcp::{Error, JsonSchema, protocol::CallToolResult};
use serde_json::value::RawValue;

use super::*;

#[tokio::test(start_paused = true)]
async fn undeclared_extension_is_refused_before_any_lookup() {
    let (tool, _open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("report").await;
    for id in [&*id, "gate-test"] {
        for (method, params) in [
            ("tasks/get", json!({"taskId": id})),
            ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
            ("tasks/cancel", json!({"taskId": id})),
            (
                "subscriptions/listen",
                json!({"notifications": {"taskIds": [id]}}),
            ),
        ] {
            let refused = peer.0.ask(modern(99, method, params)).await.unwrap();
            assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
        }
    }
    for method in ["tasks/list", "tasks/result"] {
        let refused = peer.ask(method, json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32601, "{method}: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_and_malformed_ids_get_one_answer() {
    let (tool, _open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("report").await;
    let mut other = id.clone();
    other.replace_range(..1, if id.starts_with('A') { "B" } else { "A" });
    let mut texts = Vec::new();
    for id in [&*other, "gate-test", "", "é"] {
        for (method, params) in [
            ("tasks/get", json!({"taskId": id})),
            (
                "tasks/update",
                json!({"taskId": id, "inputResponses": {"q1": {}}}),
            ),
            ("tasks/cancel", json!({"taskId": id})),
        ] {
            let refused = peer.ask(method, params).await;
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
            texts.push(refused["error"]["message"].clone());
        }
    }
    texts.dedup();
    assert_eq!(texts.len(), 1, "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn listener_receives_the_same_state_as_get() {
    let (tool, open) = gated(TaskPolicy::Always);
    let server = server(tool);
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("report").await;
    let listen = json!({"notifications": {"taskIds": [id, "gate-test", 7]}});
    peer.0
        .send(declaring(50, "subscriptions/listen", listen))
        .await
        .unwrap();
    let acknowledged = peer.0.receive().await.unwrap();
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({"taskIds": [id]}),
        "{acknowledged}"
    );
    open.send(true).unwrap();
    let told = peer.0.receive().await.unwrap();
    assert_eq!(told["method"], "notifications/tasks", "{told}");
    let mut told = told["params"].clone();
    let mut got = peer.get(&id).await;
    assert_eq!(told["status"], "completed");
    for state in [&mut told, &mut got] {
        let state = state.as_object_mut().unwrap();
        state.remove("_meta");
        state.remove("resultType");
    }
    assert_eq!(told, got);
}

/// The members of a task in the last received message, as their JSON text.
fn text_of(peer: &Peer, envelope: &str) -> BTreeMap<String, String> {
    let line = peer.0.transcript().lines().next_back().unwrap();
    let message = line.strip_prefix("<- ").unwrap();
    let read = |text: &str| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text).unwrap();
    let mut members = read(read(message)[envelope].get());
    members.remove("_meta");
    members.remove("resultType");
    let members = members.into_iter();
    members
        .map(|(name, text)| (name, text.get().to_owned()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn listener_receives_each_state_verbatim_as_get_returns() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Sure {
        sure: bool,
    }
    let works = Tool::new("works", "Work", |cx: RequestContext| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cx.progress(1).message("\u{e9} \"half\"\n").await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let Sure { sure } = cx.ask("sure", "Sure?").await?;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let result = CallToolResult::structured(&json!({"z": 1.50, "a": {"sure": sure}}));
        result.map_err(|error| Error::internal(error.to_string()))
    });
    let fails = Tool::new("fails", "Fail", || async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Err::<String, _>(Error::invalid_params("no").with_data(json!({"z": 1, "a": 2})))
    });
    let waits = Tool::new("waits", "Wait", std::future::pending::<String>);
    let server = server(works.task(TaskPolicy::Required))
        .tool(fails.task(TaskPolicy::Required))
        .tool(waits.task(TaskPolicy::Required));
    let cases: [(&str, &[&str]); 3] = [
        (
            "works",
            &["working", "input_required", "working", "completed"],
        ),
        ("fails", &["failed"]),
        ("waits", &["cancelled"]),
    ];
    for (tool, statuses) in cases {
        let (mut peer, mut listening) = (Peer::of(&server).await, Peer::of(&server).await);
        let id = peer.begin(tool).await;
        let listen = json!({"notifications": {"taskIds": [id]}});
        let acknowledged = listening.ask("subscriptions/listen", listen).await;
        assert!(acknowledged["params"].is_object(), "{acknowledged}");
        if tool == "waits" {
            peer.ask("tasks/cancel", json!({"taskId": id})).await;
        }
        for status in statuses {
            let mut told = listening.0.receive().await.unwrap();
            // The handler takes the answer, which is a change of its own.
            let soon = Duration::from_secs(1);
            while let Ok(next) = tokio::time::timeout(soon, listening.0.receive()).await {
                told = next.unwrap();
            }
            assert_eq!(told["params"]["status"], *status, "{told}");
            let state = peer.get(&id).await;
            assert_eq!(text_of(&listening, "params"), text_of(&peer, "result"));
            for key in state["inputRequests"]
                .as_object()
                .iter()
                .flat_map(|it| it.keys())
            {
                let yes = json!({"action": "accept", "content": {"sure": true}});
                let answer = json!({"taskId": id, "inputResponses": {key: yes}});
                peer.ask("tasks/update", answer).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn listener_is_granted_the_first_thousand_tasks() {
    let (tool, _open) = gated(TaskPolicy::Required);
    let store = oxmcp::tasks::MemoryTaskStore::new().max_per_owner(2000);
    let server = Server::new("office", "1.0.0")
        .extension(Tasks::new(store).extension())
        .tool(tool);
    let mut peer = Peer::of(&server).await;
    let mut ids = Vec::new();
    for _ in 0..1001 {
        ids.push(peer.begin("report").await);
    }
    let listen = json!({"notifications": {"taskIds": ids}});
    let acknowledged = peer.ask("subscriptions/listen", listen).await;
    let granted = &acknowledged["params"]["notifications"]["taskIds"];
    assert_eq!(*granted, json!(ids[..1000]));
}

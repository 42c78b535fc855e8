//! Access to tasks, and subscriptions to their changes.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_does_not_declare_the_extension_is_refused_before_anything_is_looked_up() {
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
async fn who_listens_is_told_what_get_would_say() {
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

//! Questions of tasks, and their answers.

use std::{
    future::{Future, ready},
    pin::{Pin, pin},
    sync::Arc,
};

use oxmcp::{
    JsonSchema, Question,
    tasks::{MemoryTaskStore, TaskStore},
};

use super::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"sure": true}})
}

/// A tool that asks two questions at once.
fn asking(policy: TaskPolicy) -> Tool {
    Tool::new("delete", "Delete", |cx: RequestContext| async move {
        let questions = (
            Question::form::<Confirm>("first", "Delete it?"),
            Question::form::<Confirm>("second", "For good?"),
        );
        let (first, second) = cx.ask_all(questions).await?;
        Ok::<_, oxmcp::Error>(format!("{} {}", first.sure, second.sure))
    })
    .task(policy)
}

#[tokio::test(start_paused = true)]
async fn task_asks_until_all_is_answered() {
    let server = server(asking(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("delete").await;
    let state = peer.until(&id, "input_required").await;
    let questions = state["inputRequests"].as_object().unwrap();
    let keys: Vec<_> = questions.keys().cloned().collect();
    assert_eq!(keys.len(), 2, "{state}");
    assert!(
        questions
            .values()
            .all(|it| it["method"] == "elicitation/create"),
        "{state}"
    );
    let answer = |key: &str, answer: Value| json!({"taskId": id, "inputResponses": {key: answer}});
    // An invalid answer is refused, and an answer to an unknown question is ignored.
    let refused = peer
        .ask(
            "tasks/update",
            answer(
                &keys[0],
                json!({"action": "accept", "content": {"sure": 7}}),
            ),
        )
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    for (key, answered) in [
        ("nothing", yes()),
        (&*keys[0], yes()),
        (&*keys[0], json!({"action": "decline"})),
    ] {
        let ack = peer.ask("tasks/update", answer(key, answered)).await;
        assert_eq!(members(&ack["result"]), ["_meta", "resultType"], "{ack}");
    }
    let state = peer.get(&id).await;
    assert_eq!(state["status"], "input_required");
    assert_eq!(members(&state["inputRequests"]), [&*keys[1]]);
    peer.ask("tasks/update", answer(&keys[1], yes())).await;
    let done = peer.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "true true", "{done}");
}

#[tokio::test(start_paused = true)]
async fn question_before_the_task_is_answered_inline() {
    let server = server(asking(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    let asked = peer.ask("tools/call", json!({"name": "delete"})).await;
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked.get("taskId").is_none());
    let answers = json!({"first": yes(), "second": yes()});
    let again =
        json!({"name": "delete", "requestState": asked["requestState"], "inputResponses": answers});
    let created = peer.ask("tools/call", again).await;
    let created = &created["result"];
    assert_eq!(created["resultType"], "task", "{created}");
    assert!(created.get("requestState").is_none() && created.get("inputRequests").is_none());
    let done = peer
        .until(created["taskId"].as_str().unwrap(), "completed")
        .await;
    assert_eq!(done["result"]["content"][0]["text"], "true true");
}

#[tokio::test(start_paused = true)]
async fn question_no_longer_asked_is_withdrawn() {
    let tool = Tool::new("hasty", "Ask", |cx: RequestContext| async move {
        let asked = cx.ask::<Confirm>("sure", "Sure?");
        let answered = tokio::time::timeout(Duration::from_secs(5), asked).await;
        assert!(answered.is_err());
        cx.cancelled().await;
    });
    let server = server(tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("hasty").await;
    peer.until(&id, "input_required").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let state = peer.get(&id).await;
    assert_eq!(state["status"], "working", "{state}");
    assert!(state.get("inputRequests").is_none(), "{state}");
}

#[tokio::test(start_paused = true)]
async fn task_waiting_for_its_client_expires_with_handler() {
    let (told, mut heard) = tokio::sync::mpsc::channel(16);
    let tool = Tool::new("ask", "Ask", move |cx: RequestContext| {
        let told = told.clone();
        async move {
            let answered = cx.ask::<Confirm>("sure", "Sure?").await;
            told.try_send(answered.is_err()).unwrap();
        }
    });
    let tasks = Tasks::in_memory().ttl(Duration::from_secs(10));
    let server = Server::new("s", "1")
        .extension(tasks.extension())
        .tool(tool.task(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("ask").await;
    peer.until(&id, "input_required").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let heard = tokio::time::timeout(Duration::from_secs(600), heard.recv());
    assert_eq!(heard.await.unwrap(), Some(true));
    let gone = peer.ask("tasks/get", json!({"taskId": id})).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
}

#[tokio::test(start_paused = true)]
async fn returned_questions_are_asked_before_or_by_task() {
    let server = server(returning_questions(TaskPolicy::Required));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("twice").await;
    for message in ["1", "2"] {
        let (key, question) = loop {
            let state = peer.until(&id, "input_required").await;
            let (key, question) = state["inputRequests"]
                .as_object()
                .and_then(|asked| asked.iter().next())
                .unwrap();
            if question["params"]["message"] == message {
                break (key.clone(), question.clone());
            }
        };
        assert_eq!(question["method"], "elicitation/create");
        let answers = json!({"taskId": id, "inputResponses": {key: yes()}});
        peer.ask("tasks/update", answers).await;
    }
    let done = peer.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "asked", "{done}");
    let server = self::server(returning_questions(TaskPolicy::Always));
    let mut peer = Peer::of(&server).await;
    let asked = peer.ask("tools/call", json!({"name": "twice"})).await;
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["requestState"], "1");
}

#[tokio::test(start_paused = true)]
async fn question_before_the_task_is_the_response() {
    type Then = Pin<Box<dyn Future<Output = ()> + Send>>;
    let gives_up: fn() -> Then = || Box::pin(ready(()));
    let works_on: fn() -> Then = || Box::pin(tokio::time::sleep(Duration::from_secs(9)));
    let after = TaskPolicy::After(Duration::from_secs(5));
    for (policy, then) in [(TaskPolicy::Always, gives_up), (after, works_on)] {
        let store = Arc::new(MemoryTaskStore::new());
        let tool = Tool::new("delete", "Delete", move |cx: RequestContext| async move {
            let mut asked = pin!(cx.ask::<Confirm>("sure", "Sure?"));
            tokio::select! {
                biased;
                _ = &mut asked => "answered",
                () = then() => "given up",
            }
        });
        let server = Server::new("office", "1.0.0")
            .extension(Tasks::new(Arc::clone(&store)).extension())
            .tool(tool.task(policy));
        let mut peer = Peer::of(&server).await;
        let asked = peer.ask("tools/call", json!({"name": "delete"})).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert!(store.list(None, None, 10).await.unwrap().is_empty());
    }
}

//! Races between requests for a task, its answers, its cancellation and its completion.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    JsonSchema,
    protocol::CallToolResult,
    tasks::{ServerTasks, TaskControl},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::*;

#[derive(serde::Deserialize, JsonSchema)]
struct Number {
    number: u32,
}

/// A tool that asks for a number, and sends the answer to the test.
fn asking(heard: mpsc::Sender<u32>) -> Tool {
    let tool = Tool::new("choose", "Choose", move |cx: RequestContext| {
        let heard = heard.clone();
        async move {
            let Number { number } = cx.ask("number", "Which?").await?;
            heard.try_send(number).unwrap();
            Ok::<_, oxmcp::Error>(number.to_string())
        }
    });
    tool.task(TaskPolicy::Required)
}

/// The key of the task's question.
async fn asked(peer: &mut Peer, id: &str) -> String {
    let state = peer.until(id, "input_required").await;
    let questions = state["inputRequests"].as_object().unwrap();
    questions.keys().next().unwrap().clone()
}

fn answer(id: &str, key: &str, number: usize) -> Value {
    let accepted = json!({"action": "accept", "content": {"number": number}});
    json!({"taskId": id, "inputResponses": {key: accepted}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_concurrent_answer_counts() {
    let (tell, mut heard) = mpsc::channel(8);
    let server = server(asking(tell));
    let mut peer = Peer::of(&server).await;
    for _ in 0..20 {
        let id = peer.begin("choose").await;
        let key = asked(&mut peer, &id).await;
        let mut updates = JoinSet::new();
        for number in 0..8 {
            let (mut peer, answer) = (Peer::of(&server).await, answer(&id, &key, number));
            updates.spawn(async move { peer.ask("tasks/update", answer).await });
        }
        for ack in updates.join_all().await {
            assert_eq!(members(&ack["result"]), ["_meta", "resultType"], "{ack}");
        }
        let done = peer.until(&id, "completed").await;
        let number = heard.recv().await.unwrap();
        let text = &done["result"]["content"][0]["text"];
        assert_eq!(*text, number.to_string(), "{done}");
    }
    assert!(heard.try_recv().is_err());
}

/// Completes a task from elsewhere.
async fn complete(tasks: TaskControl, id: String) -> bool {
    let result = CallToolResult::text("by somebody else");
    tasks.complete(&id, result).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_answer_cancellation_completion_have_one_outcome() {
    // The test does not read the numbers: the channel has room for each round.
    let (tell, _heard) = mpsc::channel(64);
    let server = server(asking(tell));
    let mut peer = Peer::of(&server).await;
    for _ in 0..50 {
        let id = peer.begin("choose").await;
        let key = asked(&mut peer, &id).await;
        let (mut updating, mut cancelling) = (Peer::of(&server).await, Peer::of(&server).await);
        let (update, cancel) = (answer(&id, &key, 7), json!({"taskId": id}));
        let update = tokio::spawn(async move { updating.ask("tasks/update", update).await });
        let cancel = tokio::spawn(async move { cancelling.ask("tasks/cancel", cancel).await });
        let complete = tokio::spawn(complete(server.tasks().unwrap(), id.clone()));
        let has_completed = complete.await.unwrap();
        for ack in [update.await.unwrap(), cancel.await.unwrap()] {
            assert_eq!(members(&ack["result"]), ["_meta", "resultType"], "{ack}");
        }
        // By now the cancellation or the completion has ended the task, unless the answer did.
        let state = peer.get(&id).await;
        let ended = match state["status"].as_str().unwrap() {
            "cancelled" => !has_completed && state.get("result").is_none(),
            "completed" => {
                let text = &state["result"]["content"][0]["text"];
                *text
                    == if has_completed {
                        "by somebody else"
                    } else {
                        "7"
                    }
            }
            _ => false,
        };
        assert!(ended, "{has_completed}: {state}");
        assert!(state.get("inputRequests").is_none(), "{state}");
        for late in [
            answer(&id, &key, 8),
            json!({"taskId": id, "inputResponses": {}}),
        ] {
            let ack = peer.ask("tasks/update", late).await;
            assert_eq!(members(&ack["result"]), ["_meta", "resultType"], "{ack}");
        }
        assert_eq!(peer.get(&id).await, state);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_get_sees_state_before_or_after_change() {
    let (tell, _heard) = mpsc::channel(8);
    let server = server(asking(tell));
    let mut peer = Peer::of(&server).await;
    let id = peer.begin("choose").await;
    let key = asked(&mut peer, &id).await;
    let polls = Arc::new(AtomicUsize::new(0));
    let mut asking = JoinSet::new();
    for _ in 0..10 {
        let (mut peer, id, key) = (Peer::of(&server).await, id.clone(), key.clone());
        let polls = Arc::clone(&polls);
        asking.spawn(async move {
            let mut last = 0;
            for _ in 0..100 {
                let state = peer.get(&id).await;
                polls.fetch_add(1, Ordering::Relaxed);
                let questions = state.get("inputRequests").map(|it| members(it).join(","));
                let has_result = state.get("result").is_some();
                let stage = match (state["status"].as_str().unwrap(), questions, has_result) {
                    ("input_required", Some(asked), false) if asked == key => 1,
                    ("working", None, false) => 2,
                    ("completed", None, true) => 3,
                    _ => panic!("{state}"),
                };
                assert!(stage >= last, "it goes backwards: {state}");
                last = stage;
            }
        });
    }
    while polls.load(Ordering::Relaxed) < 100 {
        tokio::task::yield_now().await;
    }
    peer.ask("tasks/update", answer(&id, &key, 7)).await;
    asking.join_all().await;
    peer.until(&id, "completed").await;
}

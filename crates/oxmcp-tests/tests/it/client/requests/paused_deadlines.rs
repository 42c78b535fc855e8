//! Deadlines of calls, which pause while a question of a legacy server is answered.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Accept, Client, RequestContext, Revision,
    protocol::{ElicitAction, ElicitFormParams},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::client::{answer, calling, client, done, expect, session_of};

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": "Who are you?", "requestedSchema": schema})
}

/// A client whose user takes an hour and reports the cancellation.
fn slow() -> (Client, mpsc::Receiver<&'static str>) {
    let (sender, heard) = mpsc::channel(8);
    let client = client().on_elicit(move |_: ElicitFormParams, cx: RequestContext| {
        let sender = sender.clone();
        async move {
            sender.send("asked").await.unwrap();
            tokio::select! {
                () = sleep(Duration::from_secs(3600)) => {}
                () = cx.cancelled() => sender.send("cancelled").await.unwrap(),
            }
            Accept(json!({"name": "late"}))
        }
    });
    (client, heard)
}

#[tokio::test(start_paused = true)]
async fn legacy_server_can_withdraw_its_question() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let (client, mut heard) = slow();
        let (mut peer, _session, _) = session_of(client, revision).await;
        let request =
            json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": form()});
        peer.send(request).await.unwrap();
        assert_eq!(heard.recv().await, Some("asked"));
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        peer.send(cancel).await.unwrap();
        assert_eq!(heard.recv().await, Some("cancelled"));
        // No answer is sent for the cancelled question: the next message is the answer to a ping.
        let pong = peer
            .ask(json!({"jsonrpc": "2.0", "id": 8, "method": "ping"}))
            .await
            .unwrap();
        assert_eq!(pong["id"], 8);
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_concurrently() {
    let asked = Arc::new(AtomicBool::new(false));
    let second = Arc::clone(&asked);
    let client = client().on_elicit(move |form: ElicitFormParams| {
        let second = Arc::clone(&second);
        async move {
            if form.message == "first" {
                while !second.load(Ordering::Relaxed) {
                    sleep(Duration::from_millis(1)).await;
                }
            }
            second.store(true, Ordering::Relaxed);
            ElicitAction::Decline
        }
    });
    let (mut peer, _session, _) = session_of(client, Revision::V2025_11_25).await;
    for (id, message) in [(1, "first"), (2, "second")] {
        let mut params = form();
        params["message"] = json!(message);
        let request =
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params});
        peer.send(request).await.unwrap();
    }
    assert_eq!(peer.receive().await.unwrap()["id"], 2);
    assert_eq!(peer.receive().await.unwrap()["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn call_deadline_pauses_while_legacy_server_asks() {
    let (client, mut heard) = slow();
    let (mut peer, session, _) = session_of(client, Revision::V2025_11_25).await;
    let call = session
        .call_tool("t", ())
        .timeout(Duration::from_secs(60))
        .max_total(Duration::from_secs(10_000));
    let start = Instant::now();
    let call = tokio::spawn(async move { call.await });
    let request = expect(&mut peer, "tools/call").await;
    sleep(Duration::from_secs(59)).await;
    let question =
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form()});
    let answered = peer.ask(question).await.unwrap();
    assert_eq!(answered["result"]["action"], "accept");
    assert_eq!(heard.recv().await, Some("asked"));
    sleep(Duration::from_secs(59)).await;
    answer(&mut peer, &request, done()).await;
    call.await.unwrap().unwrap();
    assert!(start.elapsed() > Duration::from_secs(3700));
    // Afterwards deadlines run again.
    let late = calling(&session);
    let _ = expect(&mut peer, "tools/call").await;
    let start = Instant::now();
    assert!(late.await.unwrap().unwrap_err().is_timeout());
    assert_eq!(start.elapsed(), Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn total_call_time_is_bounded_despite_questions() {
    let (client, _heard) = slow();
    let (mut peer, session, _) = session_of(client, Revision::V2025_11_25).await;
    let start = Instant::now();
    let call = calling(&session);
    let _ = expect(&mut peer, "tools/call").await;
    let question =
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": form()});
    peer.send(question).await.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert!(
        error.is_timeout() && error.message().contains("600s"),
        "{error}"
    );
    assert_eq!(start.elapsed(), Duration::from_secs(600));
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_question_reaches_the_caller() {
    let client = client().on_elicit(|_: ElicitFormParams, cx: RequestContext| async move {
        cx.progress(1).total(2).await;
        ElicitAction::Decline
    });
    let (mut peer, _session, _) = session_of(client, Revision::V2025_11_25).await;
    let mut params = form();
    params["_meta"] = json!({"progressToken": "p"});
    let question =
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params});
    let progress = peer.ask(question).await.unwrap();
    assert_eq!(
        progress["params"],
        json!({"progressToken": "p", "progress": 1, "total": 2})
    );
    assert_eq!(peer.receive().await.unwrap()["result"]["action"], "decline");
}

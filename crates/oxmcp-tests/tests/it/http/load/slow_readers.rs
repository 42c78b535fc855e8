//! Clients that do not read their responses.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use http::StatusCode;
use oxmcp::{Limits, RequestContext, Server, Tool};
use serde_json::{Value, json};

use crate::http::load::{Start, TIME_LIMIT, ends, until};
use crate::{
    http::server::peer::{Events, Session, call_modern, json, modern_builder, send},
    support::{calculator, idle, modern, text},
};

const STEPS: i64 = 2_000;

/// A tool that reports much progress, and stores the number of reports that it has sent.
fn chatter(sent: &Arc<AtomicI64>) -> Tool {
    let sent = Arc::clone(sent);
    Tool::new("chatter", "Say much", move |cx: RequestContext| {
        let sent = Arc::clone(&sent);
        async move {
            for step in 1..=STEPS {
                cx.progress(step).message("x".repeat(1_000)).await;
                sent.store(step, Ordering::SeqCst);
            }
            "done"
        }
    })
}

/// A server with much output, and little room for it.
fn server(sent: &Arc<AtomicI64>) -> Server {
    let limits = Limits::default().max_unsent_bytes(20_000);
    calculator().tool(chatter(sent)).limits(limits)
}

/// Lets the server run until the tool sends no more. Returns the number of its last report.
async fn settle(sent: &AtomicI64) -> i64 {
    let mut quiet = 0;
    let mut last = -1;
    while quiet < 1_000 {
        tokio::task::yield_now().await;
        let now = sent.load(Ordering::SeqCst);
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

async fn others_are_served(start: &Start) {
    let params = || json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let answer = json(call_modern(&start.endpoint, "tools/call", params()).await).await;
    assert_eq!(text(&answer), "3.0");
    let session = Session::open(&start.endpoint).await;
    let answer = json(session.call(1, "tools/call", params()).await).await;
    assert_eq!(text(&answer), "3.0");
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
}

/// Asserts that all messages of the tool are there, each once and in order.
fn assert_whole(messages: &[Value]) {
    let steps: Vec<_> = messages
        .iter()
        .filter_map(|message| message["params"]["progress"].as_f64())
        .collect();
    let all: Vec<_> = (1..=STEPS).map(|step| step as f64).collect();
    assert_eq!(steps, all);
    assert_eq!(text(messages.last().unwrap()), "done");
}

async fn rest(events: Events) -> Vec<Value> {
    let events = ends(events.rest()).await;
    let data = events.into_iter().map(|event| event.data);
    data.filter(|data| !data.is_null()).collect()
}

#[tokio::test]
async fn stalled_modern_client_blocks_only_its_own_call() {
    let sent = Arc::default();
    let start = Start::of(&server(&sent));
    let mut message = modern(1, "tools/call", json!({"name": "chatter", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!(1);
    let response = send(
        &start.endpoint,
        modern_builder(&message),
        message.to_string(),
    )
    .await;
    let waiting = settle(&sent).await;
    assert!(waiting < 200, "{waiting} KB wait for one client");
    others_are_served(&start).await;
    assert_whole(&rest(Events::of(response)).await);
    start.is_reached().await;
}

#[tokio::test]
async fn stalled_session_client_blocks_only_its_own_call() {
    let sent = Arc::default();
    let start = Start::of(&server(&sent));
    let session = Session::open(&start.endpoint).await;
    let params = json!({"name": "chatter", "arguments": {}, "_meta": {"progressToken": 1}});
    let response = session.call(1, "tools/call", params).await;
    let waiting = settle(&sent).await;
    assert!(waiting < 400, "{waiting} KB wait for one client");
    others_are_served(&start).await;
    // The session itself stays usable as well.
    let ping = json(session.call(2, "ping", json!({})).await).await;
    assert_eq!(ping["id"], 2);
    assert_whole(&rest(Events::of(response)).await);
    session.delete().await;
    start.is_reached().await;
}

#[tokio::test(start_paused = true)]
async fn session_ends_despite_unread_streams() {
    let sent = Arc::default();
    let start = Start::of(&server(&sent));
    let session = Session::open(&start.endpoint).await;
    let stream = session.get().await;
    let params = json!({"name": "chatter", "arguments": {}, "_meta": {"progressToken": 1}});
    let response = session.call(1, "tools/call", params).await;
    settle(&sent).await;
    for n in 0..100 {
        let _ = start.server.clone().tool(idle(&format!("tool-{n}")));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
    // The streams that the client holds count neither as sessions nor as tasks.
    until(|| match start.is_now(0) {
        Err(told)
            if !told.starts_with("0 sessions, 0 tasks")
                || !told.contains("Sessions { open: 0 }") =>
        {
            Err(told)
        }
        _ => Ok(()),
    })
    .await;
    drop((stream, response));
    start.is_reached().await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_closes_even_if_no_client_reads() {
    let sent = Arc::default();
    let start = Start::of(&server(&sent));
    let mut held = Vec::new();
    for _ in 0..10 {
        let session = Session::open(&start.endpoint).await;
        held.push(session.get().await);
        let params = json!({"name": "chatter", "arguments": {}, "_meta": {"progressToken": 1}});
        held.push(session.call(1, "tools/call", params).await);
        let mut message = modern(1, "tools/call", json!({"name": "chatter", "arguments": {}}));
        message["params"]["_meta"]["progressToken"] = json!(1);
        let builder = modern_builder(&message);
        held.push(send(&start.endpoint, builder, message.to_string()).await);
        let params = json!({"notifications": {"toolsListChanged": true}});
        held.push(call_modern(&start.endpoint, "subscriptions/listen", params).await);
    }
    tokio::time::timeout(TIME_LIMIT, start.endpoint.close())
        .await
        .unwrap();
    assert_eq!(start.server.sessions().count(), 0);
    drop(held);
    start.is_reached().await;
}

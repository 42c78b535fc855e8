//! Answers and the handlers of earlier notifications: a caller sees the effects of the handlers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Client, ClientSession, Error, Limits, RequestContext, Revision, Server, Tool,
    protocol::{CallToolResult, LoggingLevel},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle, time::Instant};

use crate::session::*;

fn log(data: impl Into<Value>) -> Value {
    let data = data.into();
    notification(
        "notifications/message",
        json!({"level": "info", "data": data}),
    )
}

fn calling(
    session: &ClientSession,
    tool: &'static str,
) -> JoinHandle<Result<CallToolResult, Error>> {
    let session = session.clone();
    tokio::spawn(async move { session.call_tool(tool, ()).await })
}

/// Sends messages in one write.
async fn send_together(peer: &mut ScriptedPeer, messages: &[Value]) {
    let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
    peer.send_line(lines.join("\n")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tool_logs_are_handled_before_its_call_returns() {
    async fn say(cx: RequestContext) {
        cx.log(LoggingLevel::Info, "one").await;
        cx.log(LoggingLevel::Info, "two").await;
    }
    let server = Server::new("test", "1.0.0")
        .logging()
        .tool(Tool::new("say", "Logs twice", say));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let heard = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&heard);
        let client = Client::new("test", "1.0.0")
            .revisions([revision])
            .log_level(LoggingLevel::Debug)
            .on_log(move |_, _| {
                count.fetch_add(1, Ordering::Relaxed);
                async {}
            });
        let (near, far) = oxmcp::in_memory();
        server.connect(far).await.unwrap();
        let session = client.connect(near).await.unwrap();
        for round in 1..=200 {
            session.call_tool("say", ()).await.unwrap();
            assert_eq!(heard.load(Ordering::Relaxed), 2 * round, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answer_waits_for_calling_handler_only_until_call() {
    for on_a_task in [false, true] {
        let heard = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&heard);
        let client = Client::new("test", "1.0.0").on_log(move |_, session| {
            let count = Arc::clone(&count);
            async move {
                if on_a_task {
                    let pinging = tokio::spawn(async move { session.ping().await });
                    pinging.await.unwrap().unwrap();
                } else {
                    session.ping().await.unwrap();
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (session, mut peer) = server_of(client).await;
        let call = calling(&session, "x");
        let id = peer.receive().await.unwrap()["id"].clone();
        send_together(&mut peer, &[log(1), log(2), text_result(id, "answer")]).await;
        // The handlers wait for calls of their own, and the answer does not wait for the handlers.
        assert_eq!(call.await.unwrap().unwrap().as_text(), Some("answer"));
        assert_eq!(heard.load(Ordering::Relaxed), 0);
        for count in 1..=2 {
            let ping = peer.receive().await.unwrap();
            assert_eq!(ping["method"], "ping");
            let answer = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
            peer.send(answer).await.unwrap();
            sleep(Duration::from_millis(1)).await;
            assert_eq!(heard.load(Ordering::Relaxed), count);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handler_that_never_returns_delays_no_answer() {
    let client = Client::new("test", "1.0.0").on_log(|_, _| std::future::pending());
    let (session, mut peer) = server_of(client).await;
    for text in ["first", "second"] {
        let call = calling(&session, "x");
        let id = peer.receive().await.unwrap()["id"].clone();
        send_together(&mut peer, &[log(1), log(2), text_result(id, text)]).await;
        let start = Instant::now();
        assert_eq!(call.await.unwrap().unwrap().as_text(), Some(text));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn answer_does_not_wait_for_replaced_notifications() {
    let heard = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&heard);
    let limits = Limits::default().max_queued_notifications(2);
    let client = Client::new("test", "1.0.0")
        .limits(limits)
        .on_log(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            async {}
        });
    let (session, mut peer) = server_of(client).await;
    let call = calling(&session, "x");
    let id = peer.receive().await.unwrap()["id"].clone();
    let mut messages = vec![log(1); 20];
    messages.push(text_result(id, "answer"));
    messages.extend(vec![log(2); 20]);
    send_together(&mut peer, &messages).await;
    assert_eq!(call.await.unwrap().unwrap().as_text(), Some("answer"));
    assert!(heard.load(Ordering::Relaxed) <= 2);
}

#[tokio::test(start_paused = true)]
async fn input_end_keeps_answers_awaiting_a_handler() {
    let blocked = Arc::new(Notify::new());
    let go_on = Arc::clone(&blocked);
    let client = Client::new("test", "1.0.0").on_log(move |_, _| {
        let go_on = Arc::clone(&go_on);
        async move { go_on.notified().await }
    });
    let (session, mut peer) = server_of(client).await;
    let call = calling(&session, "x");
    let id = peer.receive().await.unwrap()["id"].clone();
    send_together(&mut peer, &[log(1), text_result(id, "answer")]).await;
    peer.close().await.unwrap();
    assert_eq!(call.await.unwrap().unwrap().as_text(), Some("answer"));
    blocked.notify_one();
    session.wait().await.unwrap();
}

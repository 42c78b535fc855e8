//! Responses that would reach another client whose requests have the same ids.

use std::sync::Arc;

use http::StatusCode;
use oxmcp::{
    JsonSchema, RequestContext, Server, Tool, ToolError,
    http::{Endpoint, StreamableHttp},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Barrier, Notify},
    task::JoinSet,
};

use crate::{
    http::mounts::{Target, mounts},
    http::server::peer::{Events, LEGACY, Session, builder, modern_builder, send},
    support::{calculator, modern, notification},
};

/// The number of clients of each kind.
const CLIENTS: usize = 20;

#[derive(Debug, serde::Deserialize, serde::Serialize, JsonSchema)]
struct Who {
    who: String,
}

/// A tool that reports its caller's name twice, and answers only after all clients have called it.
fn echo(all: usize) -> Tool {
    let barrier = Arc::new(Barrier::new(all));
    Tool::new(
        "echo",
        "Say it again",
        move |cx: RequestContext, Who { who }: Who| {
            let barrier = Arc::clone(&barrier);
            async move {
                cx.progress(1).message(who.clone()).await;
                barrier.wait().await;
                cx.progress(2).message(who.clone()).await;
                who
            }
        },
    )
}

fn call_echo(who: &str) -> Value {
    let meta = json!({"progressToken": 1});
    json!({"name": "echo", "arguments": {"who": who}, "_meta": meta})
}

/// Asserts that each message for one call names its caller.
async fn assert_own(mut events: Events, who: &str) {
    let mut messages = Vec::new();
    while let Some(event) = events.next().await {
        if !event.data.is_null() {
            messages.push(event.data);
        }
    }
    assert_eq!(messages.len(), 3, "{messages:?}");
    for message in &messages[..2] {
        assert_eq!(message["params"]["message"], who);
    }
    assert_eq!(messages[2]["id"], 1);
    assert_eq!(messages[2]["result"]["content"][0]["text"], who);
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn concurrent_clients_with_equal_ids_get_own_answers() {
    for mount in mounts!() {
        let server = calculator().tool(echo(2 * CLIENTS));
        let endpoint = mount.serve(&StreamableHttp::from(server)).await;
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let endpoint = endpoint.clone();
            clients.spawn(async move {
                let who = format!("session {number}");
                let session = Session::open(&endpoint).await;
                let response = session.call(1, "tools/call", call_echo(&who)).await;
                assert_own(Events::of(response), &who).await;
            });
        }
        for number in 0..CLIENTS {
            let endpoint = endpoint.clone();
            clients.spawn(async move {
                let who = format!("modern {number}");
                let mut message = modern(1, "tools/call", call_echo(&who));
                message["params"]["_meta"]["progressToken"] = json!(1);
                let response = send(&endpoint, modern_builder(&message), message.to_string()).await;
                assert_own(Events::of(response), &who).await;
            });
        }
        clients.join_all().await;
    }
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn clients_over_tcp_get_their_own_answers() {
    for mount in mounts!() {
        let server = calculator().tool(echo(3 * CLIENTS));
        let endpoint = mount.serve(&StreamableHttp::from(server)).await;
        let url = format!("http://{}/mcp", endpoint.address);
        let mut clients = JoinSet::new();
        for number in 0..3 * CLIENTS {
            let url = url.clone();
            clients.spawn(async move {
                let client = oxmcp::Client::new("one of many", "1");
                let session = match number % 3 {
                    0 => client.connect(Endpoint::new(&url)).await,
                    1 => {
                        let client = client.revisions([oxmcp::Revision::LATEST_LEGACY]);
                        client.connect(Endpoint::new(&url)).await
                    }
                    _ => {
                        let client = client.revisions([oxmcp::Revision::V2024_11_05]);
                        client.connect(Endpoint::sse_2024(&url)).await
                    }
                };
                let session = session.unwrap();
                let who = format!("client {number}");
                let (sender, mut told) = tokio::sync::mpsc::channel(10);
                let result = session
                    .call_tool("echo", json!({"who": who}))
                    .on_progress(move |progress| sender.try_send(progress.message).unwrap())
                    .await
                    .unwrap();
                assert_eq!(result.to_text(), who);
                // Before 2025-03-26, progress has no message.
                let text = Some(&*who).filter(|_| number % 3 != 2);
                while let Ok(message) = told.try_recv() {
                    assert_eq!(message.as_deref(), text);
                }
                session.close().await.unwrap();
            });
        }
        clients.join_all().await;
    }
}

fn greeter() -> Server {
    let tool = Tool::new("greet", "Greet", |cx: RequestContext| async move {
        let Who { who } = cx.ask("who", "Who are you?").await?;
        Ok::<_, ToolError>(format!("Hello, {who}!"))
    });
    calculator().tool(tool)
}

/// A session in which the user is being asked, the stream of the call, and the question.
async fn being_asked<T: Target>(endpoint: &T) -> (Session<T>, Events, Value) {
    let session = Session::open_in(endpoint, LEGACY, json!({"elicitation": {}})).await;
    let params = json!({"name": "greet", "arguments": {}});
    let mut events = Events::of(session.call(1, "tools/call", params).await);
    events.next().await.unwrap();
    let question = events.next().await.unwrap().data;
    assert_eq!(question["method"], "elicitation/create");
    (session, events, question)
}

fn answer(question: &Value, who: &str) -> Value {
    let result = json!({"action": "accept", "content": {"who": who}});
    json!({"jsonrpc": "2.0", "id": question["id"], "result": result})
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn client_cannot_answer_anothers_question() {
    for mount in mounts!() {
        let endpoint = mount.serve(&StreamableHttp::from(greeter())).await;
        let (ann, mut to_ann, ann_is_asked) = being_asked(&endpoint).await;
        let (bob, mut to_bob, bob_is_asked) = being_asked(&endpoint).await;
        assert_eq!(ann_is_asked["id"], bob_is_asked["id"], "the attack works");
        let idle = Session::open(&endpoint).await;
        let forged = answer(&ann_is_asked, "Mallory");
        idle.post(&forged).await;
        let without = send(&endpoint, builder("POST"), forged.to_string());
        assert_eq!(without.await.status(), StatusCode::BAD_REQUEST);
        bob.post(&answer(&bob_is_asked, "Bob")).await;
        ann.post(&answer(&ann_is_asked, "Ann")).await;
        for (events, who) in [(&mut to_ann, "Ann"), (&mut to_bob, "Bob")] {
            let answer = events.next().await.unwrap().data;
            let greeting = &answer["result"]["content"][0]["text"];
            assert_eq!(*greeting, format!("Hello, {who}!"));
        }
    }
}

/// A tool that waits to be released or cancelled, and returns which of the two happened.
fn wait(release: &Arc<Notify>) -> Tool {
    let release = Arc::clone(release);
    Tool::new("wait", "Wait", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            cx.progress(1).await;
            tokio::select! {
                biased;
                () = cx.cancelled() => "cancelled",
                () = release.notified() => "released",
            }
        }
    })
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn client_cannot_cancel_anothers_request() {
    for mount in mounts!() {
        let release = Arc::new(Notify::new());
        let endpoint = mount
            .serve(&StreamableHttp::from(calculator().tool(wait(&release))))
            .await;
        let ann = Session::open(&endpoint).await;
        let params = || json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": 1}});
        let mut in_session = Events::of(ann.call(1, "tools/call", params()).await);
        let mut message = modern(1, "tools/call", params());
        message["params"]["_meta"]["progressToken"] = json!(1);
        let alone = send(&endpoint, modern_builder(&message), message.to_string()).await;
        let mut alone = Events::of(alone);
        alone.next().await.unwrap();
        in_session.next().await.unwrap();
        in_session.next().await.unwrap();

        let mut cancel = notification("notifications/cancelled");
        cancel["params"] = json!({"requestId": 1});
        let mallory = Session::open(&endpoint).await;
        assert_eq!(mallory.post(&cancel).await.status(), StatusCode::ACCEPTED);
        let mut by_header = cancel.clone();
        for version in [Value::Null, json!("2026-07-28")] {
            if !version.is_null() {
                by_header["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = version;
            }
            let builder = builder("POST")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "notifications/cancelled")
                // A modern notification belongs to no session, whatever session this header names.
                .header("mcp-session-id", &ann.id);
            send(&endpoint, builder, by_header.to_string()).await;
        }
        tokio::task::yield_now().await;
        release.notify_waiters();
        for events in [&mut in_session, &mut alone] {
            let answer = events.next().await.unwrap().data;
            assert_eq!(answer["result"]["content"][0]["text"], "released");
        }
    }
}

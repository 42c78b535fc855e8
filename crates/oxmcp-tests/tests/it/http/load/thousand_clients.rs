//! A thousand clients at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::StatusCode;
use oxmcp::{Client, RequestContext, Revision, Server, Tool, http::Endpoint};
use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

use crate::http::load::{Start, ends};
use crate::{
    http::server::peer::{Events, Session, call_modern, json, modern_builder, send},
    support::{calculator, idle, modern},
};

const CLIENTS: usize = 1000;

fn add(a: usize) -> Value {
    json!({"name": "add", "arguments": {"a": a, "b": 1}})
}

fn sum(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

/// A tool that reports three times before it answers, and counts its calls.
fn steps(calls: &Arc<AtomicUsize>) -> Tool {
    let calls = Arc::clone(calls);
    Tool::new("steps", "Report", move |cx: RequestContext| {
        calls.fetch_add(1, Ordering::Relaxed);
        async move {
            for step in 1..=3 {
                cx.progress(step).await;
            }
            "done"
        }
    })
}

/// The way in which a client leaves.
#[derive(Clone, Copy)]
enum Leaving {
    Politely,
    /// The client drops its connections without notice.
    Vanishing,
}

/// One client: a session with its stream, concurrent calls, a modern call, and a subscription. It waits for the other
/// clients with all of these open, and for the notification that goes to all clients.
async fn one(start: Arc<Start>, number: usize, all: Arc<Barrier>, leaving: Leaving) {
    let endpoint = &start.endpoint;
    let session = Session::open(endpoint).await;
    let mut stream = session.listen().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listening = call_modern(endpoint, "subscriptions/listen", params).await;
    let mut listening = Events::of(listening);
    let first = listening.next().await.unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    all.wait().await;

    let in_session = async |id: i64| {
        let answer = json(session.call(id, "tools/call", add(number)).await).await;
        assert_eq!(answer["id"], id);
        assert_eq!(sum(&answer), format!("{}.0", number + 1));
    };
    let steps = async {
        let meta = json!({"progressToken": number});
        let params = json!({"name": "steps", "arguments": {}, "_meta": meta});
        let response = session.call(9, "tools/call", params).await;
        let events = Events::of(response).rest().await;
        let messages: Vec<_> = events.iter().filter(|it| !it.data.is_null()).collect();
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[0].data["params"]["progressToken"], number);
        assert_eq!(messages[3].data["id"], 9);
    };
    let alone = async {
        let answer = json(call_modern(endpoint, "tools/call", add(number)).await).await;
        assert_eq!(sum(&answer), format!("{}.0", number + 1));
    };
    tokio::join!(in_session(1), in_session(2), steps, alone);

    // The last client makes a change, of which all clients are notified.
    if all.wait().await.is_leader() {
        let _ = start.server.clone().tool(idle("another"));
    }
    for events in [&mut stream, &mut listening] {
        let told = events.next().await.unwrap().data;
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
    if let Leaving::Politely = leaving {
        assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
        assert!(stream.rest().await.is_empty());
    }
}

async fn all_at_once(server: &Server, leaving: fn(usize) -> Leaving) -> Arc<Start> {
    let start = Arc::new(Start::of(server));
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (start, barrier) = (Arc::clone(&start), Arc::clone(&barrier));
        clients.spawn(one(start, number, barrier, leaving(number)));
    }
    ends(clients.join_all()).await;
    start
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thousand_busy_sessions_leave_nothing_behind() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = all_at_once(&server, |_| Leaving::Politely).await;
    start.is_reached().await;
    assert_eq!(calls.load(Ordering::Relaxed), CLIENTS, "each call once");
}

#[tokio::test(start_paused = true)]
async fn thousand_sessions_of_vanished_clients_are_forgotten() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = all_at_once(&server, |number| match number % 3 {
        0 => Leaving::Politely,
        _ => Leaving::Vanishing,
    })
    .await;
    assert!(start.is_now(0).is_err(), "the sessions may come back");
    tokio::time::sleep(std::time::Duration::from_secs(3 * 3600)).await;
    start.is_reached().await;
    assert_eq!(calls.load(Ordering::Relaxed), CLIENTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn closing_the_endpoint_ends_a_thousand_sessions() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = all_at_once(&server, |_| Leaving::Vanishing).await;
    ends(start.endpoint.close()).await;
    start.is_reached().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hundred_tcp_clients_get_every_answer_once() {
    const CALLS: usize = 20;
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    let mut clients = JoinSet::new();
    for number in 0..100 {
        let url = url.clone();
        clients.spawn(async move {
            let mut client = Client::new("one of many", "1");
            let mut endpoint = Endpoint::new(&url);
            match number % 3 {
                0 => {}
                1 => client = client.revisions([Revision::LATEST_LEGACY]),
                _ => {
                    client = client.revisions([Revision::V2024_11_05]);
                    endpoint = Endpoint::sse_2024(&url);
                }
            }
            let session = client.connect(endpoint).await.unwrap();
            let mut at_once = JoinSet::new();
            for call in 0..CALLS {
                let session = session.clone();
                at_once.spawn(async move {
                    let arguments = json!({"a": number, "b": call});
                    let sum: f64 = session
                        .call_tool("add", arguments)
                        .structured()
                        .await
                        .unwrap();
                    assert_eq!(sum, (number + call) as f64);
                    let (sender, mut seen) = tokio::sync::mpsc::channel(10);
                    let done = session
                        .call_tool("steps", json!({}))
                        .on_progress(move |it| sender.try_send(it.progress).unwrap());
                    assert_eq!(done.await.unwrap().to_text(), "done");
                    for step in 1..=3 {
                        assert_eq!(seen.try_recv().unwrap(), f64::from(step));
                    }
                });
            }
            at_once.join_all().await;
            session.close().await.unwrap();
        });
    }
    ends(clients.join_all()).await;
    assert_eq!(calls.load(Ordering::Relaxed), 100 * CALLS);
    ends(serving.close()).await;
    start.is_reached().await;
}

#[tokio::test]
async fn repeated_sessions_and_calls_leave_nothing() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = calculator().tool(steps(&calls));
    let start = Start::of(&server);
    for round in 0..20 {
        for number in 0..20 {
            let session = Session::open(&start.endpoint).await;
            let answer = json(session.call(1, "tools/call", add(number)).await).await;
            assert_eq!(sum(&answer), format!("{}.0", number + 1));
            let message = modern(round, "tools/call", add(number));
            let response = send(
                &start.endpoint,
                modern_builder(&message),
                message.to_string(),
            );
            assert_eq!(json(response.await).await["id"], round);
            session.delete().await;
        }
        start.is_reached().await;
    }
}

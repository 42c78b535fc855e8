//! Bounds on everything that a peer can make grow: within them nothing is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, Limits, Revision, Server, Tool,
    middleware::{self, Next, Request, Response},
    transport::stream,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::watch,
    task::JoinSet,
};

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn ten_thousand_concurrent_requests_respect_the_limit() {
    let (open, gate) = watch::channel(false);
    let waits = Tool::new("waits", "Waits at the gate", move || {
        let mut gate = gate.clone();
        async move {
            let _ = gate.wait_for(|open| *open).await;
            "through"
        }
    });
    let mut peer = client_of(&server().tool(waits), Revision::V2025_11_25).await;
    for id in 0..10_000 {
        peer.send(call(id, "waits", json!({}))).await.unwrap();
    }
    for _ in 1024..10_000 {
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("1024"), "{said}");
    }
    assert_alive(&mut peer).await;
    open.send(true).unwrap();
    for _ in 0..1024 {
        assert_eq!(text(&peer.receive().await.unwrap()), "through");
    }
    assert_alive(&mut peer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answer_frees_its_requests_id_and_slot() {
    let limits = Limits::default().max_in_flight(1);
    let waits = Tool::new("waits", "Waits for its turn", || async {
        tokio::task::yield_now().await;
        "waited"
    });
    let server = server().tool(waits).limits(limits);
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for _ in 0..5_000 {
        let answer = peer.ask(call(1, "waits", json!({}))).await.unwrap();
        assert_eq!(text(&answer), "waited", "{answer}");
    }
}

pub(crate) const BIG: usize = 10_000;
const UNSENT: usize = 100_000;
const IN_FLIGHT: usize = 100;

/// A server with a tool whose answers are big, and the number of its calls.
pub(crate) fn verbose() -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&calls);
    let tool = Tool::new("big", "Says much", move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async { "x".repeat(BIG) }
    });
    let limits = Limits::default()
        .max_unsent_bytes(UNSENT)
        .max_in_flight(IN_FLIGHT);
    (server().tool(tool).limits(limits), calls)
}

#[tokio::test(start_paused = true)]
async fn stalled_peer_is_not_served_and_loses_nothing() {
    const REQUESTS: usize = 6_000;
    let (server, calls) = verbose();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let session = server.connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let writing = tokio::spawn(async move {
        for id in 0..REQUESTS {
            let mut line = request(
                id,
                "tools/call",
                json!({
                    "name": "big", "_meta": ScriptedPeer::modern_meta(),
                }),
            )
            .to_string();
            line.push('\n');
            write.write_all(line.as_bytes()).await.unwrap();
        }
        write
    });
    // The paused clock advances only when every task is idle.
    sleep(Duration::from_secs(1)).await;
    assert!(!writing.is_finished(), "the peer is held back, too");
    let most = (UNSENT + (64 << 10)) / BIG + IN_FLIGHT;
    let begun = calls.load(Ordering::SeqCst);
    assert!(
        begun <= most,
        "{begun} calls were begun, though nobody reads"
    );
    let mut lines = BufReader::new(read).lines();
    let mut answered = vec![false; REQUESTS];
    for _ in 0..REQUESTS {
        let answer: Value =
            serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(text(&answer).len(), BIG, "{answer}");
        let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(
            !std::mem::replace(&mut answered[id], true),
            "{id} is answered twice"
        );
    }
    drop(writing.await.unwrap());
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn endless_invalid_messages_do_not_grow_unsent_answers() {
    flood(b"nonsense\n".to_vec()).await;
}

#[tokio::test(start_paused = true)]
async fn endless_initialize_does_not_grow_unsent_answers() {
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "flood", "version": "1"},
    });
    flood(format!("{}\n", request(1, "initialize", hello)).into_bytes()).await;
}

async fn flood(line: Vec<u8>) {
    let (server, _) = verbose();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let session = server.connect(stream(theirs)).await.unwrap();
    let (_read, mut write) = tokio::io::split(ours);
    let flooding = tokio::spawn(async move {
        loop {
            write.write_all(&line).await.unwrap();
        }
    });
    sleep(Duration::from_secs(1)).await;
    let shown = format!("{session:?}");
    let unsent = shown.split("unsent: ").nth(1).unwrap();
    let unsent: usize = unsent.split(',').next().unwrap().parse().unwrap();
    assert!(unsent < 2 * UNSENT, "{shown}");
    flooding.abort();
}

#[tokio::test(start_paused = true)]
async fn busy_peer_does_not_delay_an_answer() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let _session = server().connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let flooding = tokio::spawn(async move {
        let noise = format!("{}\n", notification("notifications/noise", json!({}))).repeat(1_000);
        write
            .write_all(format!("{}\n", ping(1)).as_bytes())
            .await
            .unwrap();
        for _ in 0..200 {
            write.write_all(noise.as_bytes()).await.unwrap();
        }
    });
    let mut lines = BufReader::new(read).lines();
    let answer = lines.next_line().await.unwrap().unwrap();
    assert!(answer.contains("\"id\":1"), "{answer}");
    assert!(
        !flooding.is_finished(),
        "the answer waited for the flood to end"
    );
    flooding.abort();
}

#[tokio::test(start_paused = true)]
async fn mutually_flooding_peers_do_not_deadlock() {
    let limits = Limits::default().max_unsent_bytes(20_000);
    let client = Client::new("test", "1.0.0")
        .limits(limits.clone())
        .revisions([Revision::V2025_11_25])
        .layer(middleware::from_fn(verbose_ping));
    let server = server().limits(limits);
    // The pipe holds less than a message: each side waits for the other to read.
    let (near, far) = tokio::io::duplex(1 << 10);
    let serving = server.connect(stream(far)).await.unwrap();
    let session = client.connect(stream(near)).await.unwrap();
    let mut all = JoinSet::new();
    for _ in 0..200 {
        let session = session.clone();
        all.spawn(async move {
            let said = session
                .call_tool("echo", json!({"text": "x".repeat(BIG)}))
                .await
                .unwrap();
            assert!(!said.is_error);
        });
        let serving = serving.clone();
        all.spawn(async move { serving.ping().await.unwrap() });
    }
    let hour = Duration::from_secs(3600);
    while let Some(done) = timeout(hour, all.join_next()).await.unwrap() {
        done.unwrap();
    }
    session.close().await.unwrap();
    serving.wait().await.unwrap();
}

/// Answers a ping with a very long result.
async fn verbose_ping(request: Request, next: Next) -> oxmcp::Result<Response> {
    if request.method() == "ping" {
        return Response::new(&json!({"x": "x".repeat(BIG)}));
    }
    next.run(request).await
}

#[tokio::test(start_paused = true)]
async fn newer_notifications_replace_undelivered_ones() {
    let (seen, mut told) = tokio::sync::mpsc::channel(100);
    let (open, gate) = watch::channel(false);
    let layer = middleware::from_fn(move |request: Request, next: Next| {
        let (seen, mut gate) = (seen.clone(), gate.clone());
        async move {
            let _ = gate.wait_for(|open| *open).await;
            let number: Value = request.params()?;
            let _ = seen.send(number["n"].as_u64()).await;
            next.run(request).await
        }
    });
    let limits = Limits::default().max_queued_notifications(5);
    let client = Client::new("test", "1.0.0").limits(limits).layer(layer);
    let (_session, mut peer) = server_of(client).await;
    for n in 0..50 {
        let params = json!({"n": n});
        peer.send(notification("notifications/n", params))
            .await
            .unwrap();
        // The first notification is being handled before the others arrive.
        sleep(Duration::from_millis(1)).await;
    }
    open.send(true).unwrap();
    sleep(Duration::from_secs(1)).await;
    let mut numbers = Vec::new();
    while let Ok(number) = told.try_recv() {
        numbers.extend(number);
    }
    assert_eq!(numbers, [0, 45, 46, 47, 48, 49]);
}

//! The end of input while many answers are unsent: the answers that are written, the time for it, and the count of lost ones.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use oxmcp::{Client, Limits, Server, testing::ScriptedPeer, transport::stream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, split},
    task::JoinHandle,
    time::{Duration, Instant, sleep},
};

use crate::session::*;

/// The approximate size of an answer, in bytes.
const LENGTH: usize = 1_000;

/// Runs a server for a client that sends `calls` and then closes its side. Returns the running server and the client's reading
/// half.
async fn asked(
    server: Server,
    calls: impl Iterator<Item = Value>,
) -> (JoinHandle<oxmcp::Result<()>>, ReadHalf<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(2_000);
    let (read, mut write) = split(ours);
    let running = tokio::spawn(async move { server.run(stream(theirs)).await });
    let lines: String = calls.map(|call| format!("{call}\n")).collect();
    tokio::spawn(async move {
        // A server that has given up stops reading.
        let _ = write.write_all(lines.as_bytes()).await;
        let _ = write.shutdown().await;
    });
    (running, read)
}

fn echo(id: usize) -> Value {
    let text = "x".repeat(LENGTH);
    let params = json!({
        "name": "echo", "arguments": {"text": text}, "_meta": ScriptedPeer::modern_meta(),
    });
    request(id, "tools/call", params)
}

/// Reads so many bytes per second until the end.
async fn read_slowly(read: &mut ReadHalf<DuplexStream>, bytes_per_second: usize) -> String {
    let mut text = Vec::new();
    let mut some = vec![0; bytes_per_second / 10];
    loop {
        match read.read(&mut some).await {
            Ok(0) | Err(_) => return String::from_utf8(text).unwrap(),
            Ok(count) => text.extend_from_slice(&some[..count]),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn slow_but_steady_reader_gets_every_answer() {
    // At the reader's pace the answers take three times the drain time.
    let (running, mut read) = asked(server(), (0..300).map(echo)).await;
    let start = Instant::now();
    let text = read_slowly(&mut read, 10_000).await;
    running.await.unwrap().unwrap();
    assert_eq!(text.lines().count(), 300);
    assert!(start.elapsed() > Duration::from_secs(25));
    for line in text.lines() {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_answer_is_written_completely() {
    let text = "x".repeat(200_000);
    let call = request(
        1,
        "tools/call",
        json!({"name": "echo", "arguments": {"text": text}, "_meta": ScriptedPeer::modern_meta()}),
    );
    let (running, mut read) = asked(server(), [call].into_iter()).await;
    let text = read_slowly(&mut read, 6_000).await;
    running.await.unwrap().unwrap();
    assert!(
        text.ends_with("}\n") && text.len() > 200_000,
        "{}",
        text.len()
    );
}

#[tokio::test(start_paused = true)]
async fn stalled_reader_is_dropped_and_losses_are_counted() {
    // With little room for answers, requests wait to be started.
    let little = Limits::default().max_unsent_bytes(30_000);
    for (limits, count) in [(Limits::default(), 300), (little, 60)] {
        let (running, mut read) = asked(server().limits(limits), (0..count).map(echo)).await;
        let start = Instant::now();
        let reading = tokio::spawn(async move { read_slowly(&mut read, 1_000).await });
        let error = running.await.unwrap().unwrap_err();
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{:?}",
            start.elapsed()
        );
        let read = reading.await.unwrap().lines().count();
        let message = error.message();
        let (before, after) = message
            .split_once(" messages were not written")
            .unwrap_or_else(|| panic!("{message}"));
        assert!(before.starts_with("the peer stopped reading"), "{message}");
        assert!(after.is_empty(), "{message}");
        let missed: usize = before.rsplit(' ').next().unwrap().parse().unwrap();
        // A message that was cut in half counts on both sides, and two bytes of the duplex may hold one more whole message.
        let sum = read + missed;
        assert!((count - 1..=count + 2).contains(&sum), "{read} + {missed}");
    }
}

#[tokio::test(start_paused = true)]
async fn writing_ends_at_flush_deadline_despite_steady_reader() {
    let limits = Limits::default()
        .drain(Duration::from_secs(2))
        .flush(Duration::from_secs(7));
    let (running, mut read) = asked(server().limits(limits), (0..300).map(echo)).await;
    let start = Instant::now();
    let reading = tokio::spawn(async move { read_slowly(&mut read, 10_000).await });
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 9);
    assert!(
        error.message().contains("messages were not written"),
        "{error}"
    );
    reading.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn call_longer_than_the_drain_gets_an_error() {
    let (mut peer, transport) = ScriptedPeer::new().await;
    let running = tokio::spawn(async move { server().run(transport).await });
    peer.initialize(Revision::V2025_03_26).await.unwrap();
    peer.send(call(1, "stuck", json!({}))).await.unwrap();
    peer.send(json!([
        call(2, "stuck", json!({})),
        call(3, "fast", json!({}))
    ]))
    .await
    .unwrap();
    let start = Instant::now();
    peer.close().await.unwrap();
    let first = peer.receive().await.unwrap();
    let second = peer.receive().await.unwrap();
    let (single, batch) = if first.is_array() {
        (second, first)
    } else {
        (first, second)
    };
    assert_eq!(
        (&single["id"], &single["error"]["data"]["reason"]),
        (&json!(1), &json!("closing"))
    );
    assert_eq!(batch[0]["id"], 3, "{batch}");
    assert_eq!(batch[1]["error"]["data"]["reason"], "closing", "{batch}");
    assert!(peer.receive().await.is_err(), "one answer each");
    running.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Limits::default().drain);
}

#[tokio::test(start_paused = true)]
async fn last_notifications_are_handled_before_session_ends() {
    let handled = Arc::new(AtomicBool::new(false));
    let notes = Arc::clone(&handled);
    let client = Client::new("test", "1.0.0").on_tools_changed(move |_session| {
        let notes = Arc::clone(&notes);
        async move {
            sleep(Duration::from_secs(1)).await;
            notes.store(true, Ordering::Relaxed);
        }
    });
    let (session, mut peer) = server_of(client).await;
    let changed = notification("notifications/tools/list_changed", json!({}));
    peer.send(changed).await.unwrap();
    drop(peer);
    let _ = session.wait().await;
    assert!(handled.load(Ordering::Relaxed));
}

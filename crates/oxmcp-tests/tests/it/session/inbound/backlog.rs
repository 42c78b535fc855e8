//! The backlog: requests that wait to be started while their peer does not read, and are cancelled
//! meanwhile.

use std::{sync::atomic::Ordering, time::Duration};

use oxmcp::transport::stream;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::session::{
    driver::limits::{BIG, verbose},
    *,
};

#[tokio::test(start_paused = true)]
async fn queued_request_can_be_cancelled() {
    let (server, calls) = verbose();
    let (ours, theirs) = tokio::io::duplex(4 << 10);
    let _session = server.connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let requests = 100;
    let line = |message: Value| format!("{message}\n");
    for id in 0..requests {
        let params = json!({"name": "big", "_meta": ScriptedPeer::modern_meta()});
        let line = line(request(id, "tools/call", params));
        let sent = timeout(Duration::from_secs(60), write.write_all(line.as_bytes())).await;
        sent.expect("requests are read, up to a bound").unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    assert!(calls.load(Ordering::SeqCst) < 90);
    for id in 90..requests {
        // Some peers name a number as text.
        let line = line(match id % 2 {
            0 => cancel(id),
            _ => cancel(id.to_string()),
        });
        let sent = timeout(Duration::from_secs(60), write.write_all(line.as_bytes())).await;
        sent.expect("cancellations are read, whatever waits")
            .unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    let hour = Duration::from_secs(3600);
    write.shutdown().await.unwrap();
    let mut lines = BufReader::new(read).lines();
    let mut ids = Vec::new();
    while let Some(answer) = timeout(hour, lines.next_line()).await.unwrap().unwrap() {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(text(&answer).len(), BIG, "{answer}");
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(
        ids,
        (0..90).collect::<Vec<_>>(),
        "all that was asked before the end, and nothing cancelled"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 90);
}

#[tokio::test(start_paused = true)]
async fn listening_request_ends_after_queued_requests_start() {
    let (server, calls) = verbose();
    let (ours, theirs) = tokio::io::duplex(4 << 10);
    let _session = server.connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let meta = ScriptedPeer::modern_meta();
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
    let mut messages = vec![request(100, "subscriptions/listen", params)];
    let call = |id| request(id, "tools/call", json!({"name": "big", "_meta": meta}));
    messages.extend((0..100).map(call));
    for message in messages {
        let line = format!("{message}\n");
        write.write_all(line.as_bytes()).await.unwrap();
    }
    write.shutdown().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(calls.load(Ordering::SeqCst) < 100, "some have to wait");
    let end = tokio::time::Instant::now();
    let mut lines = BufReader::new(read).lines();
    while lines.next_line().await.unwrap().is_some() {}
    assert_eq!(calls.load(Ordering::SeqCst), 100);
    assert!(
        end.elapsed() < Duration::from_secs(1),
        "the listen has ended"
    );
}

#[tokio::test(start_paused = true)]
async fn queued_request_in_a_batch_can_be_cancelled() {
    let (server, calls) = verbose();
    let (ours, theirs) = tokio::io::duplex(4 << 10);
    let _session = server.connect(stream(theirs)).await.unwrap();
    let (read, mut write) = tokio::io::split(ours);
    let params = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    });
    let call = |id| request(id, "tools/call", json!({"name": "big"}));
    let mut messages = vec![
        request(1000, "initialize", params),
        notification("notifications/initialized", json!({})),
    ];
    messages.extend((0..100).map(call));
    messages.push(json!([call(100), call(101), call(102)]));
    messages.push(json!([call(103)]));
    messages.extend([100, 102, 103].map(cancel));
    for message in messages {
        let line = format!("{message}\n");
        let sent = timeout(Duration::from_secs(60), write.write_all(line.as_bytes())).await;
        sent.expect("all of it is read, up to a bound").unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    write.shutdown().await.unwrap();
    let mut lines = BufReader::new(read).lines();
    let mut batches = Vec::new();
    let hour = Duration::from_secs(3600);
    while let Some(answer) = timeout(hour, lines.next_line()).await.unwrap().unwrap() {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        batches.extend(answer.as_array().cloned().unwrap_or_default());
    }
    let ids: Vec<_> = batches
        .iter()
        .map(|answer| answer["id"].as_i64().unwrap())
        .collect();
    assert_eq!((ids, calls.load(Ordering::SeqCst)), (vec![101], 101));
}

//! Clients that disconnect without notice.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{RequestContext, Tool};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Semaphore,
};

use crate::http::load::{Start, ends, until};
use crate::{
    http::server::peer::{LEGACY, initialize},
    support::{calculator, modern, notification, request},
};

/// The numbers of calls of a tool that were begun, finished and cancelled.
#[derive(Default)]
struct Seen {
    running: AtomicUsize,
    finished: AtomicUsize,
    cancelled: AtomicUsize,
}

/// A tool that reports progress, and then waits to be released or cancelled.
fn work(seen: &Arc<Seen>, release: &Arc<Semaphore>) -> Tool {
    let (seen, release) = (Arc::clone(seen), Arc::clone(release));
    Tool::new("work", "Work", move |cx: RequestContext| {
        let (seen, release) = (Arc::clone(&seen), Arc::clone(&release));
        async move {
            seen.running.fetch_add(1, Ordering::SeqCst);
            cx.progress(1).await;
            tokio::select! {
                () = cx.cancelled() => seen.cancelled.fetch_add(1, Ordering::SeqCst),
                _ = release.acquire() => seen.finished.fetch_add(1, Ordering::SeqCst),
            }
        }
    })
}

fn post(headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len(),
    )
}

/// Sends the request, and reads until the text `end` has come.
async fn exchange(stream: &mut TcpStream, request: &str, end: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if text.contains(end) {
            return text;
        }
        let got = ends(stream.read_buf(&mut read)).await.unwrap();
        assert_ne!(got, 0, "{text}");
    }
}

const COUNT: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modern_clients_vanishing_midstream_cancel_their_calls() {
    let (seen, release) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let server = calculator().tool(work(&seen, &release));
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let mut message = modern(1, "tools/call", json!({"name": "work", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!(1);
    let headers =
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: work\r\n";
    let mut streams = Vec::new();
    for _ in 0..COUNT {
        let mut stream = TcpStream::connect(serving.local_addr()).await.unwrap();
        exchange(
            &mut stream,
            &post(headers, &message),
            "notifications/progress",
        )
        .await;
        streams.push(stream);
    }
    assert_eq!(seen.running.load(Ordering::SeqCst), COUNT);
    drop(streams);
    until(|| match seen.cancelled.load(Ordering::SeqCst) {
        COUNT => Ok(()),
        other => Err(format!("{other} are cancelled")),
    })
    .await;
    // Only the task that accepts connections is left.
    until(|| start.is_now(1)).await;
    ends(serving.close()).await;
    start.is_reached().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_calls_continue_when_their_clients_vanish() {
    let (seen, release): (Arc<Seen>, _) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let server = calculator().tool(work(&seen, &release));
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let mut ids = Vec::new();
    for number in 0..COUNT {
        let mut stream = TcpStream::connect(serving.local_addr()).await.unwrap();
        let opening = post("", &initialize(LEGACY, json!({})));
        let opened = exchange(&mut stream, &opening, "serverInfo").await;
        let (_, id) = opened.split_once("mcp-session-id: ").unwrap();
        let id = id.lines().next().unwrap().to_owned();
        let headers = format!("mcp-session-id: {id}\r\n");
        let told = post(&headers, &notification("notifications/initialized"));
        exchange(&mut stream, &told, "202 Accepted").await;
        let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": number}});
        let call = post(&headers, &request(1, "tools/call", params));
        exchange(&mut stream, &call, "notifications/progress").await;
        ids.push(id);
    }
    // All connections are gone.
    assert_eq!(server.sessions().count(), COUNT);
    release.add_permits(COUNT);
    until(|| match seen.finished.load(Ordering::SeqCst) {
        COUNT => Ok(()),
        other => Err(format!("{other} have finished")),
    })
    .await;
    assert_eq!(seen.cancelled.load(Ordering::SeqCst), 0);
    for id in ids {
        let mut stream = TcpStream::connect(serving.local_addr()).await.unwrap();
        let bye =
            format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {id}\r\n\r\n");
        exchange(&mut stream, &bye, "204 No Content").await;
    }
    until(|| start.is_now(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_2024_end_when_their_clients_vanish() {
    let server = calculator();
    let start = Start::of(&server);
    let serving = start.endpoint.serve("127.0.0.1:0").await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..COUNT {
        let mut stream = TcpStream::connect(serving.local_addr()).await.unwrap();
        let get = "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
        exchange(&mut stream, get, "sessionId=").await;
        streams.push(stream);
    }
    assert_eq!(server.sessions().count(), COUNT);
    drop(streams);
    until(|| start.is_now(1)).await;
}

//! Tests of graceful shutdown, and of HTTP/2.

use std::{
    future::pending,
    sync::{Arc, atomic::Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
    time::{Duration, Instant, sleep},
};

use super::script::*;
use crate::limits::Limits;

/// A request that arrives while an idle connection closes is lost, and the client cannot know whether it was served.
#[tokio::test(start_paused = true)]
async fn open_connections_are_served_until_drain_ends() {
    let it = tested(Limits::default());
    let (mut idle, mut silent) = (it.connect().await, it.connect().await);
    idle.get("/a").await;
    idle.read_until("/a").await;
    let (mut waits, mut streams) = (it.connect().await, it.connect().await);
    waits.get("/waits").await;
    streams.get("/streams").await;
    streams.read_until("first ").await;
    it.until_running(2).await;
    let serving = Arc::clone(&it.serving);
    let closing = tokio::spawn(async move { serving.close().await });
    let start = Instant::now();
    it.accepted.closed().await;
    assert_eq!(start.elapsed().as_millis(), 0, "it no longer listens");
    for (client, path) in [(&mut idle, "/b"), (&mut silent, "/c")] {
        client.get(path).await;
        client.read_until(path).await;
    }
    it.paths.go_on.notify_one();
    it.paths.go_on.notify_one();
    assert!(waits.rest().await.ends_with("waited"));
    assert!(streams.rest().await.contains("last"));
    assert_eq!(idle.rest().await, "");
    assert_eq!(start.elapsed(), Limits::default().drain);
    closing.await.unwrap();
    it.serving.wait().await;
    it.serving.close().await;
}

/// Its client has sent a request, perhaps, before it could know.
#[tokio::test(start_paused = true)]
async fn connections_waiting_for_accept_are_served() {
    let it = tested(Limits::default().http(|http| http.max_connections(2)));
    let mut clients = [it.connect().await, it.connect().await, it.connect().await];
    for client in &mut clients {
        client.get("/a").await;
    }
    let [mut first, mut second, mut third] = clients;
    let closed = tokio::spawn(async move { it.serving.close().await });
    first.read_until("/a").await;
    second.read_until("/a").await;
    assert_eq!(third.rest().await, "", "the connection limit is reached");
    closed.await.unwrap();
}

/// Handlers are cancelled at the end of the drain, and their answers need a moment.
#[tokio::test(start_paused = true)]
async fn close_is_bounded() {
    let limits = Limits::default().drain(Duration::from_secs(7));
    let it = tested(limits);
    let mut client = it.connect().await;
    client.get("/waits").await;
    it.until_running(1).await;
    let start = Instant::now();
    it.serving.close().await;
    assert_eq!(start.elapsed().as_secs(), 8);
    assert_eq!(it.paths.running.load(Ordering::SeqCst), 0);
    assert_eq!(client.rest().await, "");
}

#[tokio::test(start_paused = true)]
async fn running_requests_end_before_their_connections() {
    let end = Arc::new(Notify::new());
    let ended = Arc::clone(&end);
    let it = tested_until(Limits::default(), async move { ended.notified().await });
    let mut client = it.connect().await;
    client.get("/waits").await;
    it.until_running(1).await;
    // A handler may wait for a message on another connection.
    let mut another = it.connect().await;
    let serving = Arc::clone(&it.serving);
    let closing = tokio::spawn(async move { serving.close().await });
    it.accepted.closed().await;
    another.get("/another").await;
    another.read_until("/another").await;
    end.notify_one();
    it.paths.go_on.notify_one();
    assert!(client.rest().await.ends_with("waited"));
    closing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unfinished_requests_leave_time_for_connections() {
    let it = tested_until(Limits::default(), pending());
    let mut client = it.connect().await;
    client.get("/waits").await;
    it.until_running(1).await;
    let serving = Arc::clone(&it.serving);
    let closing = tokio::spawn(async move { serving.close().await });
    sleep(Limits::default().drain + Duration::from_millis(500)).await;
    it.paths.go_on.notify_one();
    assert!(client.rest().await.ends_with("waited"));
    closing.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handle_ends_running_requests() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/a").await;
    client.read_until("/a").await;
    let Tested {
        serving, accepted, ..
    } = it;
    drop(serving);
    assert_eq!(client.rest().await, "");
    accepted.closed().await;
}

/// Frames of HTTP/2 as raw bytes: the preface, settings, and a request with literal headers.
fn http2_request(path: &str) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    // GET, http, the path, and the host.
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(0x04, path), (0x01, "localhost")] {
        block.extend([name, u8::try_from(value.len()).unwrap()]);
        block.extend(value.as_bytes());
    }
    let length = u8::try_from(block.len()).unwrap();
    bytes.extend([0, 0, length, 1, 0x05, 0, 0, 0, 1]);
    bytes.extend(block);
    bytes
}

#[tokio::test(start_paused = true)]
async fn http2_is_served_after_its_preface() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client
        .near
        .write_all(&http2_request("/waits"))
        .await
        .unwrap();
    it.until_running(1).await;
    it.paths.go_on.notify_one();
    client.read_until("waited").await;
}

#[tokio::test(start_paused = true)]
async fn disconnecting_http2_client_cancels_its_requests() {
    let it = tested(Limits::default());
    let mut gone = it.connect().await;
    gone.near.write_all(&http2_request("/waits")).await.unwrap();
    it.until_running(1).await;
    drop(gone);
    it.paths.dropped.notified().await;
    // A client that no longer answers also counts as disconnected.
    let mut silent = it.connect().await;
    silent
        .near
        .write_all(&http2_request("/waits"))
        .await
        .unwrap();
    it.until_running(1).await;
    let start = Instant::now();
    it.paths.dropped.notified().await;
    assert!(start.elapsed() <= Duration::from_secs(50));
}

#[tokio::test(start_paused = true)]
async fn close_is_bounded_for_http2_too() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client
        .near
        .write_all(&http2_request("/waits"))
        .await
        .unwrap();
    it.until_running(1).await;
    it.serving.close().await;
    it.paths.dropped.notified().await;
    assert_eq!(it.paths.running.load(Ordering::SeqCst), 0);
}

// Attack: resource exhaustion.
/// The client opens the largest windows. With the default limit, its missing ping answers would be noticed first.
#[tokio::test(start_paused = true)]
async fn http2_client_that_never_reads_is_disconnected() {
    let limits = Limits::default().http(|http| http.stall(Duration::from_secs(20)));
    let it = tested(limits);
    let mut client = it.connect().await;
    let mut bytes = http2_request("/floods");
    for stream in [0, 1] {
        bytes.extend([0, 0, 4, 8, 0, 0, 0, 0, stream]);
        bytes.extend(0x7000_0000_u32.to_be_bytes());
    }
    let start = Instant::now();
    client.near.write_all(&bytes).await.unwrap();
    it.until_running(1).await;
    let ping = [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &[1; 8]].concat();
    loop {
        tokio::select! {
            biased;
            () = it.paths.dropped.notified() => break,
            () = sleep(Duration::from_secs(1)) => {}
        }
        let _ = client.near.write_all(&ping).await;
    }
    let waited = start.elapsed().as_secs();
    assert!((20..=31).contains(&waited), "{waited} s");
}

const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// The type of the next frame, which is answered if it is a ping. `None` at the end.
async fn next_frame(client: &mut Client) -> Option<u8> {
    let mut head = [0; 9];
    client.near.read_exact(&mut head).await.ok()?;
    let length = u16::from_be_bytes([head[1], head[2]]);
    let mut payload = vec![0; length.into()];
    client.near.read_exact(&mut payload).await.ok()?;
    let (kind, flags) = (head[3], head[4]);
    if kind == PING && flags == 0 {
        let pong = [&[0, 0, 8, PING, 1, 0, 0, 0, 0][..], &payload].concat();
        let _ = client.near.write_all(&pong).await;
    }
    Some(kind)
}

/// Pings are exchanged in the meantime, and do not count as requests.
#[tokio::test(start_paused = true)]
async fn idle_http2_connection_is_notified_and_closed() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.near.write_all(&http2_request("/a")).await.unwrap();
    client.read_until("/a").await;
    let start = Instant::now();
    let mut frames = Vec::new();
    while let Some(frame) = next_frame(&mut client).await {
        frames.push(frame);
    }
    let waited = start.elapsed().as_secs();
    assert!((100..=125).contains(&waited), "{waited} s");
    assert!(frames.contains(&GOAWAY), "{frames:?}");
}

#[tokio::test(start_paused = true)]
async fn http2_connection_without_requests_is_not_awaited() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    let preface = [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        &[0, 0, 0, 4, 0, 0, 0, 0, 0],
    ];
    client.near.write_all(&preface.concat()).await.unwrap();
    let start = Instant::now();
    client.rest().await;
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn closing_notifies_http2_clients_at_once() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.near.write_all(&http2_request("/a")).await.unwrap();
    client.read_until("/a").await;
    let serving = Arc::clone(&it.serving);
    let closing = tokio::spawn(async move { serving.close().await });
    let start = Instant::now();
    let mut frames = Vec::new();
    while let Some(frame) = next_frame(&mut client).await {
        frames.push(frame);
    }
    assert!(frames.contains(&GOAWAY), "{frames:?}");
    closing.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn close_waits_one_drain_for_silent_connection() {
    let it = tested(Limits::default().drain(Duration::from_secs(3)));
    let mut client = it.connect().await;
    client.send("PRI").await;
    sleep(Duration::from_millis(1)).await;
    let start = Instant::now();
    it.serving.close().await;
    assert_eq!(start.elapsed().as_secs(), 3);
    client.rest().await;
}

/// A request that the client has sent before it could know of the GOAWAY is served.
#[tokio::test(start_paused = true)]
async fn idle_http2_connection_serves_a_request_in_flight() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.near.write_all(&http2_request("/a")).await.unwrap();
    client.read_until("/a").await;
    while next_frame(&mut client).await != Some(GOAWAY) {}
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len() + 9;
    let mut request = http2_request("/late").split_off(preface);
    request[8] = 3;
    client.near.write_all(&request).await.unwrap();
    client.read_until("/late").await;
}

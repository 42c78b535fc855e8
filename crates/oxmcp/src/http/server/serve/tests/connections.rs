//! Tests of connections: their requests, the limit on their number, and their deadlines.

use std::{
    io::{self, ErrorKind},
    net::Ipv4Addr,
    sync::atomic::Ordering,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::{Duration, Instant, sleep, timeout},
};

use super::script::*;
use crate::{
    http::server::serve::accept::{listen, serve},
    limits::Limits,
};

#[tokio::test(start_paused = true)]
async fn requests_of_one_connection_are_answered_in_order() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    let requests = ["/a", "/waits", "/b"].map(|path| format!("GET {path} HTTP/1.1\r\n\r\n"));
    client.send(&requests.concat()).await;
    let first = client.read_until("\r\n\r\n/a").await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("content-length: 2"));
    it.paths.go_on.notify_one();
    client.read_until("waited").await;
    client.read_until("/b").await;
}

/// Otherwise the second of two small writes waits for a delayed acknowledgment of the first.
#[tokio::test(start_paused = true)]
async fn head_and_body_are_one_write() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client
        .send("POST /echo HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody")
        .await;
    client.read_until("body").await;
    client.get("/streams").await;
    client.read_until("first ").await;
    let writes = client.writes.lock().unwrap().clone();
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert!(writes[0].ends_with("\r\n\r\nbody"), "{writes:?}");
    assert!(writes[1].contains("first "), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn stream_events_are_written_immediately() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/streams").await;
    client.read_until("first ").await;
    it.paths.go_on.notify_one();
    client.read_until("last\r\n0\r\n\r\n").await;
}

#[tokio::test(start_paused = true)]
async fn disconnecting_client_cancels_its_requests() {
    let it = tested(Limits::default());
    for path in ["/waits", "/streams"] {
        let mut client = it.connect().await;
        client.get(path).await;
        it.until_running(1).await;
        drop(client);
        it.paths.dropped.notified().await;
        assert_eq!(it.paths.running.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn half_closing_client_cancels_its_requests() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/waits").await;
    it.until_running(1).await;
    client.near.shutdown().await.unwrap();
    it.paths.dropped.notified().await;
    assert_eq!(client.rest().await, "");
}

// Attack: malformed input that ends a process.
#[tokio::test(start_paused = true)]
async fn panic_ends_only_its_own_connection() {
    let it = tested(Limits::default());
    let mut other = it.connect().await;
    other.get("/waits").await;
    it.until_running(1).await;
    let mut client = it.connect().await;
    client.get("/panics").await;
    assert_eq!(client.rest().await, "");
    let mut next = it.connect().await;
    next.get("/next").await;
    next.read_until("/next").await;
    it.paths.go_on.notify_one();
    other.read_until("waited").await;
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn excess_connections_wait_until_one_ends() {
    let limits = Limits::default().http(|http| http.max_connections(2));
    let it = tested(limits);
    let mut first = it.connect().await;
    let mut second = it.connect().await;
    for client in [&mut first, &mut second] {
        client.get("/a").await;
        client.read_until("/a").await;
    }
    assert_eq!(it.asked.load(Ordering::SeqCst), 2);
    let mut third = it.connect().await;
    third.get("/b").await;
    let waits = timeout(Duration::from_secs(50), third.read_until("/b")).await;
    assert!(waits.is_err());
    drop(first);
    third.read_until("/b").await;
    second.get("/c").await;
    second.read_until("/c").await;
}

// Attack: malformed input that ends a process.
#[tokio::test(start_paused = true)]
async fn accept_failures_are_retried_without_spinning() {
    let it = tested(Limits::default());
    let no_files = || Err(io::Error::from_raw_os_error(24));
    for accepted in [no_files(), no_files(), no_files()] {
        it.accepted.send(accepted).await.unwrap();
    }
    let mut client = it.connect().await;
    client.get("/a").await;
    let start = Instant::now();
    client.read_until("/a").await;
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn accepting_resumes_once_a_connection_ends() {
    let it = tested(Limits::default());
    let mut first = it.connect().await;
    first.get("/a").await;
    first.read_until("/a").await;
    let no_files = Err(io::Error::from_raw_os_error(24));
    it.accepted.send(no_files).await.unwrap();
    let mut second = it.connect().await;
    yield_now().await;
    drop(first);
    let start = Instant::now();
    second.get("/b").await;
    second.read_until("/b").await;
    assert_eq!(start.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_accept_does_not_stop_the_server() {
    let it = tested(Limits::default());
    for kind in [ErrorKind::ConnectionAborted, ErrorKind::ConnectionReset] {
        it.accepted.send(Err(kind.into())).await.unwrap();
    }
    let mut client = it.connect().await;
    let start = Instant::now();
    client.get("/a").await;
    client.read_until("/a").await;
    assert_eq!(start.elapsed().as_millis(), 0);
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn missing_or_partial_request_head_times_out() {
    for begun in ["", "PRI * HT", "GET / HTTP/1.1\r\nhost: local"] {
        let it = tested(Limits::default());
        let mut client = it.connect().await;
        client.send(begun).await;
        let start = Instant::now();
        client.rest().await;
        let waited = start.elapsed().as_secs();
        assert!((10..=12).contains(&waited), "{begun:?}: {waited} s");
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_after_a_timeout() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    for _ in 0..10 {
        client.get("/a").await;
        client.read_until("/a").await;
        sleep(Duration::from_secs(99)).await;
    }
    client.get("/a").await;
    client.read_until("/a").await;
    let start = Instant::now();
    client.rest().await;
    let idle = start.elapsed().as_secs();
    assert!((100..=125).contains(&idle), "{idle} s");
}

#[tokio::test(start_paused = true)]
async fn head_timeout_is_independent_of_idle_timeout() {
    let limits = Limits::default().http(|http| http.connection_idle(Duration::from_secs(650)));
    let it = tested(limits);
    for requests in 0..3 {
        let mut client = it.connect().await;
        for _ in 0..requests {
            client.get("/a").await;
            client.read_until("/a").await;
            sleep(Duration::from_secs(640)).await;
        }
        client.send("GET / HTTP/1.1\r\nhost: local").await;
        let start = Instant::now();
        client.rest().await;
        let waited = start.elapsed().as_secs();
        assert!((10..=12).contains(&waited), "{waited} s");
    }
    let mut idle = it.connect().await;
    idle.get("/a").await;
    idle.read_until("/a").await;
    let start = Instant::now();
    idle.rest().await;
    let waited = start.elapsed().as_secs();
    assert!((650..=700).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn long_running_request_is_awaited() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/waits").await;
    sleep(Duration::from_secs(100_000)).await;
    it.paths.go_on.notify_one();
    client.read_until("waited").await;
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn stalled_http1_reader_is_disconnected() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/floods").await;
    // A client that reads a little from time to time is only slow.
    let mut piece = vec![0; 1 << 20];
    for _ in 0..5 {
        sleep(Duration::from_secs(115)).await;
        client.near.read_exact(&mut piece).await.unwrap();
    }
    let start = Instant::now();
    it.paths.dropped.notified().await;
    let waited = start.elapsed().as_secs();
    assert!((120..=180).contains(&waited), "{waited} s");
    client.rest().await;
}

#[tokio::test(start_paused = true)]
async fn stream_without_output_is_not_stalled() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    client.get("/streams").await;
    client.read_until("first ").await;
    sleep(Duration::from_secs(100_000)).await;
    it.paths.go_on.notify_one();
    client.read_until("last").await;
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn endless_request_head_is_refused() {
    let it = tested(Limits::default());
    let mut client = it.connect().await;
    let long = "x".repeat(100 << 10);
    client
        .send(&format!("GET / HTTP/1.1\r\nlong: {long}"))
        .await;
    assert!(client.rest().await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn port_in_use_error_names_the_port() {
    let first = listen("127.0.0.1:0").await.unwrap();
    let address = first.local_addr().unwrap();
    let error = listen(address).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("address already in use: {address}")),
        "{error}"
    );
    let error = listen("no.such.host.invalid:80").await.unwrap_err();
    assert!(error.to_string().contains("failed to resolve"), "{error}");
    for address in ["127.0.0.1", "localhost", "127.0.0.1:http"] {
        let error = listen(address).await.unwrap_err();
        assert!(error.to_string().contains("127.0.0.1:3000"), "{error}");
    }
}

#[tokio::test]
async fn sockets_are_served() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let serving = serve(listener, Paths::default(), &Limits::default(), |_| async {}).unwrap();
    let address = serving.local_addr();
    assert_ne!(address.port(), 0);
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /a HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("/a"), "{answer}");
    serving.close().await;
    assert!(TcpStream::connect(address).await.is_err());
    serving.await;
}

/// The bytes are sent long after the service has finished its response.
#[tokio::test(start_paused = true)]
async fn slow_reader_of_long_answer_is_not_idle() {
    let limits = Limits::default().http(|http| http.connection_idle(Duration::from_secs(5)));
    let it = tested(limits);
    let mut client = it.connect().await;
    let body = "x".repeat(4 << 20);
    client
        .send(&format!(
            "POST /echo HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        ))
        .await;
    client.send(&body).await;
    let mut piece = vec![0; 512 << 10];
    for _ in 0..8 {
        sleep(Duration::from_secs(4)).await;
        client.near.read_exact(&mut piece).await.unwrap();
    }
}

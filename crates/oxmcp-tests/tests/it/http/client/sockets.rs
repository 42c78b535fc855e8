//! Real servers on real sockets, reached by the built-in HTTP client.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ::http::{StatusCode, header};
use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::Bytes;
use futures_util::stream;
use oxmcp::http::Endpoint;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::http::client::peer::{client, discovered, modern, text};

/// A listener that counts connections.
struct Counting {
    listener: TcpListener,
    connections: Arc<AtomicUsize>,
}

impl axum::serve::Listener for Counting {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        let (stream, address) = self.listener.accept().await.unwrap();
        self.connections.fetch_add(1, Ordering::Relaxed);
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Answers as the name of the tool demands.
async fn serve(message: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&message).unwrap();
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    if message["method"] == "server/discover" {
        return whole("application/json", answer(discovered()).to_string());
    }
    let answer = answer(text("3"));
    match message["params"]["name"].as_str() {
        Some("json") => whole("application/json", answer.to_string()),
        Some("events") => events(vec![Ok(format!("data: {answer}\n\n").into())]),
        Some("cut") => {
            let failure = std::io::Error::other("cut");
            events(vec![Ok("id: 1\n\n".into()), Err(failure)])
        }
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

fn whole(form: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, form)], body.into()).into_response()
}

fn events(chunks: Vec<std::io::Result<Bytes>>) -> Response {
    whole("text/event-stream", Body::from_stream(stream::iter(chunks)))
}

async fn start() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let connections = Arc::<AtomicUsize>::default();
    let counting = Counting {
        listener,
        connections: Arc::clone(&connections),
    };
    let app = Router::new().route("/mcp", post(serve));
    tokio::spawn(async move { axum::serve(counting, app).await });
    (url, connections)
}

#[tokio::test]
async fn answers_arrive_over_a_reused_connection() {
    let (url, connections) = start().await;
    let session = modern().connect(Endpoint::new(url)).await.unwrap();
    for tool in ["json", "events"].into_iter().cycle().take(20) {
        let result = session.call_tool(tool, json!({})).await.unwrap();
        assert_eq!(result.to_text(), "3");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn failures_of_connections_have_distinct_errors() {
    let (url, _) = start().await;
    let session = modern().connect(Endpoint::new(&url)).await.unwrap();
    let error = session.call_tool("cut", json!({})).await.unwrap_err();
    assert!(error.is_network(), "{error}");
    let error = session.call_tool("none", json!({})).await.unwrap_err();
    assert_eq!(error.http_status(), Some(503));
    assert!(session.call_tool("json", json!({})).await.is_ok());
    let elsewhere = client()
        .connect(Endpoint::new(url.replace("/mcp", "/")))
        .await;
    let error = elsewhere.unwrap_err();
    assert_eq!(error.http_status(), Some(404), "{error}");
}

#[tokio::test]
async fn unreachable_server_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let error = modern().connect(Endpoint::new(&url)).await.unwrap_err();
    assert!(error.is_network(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("/mcp failed") && text.contains("refused"),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn plain_http_server_fails_tls() {
    let (url, _) = start().await;
    let url = url.replace("http://", "https://");
    let error = modern().connect(Endpoint::new(url)).await.unwrap_err();
    assert!(error.is_network(), "{error}");
}

/// Answers one request on each connection, and closes the connection without announcing it. Counts the connections that the client
/// has closed as well.
async fn serve_once_each(listener: TcpListener, closed: watch::Sender<usize>) {
    loop {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let message = loop {
            socket.read_buf(&mut request).await.unwrap();
            let text = String::from_utf8_lossy(&request);
            let Some((_, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            if let Ok(message) = serde_json::from_str::<Value>(body) {
                break message;
            }
        };
        let result = match message["method"].as_str() {
            Some("server/discover") => discovered(),
            _ => text("3"),
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(answer.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
        closed.send_modify(|closed| *closed += 1);
    }
}

#[tokio::test]
async fn closed_pooled_connection_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (closed, mut closes) = watch::channel(0);
    tokio::spawn(serve_once_each(listener, closed));
    let session = modern().connect(Endpoint::new(url)).await.unwrap();
    for count in 1..=3 {
        closes.wait_for(|closed| *closed == count).await.unwrap();
        let result = session.call_tool("json", json!({})).await.unwrap();
        assert_eq!(result.to_text(), "3");
    }
    closes.wait_for(|closed| *closed == 4).await.unwrap();
}

#[tokio::test]
async fn concurrent_calls_use_separate_reusable_connections() {
    let (url, connections) = start().await;
    let session = modern().connect(Endpoint::new(url)).await.unwrap();
    for _ in 0..4 {
        let calls = (0..8).map(|_| session.call_tool("json", json!({})).into_future());
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result.unwrap().to_text(), "3");
        }
    }
    let connections = connections.load(Ordering::Relaxed);
    assert!((1..=8).contains(&connections), "{connections}");
}

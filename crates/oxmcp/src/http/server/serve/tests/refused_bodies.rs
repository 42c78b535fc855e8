//! Tests of bodies that are too long: their clients write the whole body before they read, and must still see the response. They
//! use sockets, because an in-memory pipe cannot be reset.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{http::StreamableHttp, server::Server};

fn endpoint() -> StreamableHttp {
    StreamableHttp::from(Server::new("s", "1"))
}

fn head(headers: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         {headers}\r\n"
    )
}

/// Writes a body that is too long, and then reads the response.
async fn refused(address: SocketAddr, is_chunked: bool) -> String {
    const CHUNK: usize = 1 << 20;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = "content-length: 10485760\r\n";
    let headers = if is_chunked {
        "transfer-encoding: chunked\r\n"
    } else {
        length
    };
    stream.write_all(head(headers).as_bytes()).await.unwrap();
    for _ in 0..10 {
        let mut chunk = vec![b' '; CHUNK];
        if is_chunked {
            chunk = [b"100000\r\n".to_vec(), chunk, b"\r\n".to_vec()].concat();
        }
        stream.write_all(&chunk).await.unwrap();
    }
    if is_chunked {
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    }
    let mut response = Vec::new();
    while !response.ends_with(b"}}") {
        assert_ne!(stream.read_buf(&mut response).await.unwrap(), 0);
    }
    String::from_utf8(response).unwrap()
}

async fn all_are_refused(address: SocketAddr) {
    for attempt in 0..10 {
        let response = refused(address, attempt % 2 == 1).await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    }
}

#[tokio::test]
async fn client_writing_first_sees_the_body_limit_error() {
    let serving = endpoint().serve("127.0.0.1:0").await.unwrap();
    all_are_refused(serving.local_addr()).await;
}

#[tokio::test]
async fn mounted_endpoint_reports_the_body_limit_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum::Router::new().nest_service("/mcp", endpoint());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    all_are_refused(address).await;
    serving.abort();
}

/// The client waits for `100 Continue` before its body, and does not get it.
#[tokio::test]
async fn oversized_expect_continue_request_is_refused() {
    let serving = endpoint().serve("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(serving.local_addr()).await.unwrap();
    let head = head("expect: 100-continue\r\ncontent-length: 10485760\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
}

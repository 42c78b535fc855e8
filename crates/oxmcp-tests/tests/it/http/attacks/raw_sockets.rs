//! Raw bytes over real sockets, for the attacks.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    http::{
        mounts::Target,
        server::peer::{call_modern, json},
    },
    support::text,
};

/// A time limit beyond all expected waits, so that a missing event does not hang a test.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The bytes that arrive until the other side closes or resets the connection.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut read = Vec::new();
    let reading = stream.read_to_end(&mut read);
    // A reset ends the reading as well.
    let _ = timeout(TIME_LIMIT, reading)
        .await
        .expect("it is not closed");
    read
}

/// Sends these bytes, and reads until the server closes the connection, which the bytes must ask it to do.
pub(crate) async fn ask(address: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may have stopped reading before all bytes are sent.
    let _ = stream.write_all(bytes.as_ref()).await;
    String::from_utf8_lossy(&rest(&mut stream).await).into_owned()
}

/// Sends these bytes, ends the sending side, and reads until the server closes the connection.
pub(crate) async fn hurl(address: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(&hurl_bytes(address, bytes).await).into_owned()
}

pub(crate) async fn hurl_bytes(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes.as_ref()).await;
    let _ = stream.shutdown().await;
    rest(&mut stream).await
}

/// The status of a response, or 0 if there is none.
pub(crate) fn status(response: &str) -> u16 {
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.unwrap_or_default()
}

/// A POST of a local program, after which the connection is closed.
pub(crate) fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len(),
    )
}

/// Asserts that the server still serves calls.
#[track_caller]
pub(crate) fn is_alive(endpoint: &impl Target) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
        let answer = json(call_modern(endpoint, "tools/call", params).await).await;
        assert_eq!(text(&answer), "3.0", "{answer} at {place}");
    }
}

/// A server that answers each connection with the next of these answers, whatever it is asked, and closes it. Returns its
/// URL, and the requests in order, once all answers are given.
pub(crate) async fn canned(answers: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            asked.push(request(&mut stream).await);
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
        asked
    });
    (url, serving)
}

/// One whole request.
async fn request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let length = lines
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .find_map(|(_, length)| length.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        let got = timeout(TIME_LIMIT, stream.read_buf(&mut read)).await;
        if got.expect("the request does not come").unwrap_or(0) == 0 {
            return text;
        }
    }
}

/// A response with this content type and this body.
pub(crate) fn response(form: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {form}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len(),
    )
    .into_bytes();
    response.extend_from_slice(body);
    response
}

/// The answer to `server/discover`, the first request of a client.
pub(crate) fn discovered() -> Vec<u8> {
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private",
    });
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": result});
    response("application/json", answer.to_string())
}

//! An endpoint in an axum app, next to other routes. It is a tower service, so it works with any framework that supports tower.
//!
//! `cargo run --example axum --features axum`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{error::Error, net::SocketAddr};

use axum::{Router, routing::get, serve::ListenerExt};
use oxmcp::{
    Client, JsonSchema, Server, Tool, ToolError,
    http::{Endpoint, StreamableHttp},
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

#[derive(serde::Deserialize, JsonSchema)]
struct Pair {
    /// the dividend
    a: f64,
    /// the divisor
    b: f64,
}

async fn divide(Pair { a, b }: Pair) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("b must not be 0"));
    }
    Ok(a / b)
}

fn app(endpoint: StreamableHttp) -> Router {
    Router::new()
        .route("/health", get(|| async { "ok" }))
        .route_service("/mcp", endpoint)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server =
        Server::new("calculator", "1.0.0").tool(Tool::new("divide", "Divide a by b", divide));
    // A mounted endpoint does not check its server at startup. Without this check, mistakes would surface with the first request.
    server.check()?;
    // The closure returns the server for each request and each session: here, always the same.
    let endpoint = StreamableHttp::new(move |_request| server.clone());

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // Without this, the system may delay small packets until it has more data.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, app(endpoint.clone()))
        .with_graceful_shutdown(async { stopped.await.unwrap_or_default() });
    let serving = tokio::spawn(serving.into_future());

    println!("/health: {}", health(address).await?);
    let session = Client::new("example", "1.0.0")
        .connect(Endpoint::new(format!("http://{address}/mcp")))
        .await?;
    let call = session.call_tool("divide", json!({"a": 3, "b": 4}));
    println!("/mcp: 3 / 4 => {}", call.structured::<f64>().await?);
    session.close().await?;

    // axum stops listening, and then waits for open streams, which the endpoint ends.
    stop.send(()).map_err(|()| "the app has already stopped")?;
    endpoint.close().await;
    Ok(serving.await??)
}

async fn health(address: SocketAddr) -> Result<String, Box<dyn Error>> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(b"GET /health HTTP/1.0\r\n\r\n").await?;
    let mut response = String::new();
    socket.read_to_string(&mut response).await?;
    let (_head, body) = response.split_once("\r\n\r\n").ok_or("no body")?;
    Ok(body.to_owned())
}

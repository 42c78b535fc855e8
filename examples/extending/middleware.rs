//! Middleware around every request: as a function, and as a tower layer.
//!
//! `cargo run --example middleware`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use oxmcp::{
    Error, Result, Server, Tool,
    middleware::{Next, Request, Response, from_fn},
    testing,
};
use tower_layer::layer_fn;
use tower_service::Service;

/// Prints the outcome of each request.
async fn log(request: Request, next: Next) -> Result<Response> {
    let method = request.method().to_owned();
    let response = next.run(request).await;
    match &response {
        Ok(_) => println!("{method}: ok"),
        Err(error) => println!("{method}: {error}"),
    }
    response
}

/// Passes allowed requests on, and rejects others.
async fn guard(request: Request, next: Next) -> Result<Response> {
    if request.method() == "tools/call"
        && request
            .raw_params()
            .is_some_and(|it| it.get().contains("secret"))
    {
        return Err(Error::invalid_params("\"secret\" is not allowed"));
    }
    next.run(request).await
}

/// Counts requests. Any `tower::Layer` works, for example for limits or tracing.
#[derive(Clone)]
struct Count<S> {
    inner: S,
    count: Arc<AtomicUsize>,
}

impl<S: Service<Request>> Service<Request> for Count<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}

#[derive(serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
struct Text {
    text: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let echo = |Text { text }: Text| async move { text };
    let server = Server::new("echo", "1.0.0")
        .tool(Tool::new("echo", "Say it again", echo))
        // The first layer is the outermost: it sees requests first, and responses last.
        .layer(from_fn(log))
        .layer(layer_fn(move |inner| Count {
            inner,
            count: Arc::clone(&counter),
        }))
        .layer(from_fn(guard));

    let session = testing::connect(&server).await?;
    for text in ["hello", "the secret"] {
        let text = text.to_owned();
        match session.call_tool("echo", Text { text }).await {
            Ok(result) => println!("=> {}", result.to_text()),
            Err(error) => println!("=> {error}"),
        }
    }
    session.close().await?;
    println!("{} requests", count.load(Ordering::Relaxed));
    Ok(())
}

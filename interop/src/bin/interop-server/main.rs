//! The server that clients of others start: `interop-server`, over stdio.

mod features;

use std::time::Duration;

use oxmcp::{JsonSchema, RequestContext, Server, Tool, ToolError, stdio};
use serde::Deserialize;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Pair {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn add(Pair { a, b }: Pair) -> f64 {
    a + b
}

async fn divide(Pair { a, b }: Pair) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("b must not be 0"));
    }
    Ok(a / b)
}

async fn echo(Text { text }: Text) -> String {
    text
}

/// It takes no notice of being cancelled: that it stops all the same is the SDK's promise.
async fn slow(cx: RequestContext, Steps { steps }: Steps) -> String {
    for step in 1..=steps {
        cx.progress(f64::from(step)).total(f64::from(steps)).await;
        sleep(Duration::from_millis(20)).await;
    }
    "done".to_owned()
}

async fn panic(Nothing {}: Nothing) -> String {
    panic!("a tool that panics on purpose")
}

#[expect(clippy::print_stdout, reason = "the session must survive just that")]
async fn print(Nothing {}: Nothing) -> &'static str {
    println!("a line that is no message");
    "printed"
}

async fn grow(server: Server) -> Result<&'static str, oxmcp::Error> {
    server.add_tools([Tool::new("grown", "Say that it is there", || async {
        "here"
    })])?;
    Ok("grown")
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let server = Server::new("interop-server", "1.0.0")
        .tool(Tool::new("add", "Add two numbers", add))
        .tool(Tool::new("divide", "Divide a by b", divide))
        .tool(Tool::new("echo", "Say it again", echo))
        .tool(Tool::new("slow", "Take 20 ms for each step", slow))
        .tool(Tool::new("panic", "Panic", panic))
        .tool(Tool::new("print", "Print a line to standard output", print));
    let growing = server.clone();
    server.add_tools([Tool::new("grow", "Add a tool", move || {
        grow(growing.clone())
    })])?;
    features::offer(server)?.run(stdio()).await
}

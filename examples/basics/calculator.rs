//! A server with two typed tools, over stdio, in every revision.
//!
//! `printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"ping"}' | cargo run --example calculator`

use oxmcp::{JsonSchema, Server, Tool, ToolError, stdio};

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

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let server = Server::new("calculator", "1.0.0")
        .tool(Tool::new(
            "add",
            "Add two numbers",
            |Pair { a, b }: Pair| async move { a + b },
        ))
        .tool(Tool::new("divide", "Divide a by b", divide).read_only());
    server.run(stdio()).await
}

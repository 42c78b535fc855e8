//! A server with two typed tools, over stdio, in every revision.
//!
//! `printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"ping"}' | cargo run --example calculator`

use oxmcp::{Server, ToolError, stdio};

/// Add two numbers
#[oxmcp::tool]
async fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// Divide a by b
#[oxmcp::tool(read_only)]
async fn divide(
    /// the dividend
    a: f64,
    /// the divisor
    b: f64,
) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("b must not be 0"));
    }
    Ok(a / b)
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let server = Server::new("calculator", "1.0.0").tools([add::tool(), divide::tool()]);
    server.run(stdio()).await
}

//! The smallest server over stdio: one tool.

use oxmcp::{JsonSchema, Server, Tool, stdio};

#[derive(serde::Deserialize, JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

async fn add(Pair { a, b }: Pair) -> String {
    a.saturating_add(b).to_string()
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let server = Server::new("minimal", "1.0.0").tool(Tool::new("add", "Add two integers", add));
    server.run(stdio()).await
}

//! The smallest server over stdio: one tool.

use rmcp::{
    ServerHandler, ServiceExt, handler::server::wrapper::Parameters, schemars, tool, tool_handler,
    tool_router, transport::stdio,
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[derive(Clone)]
struct Minimal;

#[tool_router]
impl Minimal {
    #[tool(description = "Add two integers")]
    fn add(&self, Parameters(Pair { a, b }): Parameters<Pair>) -> String {
        a.saturating_add(b).to_string()
    }
}

#[tool_handler]
impl ServerHandler for Minimal {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Minimal.serve(stdio()).await?.waiting().await?;
    Ok(())
}

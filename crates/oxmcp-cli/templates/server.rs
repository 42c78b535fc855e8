//! A server of the Model Context Protocol over stdio. Hosts start the program, and end it by closing its input.

use oxmcp::{Server, ToolError, stdio};

/// Divides one number by another.
#[oxmcp::tool(read_only, idempotent)]
async fn divide(
    /// The dividend.
    a: f64,
    /// The divisor, which is not 0.
    b: f64,
) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("cannot divide by 0; pass another `b`"));
    }
    Ok(a / b)
}

fn server() -> Server {
    Server::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        .instructions("Use `divide` for exact quotients.")
        .tool(divide::tool())
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    // Standard output is for messages only: print everything else to standard error.
    server().run(stdio()).await
}

#[cfg(test)]
mod tests {
    use oxmcp::testing;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn quotients_are_exact() -> oxmcp::Result<()> {
        let session = testing::connect(&server()).await?;
        let call = session.call_tool("divide", json!({"a": 1, "b": 4}));
        assert_eq!(call.structured::<f64>().await?, 0.25);
        let call = session.call_tool("divide", json!({"a": 1, "b": 0}));
        assert!(call.await?.is_error);
        Ok(())
    }
}

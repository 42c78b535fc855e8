//! A server that logs to its client: explicitly, and with `tracing` events during a request. The client sets the level.
//!
//! `cargo run --example logging --features tracing-subscriber`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, ClientSession, RequestContext, Result, Revision, Server, Tool,
    protocol::{LoggingLevel, LoggingMessageParams},
    testing,
};
use serde_json::json;
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

async fn import(cx: RequestContext) -> &'static str {
    cx.log(LoggingLevel::Debug, "opening the file").await;
    parse();
    let data = json!({"msg": "3 lines were skipped", "file": "tea.csv"});
    cx.log(LoggingLevel::Warning, data).logger("import").await;
    "imported"
}

/// Stands for a library that does not know MCP.
fn parse() {
    tracing::info!(lines = 12, "parsed");
}

async fn print(message: LoggingMessageParams, _session: ClientSession) {
    let logger = message.logger.unwrap_or_default();
    println!("  {} [{logger}] {}", message.level, message.data);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The layer needs the spans of requests, which come from oxmcp. Otherwise, only events of this program are sent to clients.
    let mine = Targets::new()
        .with_target("oxmcp", tracing::Level::INFO)
        .with_target("logging", tracing::Level::INFO);
    tracing_subscriber::registry()
        .with(oxmcp::logging::layer().with_filter(mine))
        .init();

    let server = Server::new("warehouse", "1.0.0").logging().tool(Tool::new(
        "import",
        "Import a file",
        import,
    ));
    let client = Client::new("my-app", "1.0.0").on_log(print);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for level in [LoggingLevel::Debug, LoggingLevel::Warning] {
            println!("{revision}, level {level}:");
            let session = testing::connect(&server)
                .client(&client)
                .revision(revision)
                .await?;
            session.set_log_level(level).await?;
            session.call_tool("import", ()).await?;
            // Closing waits until all messages sent before the response are handled.
            session.close().await?;
        }
    }
    Ok(())
}

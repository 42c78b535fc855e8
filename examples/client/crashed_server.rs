//! A client that recovers when its server crashes, in every revision.
//!
//! `cargo run --example crashed_server`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::{env, process};

use oxmcp::{Client, ClientSession, Command, Revision, Server, stdio};
use serde_json::json;

/// Say hello
#[oxmcp::tool(read_only)]
async fn hello() -> &'static str {
    "hello"
}

/// End the process of the server
#[oxmcp::tool]
#[expect(clippy::disallowed_methods, reason = "the example is about a crash")]
async fn crash() {
    process::exit(1);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> oxmcp::Result<()> {
    // The client below starts this program again, as its server.
    if env::args().nth(1).as_deref() == Some("server") {
        let server = Server::new("fragile", "1.0.0").tools([hello::tool(), crash::tool()]);
        return server.run(stdio()).await;
    }
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        println!("{revision}");
        let client = Client::new("host", "1.0.0")
            .revisions([revision])
            .on_restarted(|_session: ClientSession| async {
                println!("  the server was restarted");
            });
        let command = Command::new(env::current_exe()?).arg("server");
        let mut session = client.connect(command).await?;
        let failed = session.call_tool("crash", json!({})).await;
        let is_closed = failed.is_err_and(|error| error.is_closed());
        println!("  the server crashed: {is_closed}");
        // A modern session stays open, and the next call restarts the process. A legacy session must be opened again.
        session = session.recover().await?;
        let answer = session.call_tool("hello", json!({})).await?;
        println!("  the server says {}", answer.to_text());
        session.close().await?;
    }
    Ok(())
}

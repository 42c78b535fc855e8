//! A client of the Model Context Protocol: starts a server, and shows its tools.

use std::{
    env,
    io::{self, Write},
};

use oxmcp::{Client, ClientSession, Command};

/// The lines about the tools of a server.
async fn tools(session: &ClientSession) -> oxmcp::Result<Vec<String>> {
    let tools = session.tools().all().await?;
    let line = |it: &oxmcp::protocol::Tool| {
        format!(
            "{}: {}",
            it.name,
            it.description.as_deref().unwrap_or_default()
        )
    };
    Ok(tools.iter().map(line).collect())
}

#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    let mut words = env::args().skip(1);
    let Some(program) = words.next() else {
        return Err(oxmcp::Error::misuse(
            "no server is named; pass its program and arguments",
        ));
    };
    let client = Client::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let session = client.connect(Command::new(program).args(words)).await?;
    for line in tools(&session).await? {
        writeln!(io::stdout(), "{line}")?;
    }
    session.close().await
}

#[cfg(test)]
mod tests {
    use oxmcp::{Server, Tool, testing};

    use super::*;

    #[tokio::test]
    async fn tools_are_shown() -> oxmcp::Result<()> {
        let tool = Tool::new("now", "Tells the time", || async { "ten past two" });
        let session = testing::connect(&Server::new("clock", "1.0.0").tool(tool)).await?;
        assert_eq!(tools(&session).await?, ["now: Tells the time"]);
        Ok(())
    }
}

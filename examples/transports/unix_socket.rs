//! Many clients over a Unix socket. Any byte stream works: for TCP, change the types of the sockets.
//!
//! `cargo run --example unix_socket`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

#[cfg(unix)]
mod example {
    use std::{env, fs, process};

    use oxmcp::{Client, Result, Server, Tool, transport};
    use tokio::net::{UnixListener, UnixStream};

    /// Serves every client that connects. The sessions share one server.
    async fn serve(listener: UnixListener, server: Server) -> Result<()> {
        loop {
            let (socket, _) = listener.accept().await?;
            let (read, write) = socket.into_split();
            server.connect(transport::io(read, write)).await?;
        }
    }

    pub(super) async fn main() -> Result<()> {
        let server = Server::new("whoami", "1.0.0")
            .tool(Tool::new("pid", "Tell the process id", || async { process::id() }).read_only());

        let path = env::temp_dir().join(format!("oxmcp-example-{}.sock", process::id()));
        let serving = tokio::spawn(serve(UnixListener::bind(&path)?, server.clone()));

        let client = Client::new("example", "1.0.0");
        let mut sessions = Vec::new();
        for _ in 0..3 {
            let (read, write) = UnixStream::connect(&path).await?.into_split();
            sessions.push(client.connect(transport::io(read, write)).await?);
        }
        println!("the server has {} sessions", server.sessions().count());
        for session in &sessions {
            let pid: u32 = session.call_tool("pid", ()).structured().await?;
            println!("same process: {}", pid == process::id());
            session.close().await?;
        }
        serving.abort();
        Ok(fs::remove_file(path)?)
    }
}

#[cfg(unix)]
#[tokio::main]
async fn main() -> oxmcp::Result<()> {
    example::main().await
}

#[cfg(not(unix))]
fn main() {}

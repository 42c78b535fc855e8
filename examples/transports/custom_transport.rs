//! A custom transport, in less than forty lines.
//!
//! `cargo run --example custom_transport`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, Error, JsonSchema, Limits, Result, Server, Tool,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf},
};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};

// A transport of whole messages over a pair of channels, like those of a WebSocket or a message queue.
struct Channels(Option<(Inbox, Outbox)>);
struct Inbox(Receiver<Vec<u8>>, Vec<u8>);
struct Outbox(Sender<Vec<u8>>);

impl Transport for Channels {
    type Read = Inbox;
    type Write = Outbox;

    async fn connect(&mut self, _limits: &Limits) -> Result<(Inbox, Outbox)> {
        let used = || Error::closed("the channels are already connected");
        self.0.take().ok_or_else(used)
    }
}

impl ReadHalf for Inbox {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let Some(message) = self.0.recv().await else {
            return Ok(None);
        };
        self.1 = message;
        Ok(Some(Frame::Message(&self.1)))
    }
}

impl WriteHalf for Outbox {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        for message in messages {
            let sent = self.0.send(message.to_vec()).await;
            sent.map_err(|_| Error::closed("the peer is gone"))?;
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        self.0 = channel(1).0; // Drops the old sender, so that the peer reads the end of the stream.
        Ok(())
    }
}

/// Returns two transports that are connected to each other.
fn channels() -> (Channels, Channels) {
    let (to_server, from_client) = channel(16);
    let (to_client, from_server) = channel(16);
    let end = |inbox, outbox| Channels(Some((Inbox(inbox, Vec::new()), Outbox(outbox))));
    (end(from_server, to_server), end(from_client, to_client))
}

#[derive(serde::Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let greet = |Name { name }: Name| async move { format!("Hello, {name}!") };
    let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", "Greet someone", greet));

    let (near, far) = channels();
    server.connect(far).await?;
    let session = Client::new("example", "1.0.0").connect(near).await?;
    let result = session
        .call_tool("greet", json!({"name": "Ferris"}))
        .await?;
    println!("{}", result.to_text());
    session.close().await
}

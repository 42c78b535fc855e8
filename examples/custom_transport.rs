//! A transport of your own, in less than forty lines.
//!
//! `cargo run --example custom_transport`
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use oxmcp::{
    Client, Error, JsonSchema, Limits, Result, Server, Tool,
    transport::{Frame, Messages, ReadHalf, Transport, WriteHalf},
};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Messages over a pair of channels, each one whole: as they would come from a WebSocket or a message queue.
struct Channels(Option<(Inbox, Outbox)>);

struct Inbox {
    channel: Receiver<Vec<u8>>,
    current: Vec<u8>,
}

struct Outbox(Option<Sender<Vec<u8>>>);

impl Transport for Channels {
    type Read = Inbox;
    type Write = Outbox;

    async fn connect(&mut self, _limits: &Limits) -> Result<(Inbox, Outbox)> {
        self.0
            .take()
            .ok_or_else(|| Error::closed("these channels were used before"))
    }
}

impl ReadHalf for Inbox {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        let Some(message) = self.channel.recv().await else {
            return Ok(None);
        };
        self.current = message;
        Ok(Some(Frame::Message(&self.current)))
    }
}

impl WriteHalf for Outbox {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        let channel = self
            .0
            .as_ref()
            .ok_or_else(|| Error::closed("closed on this side"))?;
        for message in messages {
            channel
                .send(message.to_vec())
                .await
                .map_err(|_| Error::closed("the peer is gone"))?;
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        self.0 = None; // The peer reads the end.
        Ok(())
    }
}

/// Two transports that are connected to each other.
fn channels() -> (Channels, Channels) {
    let end = |channel, to| {
        Channels(Some((
            Inbox {
                channel,
                current: Vec::new(),
            },
            Outbox(Some(to)),
        )))
    };
    let (to_server, from_client) = channel(16);
    let (to_client, from_server) = channel(16);
    (end(from_server, to_server), end(from_client, to_client))
}

#[derive(serde::Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let greet = |Name { name }: Name| async move { format!("Hello, {name}!") };
    let server = Server::new("greeter", "1.0.0").tool(Tool::new("greet", "Greet somebody", greet));

    let (near, far) = channels();
    server.connect(far).await?;
    let session = Client::new("example", "1.0.0").connect(near).await?;
    let result = session
        .call_tool("greet", json!({"name": "Ferris"}))
        .await?;
    println!("{}", result.to_text());
    session.close().await
}

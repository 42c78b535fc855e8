//! [`ScriptedPeer`], a peer that follows a script.

use oxmcp_protocol::Revision;
use serde_json::{Value, json};

use crate::{
    debug::opaque_debug,
    error::{Error, Result},
    limits::Limits,
    transport::{
        InMemory, in_memory,
        io::{LineReader, LineWriter},
        traits::{Frame, Messages, ReadHalf, Transport, WriteHalf},
    },
};

/// A peer that follows a test's script: the test tells it which messages to send, and examines those that it receives. It uses
/// raw JSON-RPC, so it can be a client or a server, and can violate the protocol.
///
/// ```
/// use oxmcp::{Server, testing::ScriptedPeer};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// let (mut peer, transport) = ScriptedPeer::new().await;
/// Server::new("quiet", "1.0.0").connect(transport).await?;
///
/// peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await?;
/// assert_eq!(peer.receive().await?, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
/// # Ok(())
/// # }
/// ```
pub struct ScriptedPeer {
    read: LineReader<tokio::io::DuplexStream>,
    write: LineWriter<tokio::io::DuplexStream>,
    transcript: String,
}

impl ScriptedPeer {
    /// Creates a peer, and the transport that leads to it.
    #[expect(
        clippy::missing_panics_doc,
        reason = "a new in-memory transport always connects"
    )]
    pub async fn new() -> (Self, InMemory) {
        let (mut near, far) = in_memory();
        let halves = near.connect(&Limits::default()).await;
        let (read, write) = halves.expect("a new in-memory transport connects");
        (
            Self {
                read,
                write,
                transcript: String::new(),
            },
            far,
        )
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If the other side has closed the connection.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the message may have been sent.
    pub async fn send(&mut self, message: Value) -> Result<()> {
        self.send_line(&message.to_string()).await
    }

    /// Sends any line, which need not be a message, followed by a newline.
    ///
    /// # Errors
    /// If the other side has closed the connection.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the line may have been sent.
    pub async fn send_line(&mut self, line: impl AsRef<[u8]>) -> Result<()> {
        let mut bytes = line.as_ref().to_vec();
        self.note("->", &bytes);
        bytes.push(b'\n');
        self.write.write(Messages::new(&bytes)).await
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// If the other side has closed the connection, or sent a line that is not JSON.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn receive(&mut self) -> Result<Value> {
        let frame = self.read.read().await?;
        let Some(Frame::Message(message)) = frame else {
            return Err(Error::closed("the other side closed the connection"));
        };
        let message = message.to_vec();
        self.note("<-", &message);
        serde_json::from_slice(&message).map_err(|error| {
            let line = String::from_utf8_lossy(&message);
            Error::decode(format!(
                "the other side sent a line that is not JSON: {error}: {line}"
            ))
        })
    }

    /// Sends a message and waits for the next message of the other side.
    ///
    /// # Errors
    /// Those of [`send`](Self::send) and [`receive`](Self::receive).
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the message may have been sent.
    pub async fn ask(&mut self, message: Value) -> Result<Value> {
        self.send(message).await?;
        self.receive().await
    }

    /// Opens a session as a client, in a legacy revision.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and if the server does not agree to the revision.
    ///
    /// # Cancel safety
    /// Not cancel safe: a part of the messages may have been sent.
    pub async fn initialize(&mut self, revision: Revision) -> Result<Value> {
        let answer = self.ask(json!({
            "jsonrpc": "2.0",
            "id": "initialize",
            "method": "initialize",
            "params": {
                "protocolVersion": revision,
                "capabilities": {},
                "clientInfo": {"name": "scripted", "version": "1.0.0"},
            },
        }));
        let answer = answer.await?;
        if answer
            .pointer("/result/protocolVersion")
            .and_then(Value::as_str)
            != Some(revision.as_str())
        {
            return Err(Error::unsupported(format!(
                "the server did not accept the revision: {answer}"
            )));
        }
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(answer)
    }

    /// Returns the `_meta` that a modern client sends with each request.
    #[must_use]
    pub fn modern_meta() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": Revision::LATEST,
            "io.modelcontextprotocol/clientInfo": {"name": "scripted", "version": "1.0.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    }

    /// Closes this side's sending half, so that the other side reads the end.
    ///
    /// # Errors
    /// If the connection cannot be closed.
    ///
    /// # Cancel safety
    /// The sending half stays closed if the future is dropped.
    pub async fn close(&mut self) -> Result<()> {
        self.write.close().await
    }

    /// Returns all messages that were sent (`->`) and received (`<-`), one per line, for snapshots.
    #[must_use]
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    fn note(&mut self, direction: &str, line: &[u8]) {
        self.transcript.push_str(direction);
        self.transcript.push(' ');
        self.transcript.push_str(&String::from_utf8_lossy(line));
        self.transcript.push('\n');
    }
}

opaque_debug!(ScriptedPeer);

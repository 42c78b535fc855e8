//! A transport on which each request is answered by itself, as over HTTP, to a server by script.

use oxmcp::{
    Client, ClientSession, Error, Limits, RequestId, Result,
    testing::ScriptedPeer,
    transport::{Frame, InMemory, ReadHalf, Transport},
};
use serde_json::Value;
use tokio::{select, sync::mpsc, task::JoinHandle};

/// The way to the server.
pub(super) struct Separately {
    transport: InMemory,
    failures: Option<mpsc::Receiver<(RequestId, Error)>>,
    identity: Option<&'static str>,
}

/// What a test does to it.
pub(super) struct Way {
    failures: mpsc::Sender<(RequestId, Error)>,
}

impl Way {
    /// A request gets no answer.
    pub(super) async fn fail(&self, request: &Value, error: Error) {
        let id = RequestId::Number(request["id"].as_i64().unwrap());
        self.failures.send((id, error)).await.unwrap();
    }
}

pub(super) struct Reader {
    read: <InMemory as Transport>::Read,
    failures: mpsc::Receiver<(RequestId, Error)>,
}

impl Transport for Separately {
    type Read = Reader;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let failures = self.failures.take();
        let failures = failures.ok_or_else(|| Error::closed("it was connected before"))?;
        let (read, write) = self.transport.connect(limits).await?;
        Ok((Reader { read, failures }, write))
    }

    fn identity(&self) -> Option<String> {
        self.identity.map(Into::into)
    }

    fn answers_each(&self) -> bool {
        true
    }
}

impl ReadHalf for Reader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        select! {
            biased;
            Some((id, error)) = self.failures.recv() => Ok(Some(Frame::Failed { id, error })),
            frame = self.read.read() => frame,
        }
    }
}

/// A client that connects, and has got no answer yet.
pub(super) async fn connecting(
    client: Client,
    identity: Option<&'static str>,
) -> (ScriptedPeer, Way, JoinHandle<Result<ClientSession>>) {
    let (peer, transport) = ScriptedPeer::new().await;
    let (failures, failing) = mpsc::channel(1);
    let way = Way { failures };
    let transport = Separately {
        transport,
        failures: Some(failing),
        identity,
    };
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    (peer, way, connecting)
}

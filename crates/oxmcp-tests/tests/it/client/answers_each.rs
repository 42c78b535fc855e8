//! A scripted transport on which each request is answered separately, as over HTTP.

use oxmcp::{
    Client, ClientSession, Error, Limits, RequestId, Result,
    testing::ScriptedPeer,
    transport::{Frame, HeaderMirror, InMemory, ReadHalf, Transport},
};
use serde_json::Value;
use tokio::{select, sync::mpsc, task::JoinHandle};

/// A transport that answers each request separately.
pub(crate) struct Separately {
    transport: InMemory,
    failures: Option<mpsc::Receiver<(RequestId, Error)>>,
    mirror: HeaderMirror,
    identity: Option<&'static str>,
}

/// The test's control of a [`Separately`].
pub(crate) struct SwitchableConnector {
    failures: mpsc::Sender<(RequestId, Error)>,
    pub(crate) mirror: HeaderMirror,
}

impl SwitchableConnector {
    /// Fails a request with an error instead of an answer.
    pub(crate) async fn fail(&self, request: &Value, error: Error) {
        let id = RequestId::Number(request["id"].as_i64().unwrap());
        self.failures.send((id, error)).await.unwrap();
    }

    /// The mirrored headers of a message, by name.
    pub(crate) fn headers(&self, message: &Value) -> Result<Value> {
        let headers = self.mirror.headers(message.to_string().as_bytes())?;
        let count = headers.len();
        let headers: serde_json::Map<_, _> = headers
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        assert_eq!(headers.len(), count, "a header stands there twice");
        Ok(headers.into())
    }
}

pub(crate) struct Reader {
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

    fn mirror(&self) -> Option<HeaderMirror> {
        Some(self.mirror.clone())
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

/// A client that is connecting, and has received no answer yet.
pub(crate) async fn connecting(
    client: Client,
    identity: Option<&'static str>,
) -> (
    ScriptedPeer,
    SwitchableConnector,
    JoinHandle<Result<ClientSession>>,
) {
    let (peer, transport) = ScriptedPeer::new().await;
    let (failures, failing) = mpsc::channel(1);
    let mirror = HeaderMirror::new();
    let way = SwitchableConnector {
        failures,
        mirror: mirror.clone(),
    };
    let transport = Separately {
        transport,
        failures: Some(failing),
        mirror,
        identity,
    };
    let connecting = tokio::spawn(async move { client.connect(transport).await });
    (peer, way, connecting)
}

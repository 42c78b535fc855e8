//! Transports that wrap others, boxed or logged: the properties of the wrapped transport stay visible.

use std::{sync::atomic::Ordering, time::Duration};

use oxmcp::{
    Client, Error, Limits, Result, in_memory,
    transport::{
        BoxTransport, Frame, Logging, Messages, ReadHalf, Startup, Transport, WriteHalf, boxed,
        stream,
    },
};
use serde_json::json;

use crate::support::calculator;

#[tokio::test]
async fn transport_can_be_chosen_at_runtime() {
    for in_one_process in [false, true] {
        let (near, far): (BoxTransport, BoxTransport) = if in_one_process {
            let (near, far) = in_memory();
            (boxed(near), boxed(far))
        } else {
            let (near, far) = tokio::io::duplex(1 << 10);
            (boxed(stream(near)), boxed(boxed(stream(far))))
        };
        calculator().connect(far).await.unwrap();
        let session = Client::new("test", "1").connect(near).await.unwrap();
        let sum = session.call_tool("add", json!({"a": 1, "b": 2}));
        assert_eq!(sum.structured::<f64>().await.unwrap(), 3.0);
        session.close().await.unwrap();
    }
}

/// A transport that implements every descriptive method.
struct Talkative;

impl Transport for Talkative {
    type Read = Self;
    type Write = Self;

    async fn connect(&mut self, _: &Limits) -> Result<(Self, Self)> {
        Ok((Self, Self))
    }

    fn name(&self) -> String {
        "name".into()
    }

    fn identity(&self) -> Option<String> {
        Some("identity".into())
    }

    fn diagnosis(&self) -> Option<String> {
        Some("diagnosis".into())
    }

    fn authorization(&self) -> Option<String> {
        Some("authorization".into())
    }

    fn answers_each(&self) -> bool {
        true
    }

    fn startup(&self) -> Option<Startup> {
        Some(Startup::new(
            Duration::from_secs(7),
            tokio::time::Instant::now,
        ))
    }

    fn ended_unread(&self) -> bool {
        true
    }

    fn is_legacy(&self) -> bool {
        true
    }

    fn ends_process(&self) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        true
    }
}

impl ReadHalf for Talkative {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        Err(Error::closed("read"))
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        Some(Frame::Message(b"tried"))
    }

    fn is_drained(&self) -> bool {
        true
    }
}

impl WriteHalf for Talkative {
    async fn write(&mut self, _: Messages<'_>) -> Result<()> {
        Err(Error::closed("write"))
    }

    async fn close(&mut self) -> Result<()> {
        Err(Error::closed("close"))
    }

    fn can_reconnect(&self) -> bool {
        true
    }

    async fn reconnect(&mut self) -> Result<()> {
        Err(Error::closed("reconnect"))
    }
}

#[tokio::test]
async fn wrapper_exposes_the_inner_transports_properties() {
    is_handed_on(boxed(Talkative)).await;
    is_handed_on(Logging::with(Talkative, |_| ())).await;

    let (near, _far) = in_memory();
    let (_, mut write) = boxed(near).connect(&Limits::default()).await.unwrap();
    let messages = Messages::from_lines(b"{}\n").unwrap();
    write.write(messages).await.unwrap();
    assert_eq!(write.bytes_written().unwrap().load(Ordering::Relaxed), 3);
}

async fn is_handed_on(mut transport: impl Transport) {
    assert_eq!(transport.name(), "name");
    assert_eq!(transport.identity().unwrap(), "identity");
    assert_eq!(transport.diagnosis().unwrap(), "diagnosis");
    assert_eq!(transport.authorization().unwrap(), "authorization");
    assert!(transport.answers_each() && transport.mirror().is_none());
    assert!(transport.ended_unread() && transport.is_legacy());
    assert!(transport.ends_process() && transport.is_strict());
    assert_eq!(
        transport.startup().unwrap().timeout(),
        Duration::from_secs(7)
    );
    let (mut read, mut write) = transport.connect(&Limits::default()).await.unwrap();
    assert!(matches!(read.try_read(), Some(Frame::Message(b"tried"))));
    assert!(read.is_drained());
    assert_eq!(read.read().await.unwrap_err().message(), "read");
    let messages = Messages::from_lines(b"{}\n").unwrap();
    assert_eq!(write.write(messages).await.unwrap_err().message(), "write");
    assert!(write.bytes_written().is_none());
    assert!(write.can_reconnect());
    assert_eq!(write.reconnect().await.unwrap_err().message(), "reconnect");
    assert_eq!(write.close().await.unwrap_err().message(), "close");
}

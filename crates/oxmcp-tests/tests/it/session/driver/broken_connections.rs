//! Connections that break: every pending call fails at once, with the reason.

use oxmcp::{
    Client, Limits, Result, Revision,
    transport::{Frame, InMemory, ReadHalf, Transport},
};
use serde_json::json;
use tokio::time::Instant;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn calls_fail_at_once_with_the_reason() {
    let (session, mut peer) = server_of(Client::new("test", "1.0.0")).await;
    let calling = tokio::spawn({
        let session = session.clone();
        async move { session.call_tool("slow", json!({})).await }
    });
    peer.receive().await.unwrap();
    peer.send_line("panic: out of coffee").await.unwrap();
    let start = Instant::now();
    peer.close().await.unwrap();
    let error = calling.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(
        error.message().contains("the peer closed the connection"),
        "{error}"
    );
    assert!(error.message().contains("out of coffee"), "{error}");
    session.wait().await.unwrap();
    let error = session.ping().await.unwrap_err();
    assert!(error.message().contains("out of coffee"), "{error}");
}

/// A transport that fails or panics after a few reads.
struct Breaks {
    inner: InMemory,
    panics: bool,
}

struct BreaksRead<R> {
    inner: R,
    panics: bool,
    left: u32,
}

impl Transport for Breaks {
    type Read = BreaksRead<<InMemory as Transport>::Read>;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let (inner, write) = self.inner.connect(limits).await?;
        let read = BreaksRead {
            inner,
            panics: self.panics,
            left: 2,
        };
        Ok((read, write))
    }
}

impl<R: ReadHalf> ReadHalf for BreaksRead<R> {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        assert!(
            self.left > 0 || !self.panics,
            "this is the test's own panic"
        );
        let frame = self.inner.read().await?;
        if self.left == 0 {
            return Err(oxmcp::Error::closed("the cable was cut"));
        }
        self.left -= 1;
        Ok(frame)
    }
}

#[tokio::test(start_paused = true)]
async fn broken_or_panicking_transport_fails_calls_and_waits() {
    for panics in [false, true] {
        let (near, far) = oxmcp::in_memory();
        server().connect(far).await.unwrap();
        let client = Client::new("test", "1.0.0").revisions([Revision::V2025_11_25]);
        let session = client
            .connect(Breaks {
                inner: near,
                panics,
            })
            .await
            .unwrap();
        session.ping().await.unwrap();
        let error = session.call_tool("fast", json!({})).await.unwrap_err();
        assert!(error.is_closed(), "{error}");
        let reason = if panics {
            "connection was aborted"
        } else {
            "the cable was cut"
        };
        assert!(error.message().contains(reason), "{error}");
        let error = session.wait().await.unwrap_err();
        assert!(error.message().contains(reason), "{error}");
        assert!(session.close().await.is_err());
        assert_eq!(client.sessions().count(), 0);
    }
}

#[test]
fn runtime_shutdown_fails_waiting_calls() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (gone, here) = (runtime(), runtime());
    let session = gone.block_on(async { oxmcp::testing::connect(&server()).await.unwrap() });
    drop(gone);
    let error = here.block_on(async { session.ping().await.unwrap_err() });
    assert!(error.is_closed(), "{error}");
    assert!(here.block_on(session.wait()).is_err());
}

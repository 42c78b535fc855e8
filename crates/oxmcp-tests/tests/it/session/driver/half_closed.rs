//! Half-closed connections: answers that are still read, and writes that are not waited for.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::FutureExt;
use oxmcp::{
    Client, Error, Limits, Result, Revision,
    middleware::{self, Next, Request},
    protocol::{ElicitAction, ElicitFormParams},
    transport::{Frame, InMemory, Messages, ReadHalf, Transport, WriteHalf},
};
use serde_json::json;
use tokio::sync::Notify;

use crate::session::*;

/// A transport whose peer may stop reading, and whose `close` returns once nothing more arrives from the peer.
struct Deaf {
    inner: InMemory,
    is_deaf: Arc<AtomicBool>,
    /// Whether a peer that does not read sends messages without a pause.
    never_pauses: bool,
    ended: Arc<Notify>,
}

struct DeafRead<R> {
    inner: R,
    is_deaf: Arc<AtomicBool>,
    never_pauses: bool,
    ended: Arc<Notify>,
}

struct DeafWrite<W>(W, Arc<AtomicBool>, Arc<Notify>);

impl Transport for Deaf {
    type Read = DeafRead<<InMemory as Transport>::Read>;
    type Write = DeafWrite<<InMemory as Transport>::Write>;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let (read, write) = self.inner.connect(limits).await?;
        let write = DeafWrite(write, Arc::clone(&self.is_deaf), Arc::clone(&self.ended));
        let read = DeafRead {
            inner: read,
            is_deaf: Arc::clone(&self.is_deaf),
            never_pauses: self.never_pauses,
            ended: Arc::clone(&self.ended),
        };
        Ok((read, write))
    }
}

impl<R: ReadHalf> ReadHalf for DeafRead<R> {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        if self.never_pauses && self.is_deaf.load(Ordering::Relaxed) {
            let news = br#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#;
            return Ok(Some(Frame::Message(news)));
        }
        let frame = self.inner.read().await?;
        if frame.is_none() {
            self.ended.notify_one();
        }
        Ok(frame)
    }

    fn is_drained(&self) -> bool {
        true
    }
}

impl<W: WriteHalf> WriteHalf for DeafWrite<W> {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        if self.1.load(Ordering::Relaxed) {
            return Err(Error::closed("nobody reads any more"));
        }
        self.0.write(messages).await
    }

    async fn close(&mut self) -> Result<()> {
        let closed = self.0.close().await;
        self.2.notified().await;
        closed
    }
}

async fn deaf(never_pauses: bool) -> (ClientSession, ScriptedPeer, Arc<AtomicBool>) {
    deaf_to(Client::new("test", "1.0.0"), never_pauses).await
}

async fn deaf_to(
    client: Client,
    never_pauses: bool,
) -> (ClientSession, ScriptedPeer, Arc<AtomicBool>) {
    let (mut peer, inner) = ScriptedPeer::new().await;
    let is_deaf = Arc::<AtomicBool>::default();
    let transport = Deaf {
        inner,
        is_deaf: Arc::clone(&is_deaf),
        never_pauses,
        ended: Arc::default(),
    };
    let client = client.revisions([Revision::V2025_11_25]);
    let opening = tokio::spawn(async move { client.connect(transport).await });
    accept(&mut peer).await;
    (opening.await.unwrap().unwrap(), peer, is_deaf)
}

fn calling(session: &ClientSession) -> tokio::task::JoinHandle<Result<String>> {
    let session = session.clone();
    tokio::spawn(async move {
        let result = session.call_tool("x", ()).await?;
        Ok(result.as_text().unwrap_or_default().to_owned())
    })
}

#[tokio::test(start_paused = true)]
async fn answer_sent_before_peer_stopped_reading_is_received() {
    let (session, mut peer, is_deaf) = deaf(false).await;
    let first = calling(&session);
    let asked = peer.receive().await.unwrap();
    is_deaf.store(true, Ordering::Relaxed);
    // After the notification the driver writes, while the answer has arrived, but is unread.
    let mut second = session.call_tool("x", ()).into_future();
    assert!(second.as_mut().now_or_never().is_none());
    let news = notification("notifications/message", json!({"level": "info", "data": 1}));
    peer.send(news).await.unwrap();
    peer.send(text_result(asked["id"].clone(), "in time"))
        .await
        .unwrap();
    assert_eq!(first.await.unwrap().unwrap(), "in time");
    let error = second.await.unwrap_err();
    assert!(error.message().contains("nobody reads"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_work_starts_for_peer_that_stopped_reading() {
    let is_asked = Arc::<AtomicBool>::default();
    let asked = Arc::clone(&is_asked);
    let client = Client::new("test", "1.0.0").on_elicit(move |_: ElicitFormParams| {
        asked.store(true, Ordering::Relaxed);
        async { ElicitAction::Decline }
    });
    let (session, mut peer, is_deaf) = deaf_to(client, false).await;
    let first = calling(&session);
    let call = peer.receive().await.unwrap();
    is_deaf.store(true, Ordering::Relaxed);
    let second = calling(&session);
    tokio::task::yield_now().await;
    let form = json!({"type": "object", "properties": {}});
    let question = json!({"message": "Sure?", "requestedSchema": form});
    let question = request(1, "elicitation/create", question);
    peer.send(question).await.unwrap();
    peer.send(text_result(call["id"].clone(), "in time"))
        .await
        .unwrap();
    assert_eq!(first.await.unwrap().unwrap(), "in time");
    assert!(second.await.unwrap().is_err());
    assert!(!is_asked.load(Ordering::Relaxed));
}

#[tokio::test(start_paused = true)]
async fn busy_peer_that_stopped_reading_delays_no_call() {
    let (session, mut peer, is_deaf) = deaf(true).await;
    let first = calling(&session);
    peer.receive().await.unwrap();
    is_deaf.store(true, Ordering::Relaxed);
    let second = calling(&session);
    // The paused clock does not advance by itself while there is a message to read.
    for _ in 0..20 {
        tokio::time::advance(Duration::from_millis(100)).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    for call in [first, second] {
        let error = call.now_or_never().expect("it has ended").unwrap();
        let error = error.unwrap_err();
        assert!(error.message().contains("nobody reads"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn peer_messages_are_read_while_it_closes() {
    let (session, mut peer, _) = deaf(false).await;
    let closing = tokio::spawn(async move { session.close().await });
    let noise = "x".repeat(1 << 10);
    let speaking = async {
        for _ in 0..1 << 10 {
            let message = json!({"level": "info", "data": noise});
            let message = notification("notifications/message", message);
            peer.send(message).await.unwrap();
        }
        peer.close().await.unwrap();
        closing.await.unwrap().unwrap();
    };
    let spoken = timeout(Duration::from_secs(60), speaking).await;
    spoken.expect("all of it is read");
}

#[tokio::test(start_paused = true)]
async fn middleware_may_ask_while_holding_the_connection() {
    async fn layer(request: Request, next: Next) -> Result<middleware::Response> {
        if request.method() == "logging/setLevel" {
            let session = request.context().and_then(RequestContext::server_session);
            session.unwrap().ping().await?;
        }
        next.run(request).await
    }
    let server = server().logging().layer(middleware::from_fn(layer));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    let level = request(1, "logging/setLevel", json!({"level": "info"}));
    peer.send(level).await.unwrap();
    // The next message depends on the level, and waits.
    peer.send(call(2, "fast", json!({}))).await.unwrap();
    let question = peer.receive().await.unwrap();
    assert_eq!(question["method"], "ping", "{question}");
    peer.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {}}))
        .await
        .unwrap();
    assert_eq!(peer.receive().await.unwrap()["id"], 1);
    assert_eq!(text(&peer.receive().await.unwrap()), "fast");
}

#[tokio::test(start_paused = true)]
async fn pings_held_by_middleware_are_bounded() {
    let limits = Limits::default().max_in_flight(4);
    let server = server().limits(limits).layer(middleware::from_fn(
        |request: Request, next: Next| async move {
            if request.method() == "ping" {
                std::future::pending::<()>().await;
            }
            next.run(request).await
        },
    ));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for id in 0..8 {
        peer.send(ping(id)).await.unwrap();
    }
    let refused = peer.ask(ping(8)).await.unwrap();
    assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
}

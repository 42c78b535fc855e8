//! Servers that end in the middle of a session and can be restarted.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, Error, Limits, Result, Revision,
    protocol::CallToolResult,
    testing::ScriptedPeer,
    transport::{Frame, InMemory, Messages, ReadHalf, Transport, WriteHalf},
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::client::{
    answer, calling, client, discovered, done, expect, initialized, soon,
    subscriptions::resync::{agree, resources},
};

type Read = <InMemory as Transport>::Read;
type Write = <InMemory as Transport>::Write;

/// A server that can be restarted while a session lasts. Each start is a [`ScriptedPeer`].
struct Mortal {
    starts: mpsc::Sender<ScriptedPeer>,
    /// The number of connections to it that were closed.
    closed: Arc<AtomicUsize>,
}

struct MortalReader {
    read: Read,
    next: Arc<Mutex<Option<Read>>>,
}

struct MortalWriter {
    write: Write,
    next: Arc<Mutex<Option<Read>>>,
    starts: mpsc::Sender<ScriptedPeer>,
    closed: Arc<AtomicUsize>,
}

async fn launch(starts: &mpsc::Sender<ScriptedPeer>) -> Result<(Read, Write)> {
    let (peer, mut transport) = ScriptedPeer::new().await;
    let started = starts.send(peer).await;
    started.map_err(|_| Error::closed("it cannot be started any more"))?;
    transport.connect(&Limits::default()).await
}

impl Transport for Mortal {
    type Read = MortalReader;
    type Write = MortalWriter;

    async fn connect(&mut self, _: &Limits) -> Result<(MortalReader, MortalWriter)> {
        let (read, write) = launch(&self.starts).await?;
        let next = Arc::default();
        let reader = MortalReader {
            read,
            next: Arc::clone(&next),
        };
        let (starts, closed) = (self.starts.clone(), Arc::clone(&self.closed));
        Ok((
            reader,
            MortalWriter {
                write,
                next,
                starts,
                closed,
            },
        ))
    }
}

impl ReadHalf for MortalReader {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        if let Some(read) = self.next.lock().unwrap().take() {
            self.read = read;
        }
        self.read.read().await
    }
}

impl WriteHalf for MortalWriter {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        self.write.write(messages).await
    }

    async fn close(&mut self) -> Result<()> {
        self.closed.fetch_add(1, Ordering::Relaxed);
        self.write.close().await
    }

    fn can_reconnect(&self) -> bool {
        true
    }

    async fn reconnect(&mut self) -> Result<()> {
        let (read, write) = launch(&self.starts).await?;
        *self.next.lock().unwrap() = Some(read);
        self.write = write;
        Ok(())
    }
}

struct Starts(mpsc::Receiver<ScriptedPeer>, Arc<AtomicUsize>);

impl Starts {
    async fn next(&mut self) -> ScriptedPeer {
        soon("start", self.0.recv()).await.unwrap()
    }

    fn is_quiet(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

async fn open(client: Client, revision: Revision) -> (ScriptedPeer, ClientSession, Starts) {
    let (sender, receiver) = mpsc::channel(1);
    let closed = Arc::<AtomicUsize>::default();
    let mut starts = Starts(receiver, Arc::clone(&closed));
    let starting = Mortal {
        starts: sender,
        closed,
    };
    let connecting = tokio::spawn(async move {
        let client = client.revisions(Revision::ALL);
        client.connect(starting).await
    });
    let mut peer = starts.next().await;
    let probe = expect(&mut peer, "server/discover").await;
    if revision.is_modern() {
        let mut found = discovered(&[revision.as_str()]);
        found["capabilities"] = resources();
        answer(&mut peer, &probe, found).await;
    } else {
        crate::client::refuse(&mut peer, &probe, crate::client::method_not_found()).await;
        let opening = expect(&mut peer, "initialize").await;
        answer(&mut peer, &opening, initialized(revision.as_str())).await;
        expect(&mut peer, "notifications/initialized").await;
    }
    let session = connecting.await.unwrap().unwrap();
    (peer, session, starts)
}

async fn closed(call: JoinHandle<Result<CallToolResult>>) -> Error {
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
    error
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn calls_fail_at_exit_and_next_restarts_server() {
    let (mut peer, session, mut starts) = open(client(), Revision::LATEST).await;
    for pause in [100, 200, 400] {
        let call = calling(&session);
        expect(&mut peer, "tools/call").await;
        drop(peer);
        closed(call).await;
        // There is no call, so the server is not restarted.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(starts.is_quiet());
        assert!(
            starts.1.swap(0, Ordering::Relaxed) > 0,
            "the old one is closed"
        );
        let start = Instant::now();
        let call = calling(&session);
        peer = starts.next().await;
        assert_eq!(start.elapsed(), Duration::from_millis(pause));
        let request = expect(&mut peer, "tools/call").await;
        assert_eq!(request["params"]["name"], "t", "and nothing is repeated");
        answer(&mut peer, &request, done()).await;
        call.await.unwrap().unwrap();
    }
    session.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_are_renewed_at_once() {
    let (sender, mut heard) = mpsc::channel(16);
    let client = client().on_tools_changed(move |_| {
        let sender = sender.clone();
        async move { sender.send(()).await.unwrap() }
    });
    let (mut peer, session, mut starts) = open(client, Revision::LATEST).await;
    agree(&mut peer).await;
    let watching = session.clone();
    let watching = tokio::spawn(async move { watching.watch_resource("file:///x").await });
    agree(&mut peer).await;
    let mut watch = watching.await.unwrap().unwrap();
    drop(peer);
    let mut peer = starts.next().await;
    let (_, filter) = agree(&mut peer).await;
    let all = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///x"]});
    assert_eq!(filter, all);
    soon("a call after the gap", heard.recv()).await.unwrap();
    assert!(
        soon("the update after the gap", watch.next())
            .await
            .is_some()
    );
}

#[tokio::test(start_paused = true)]
async fn repeatedly_exiting_server_ends_the_session() {
    let (peer, session, mut starts) = open(client(), Revision::LATEST).await;
    drop(peer);
    for _ in 0..5 {
        settle().await;
        let call = calling(&session);
        drop(starts.next().await);
        closed(call).await;
    }
    settle().await;
    closed(calling(&session)).await;
    assert!(session.wait().await.is_err());
    assert!(starts.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn closing_session_does_not_restart_the_server() {
    let (peer, session, mut starts) = open(client(), Revision::LATEST).await;
    drop(peer);
    settle().await;
    let call = calling(&session);
    settle().await;
    session.close().await.unwrap();
    closed(call).await;
    // The transport is kept as long as the session.
    drop(session);
    assert!(starts.0.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn legacy_session_ends_with_its_server() {
    let (peer, session, mut starts) = open(client(), Revision::V2025_11_25).await;
    drop(peer);
    session.wait().await.unwrap();
    closed(calling(&session)).await;
    // The transport is kept as long as the session.
    drop(session);
    assert!(starts.0.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn restart_is_reported_before_the_first_answer() {
    let restarts = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&restarts);
    let client = client().on_restarted(move |session| {
        let counts = Arc::clone(&counts);
        async move {
            assert!(session.revision().is_modern());
            counts.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (mut peer, session, mut starts) = open(client, Revision::LATEST).await;
    for restart in 0..3 {
        let call = calling(&session);
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, done()).await;
        call.await.unwrap().unwrap();
        assert_eq!(restarts.load(Ordering::Relaxed), restart);
        drop(peer);
        settle().await;
        let call = calling(&session.recover().await.unwrap());
        peer = starts.next().await;
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, done()).await;
        call.await.unwrap().unwrap();
        assert_eq!(restarts.load(Ordering::Relaxed), restart + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn recovery_works_before_the_revision_is_known() {
    for revision in [
        Revision::LATEST,
        Revision::V2025_11_25,
        Revision::V2024_11_05,
    ] {
        let (mut peer, mut session, mut starts) = open(client(), revision).await;
        let call = calling(&session);
        expect(&mut peer, "tools/call").await;
        drop(peer);
        closed(call).await;
        let recovering = session.clone();
        let recovered = tokio::spawn(async move { recovering.recover().await });
        if !revision.is_modern() {
            let mut peer = starts.next().await;
            let opening = expect(&mut peer, "server/discover").await;
            crate::client::refuse(&mut peer, &opening, crate::client::method_not_found()).await;
            let opening = expect(&mut peer, "initialize").await;
            answer(&mut peer, &opening, initialized(revision.as_str())).await;
            expect(&mut peer, "notifications/initialized").await;
            session = recovered.await.unwrap().unwrap();
            let call = calling(&session);
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, done()).await;
            call.await.unwrap().unwrap();
            continue;
        }
        session = recovered.await.unwrap().unwrap();
        let call = calling(&session);
        let mut peer = starts.next().await;
        let request = expect(&mut peer, "tools/call").await;
        answer(&mut peer, &request, done()).await;
        call.await.unwrap().unwrap();
    }
}

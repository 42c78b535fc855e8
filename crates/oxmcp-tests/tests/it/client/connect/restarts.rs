//! Transports that reconnect: a server that exits at the probe is started again, and its era is
//! remembered.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use oxmcp::{
    Client, ClientSession, Error, Limits, Result, Revision,
    testing::ScriptedPeer,
    transport::{InMemory, Transport},
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{answer, client, discovered, expect, initialized, method_not_found, refuse};

/// A server that can be started any number of times. Each start hands the test a [`ScriptedPeer`].
struct Startable {
    starts: mpsc::Sender<ScriptedPeer>,
    identity: Option<&'static str>,
}

impl Transport for Startable {
    type Read = <InMemory as Transport>::Read;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        let (peer, mut transport) = ScriptedPeer::new().await;
        let started = self.starts.send(peer).await;
        started.map_err(|_| Error::closed("it cannot be started any more"))?;
        transport.connect(limits).await
    }

    fn identity(&self) -> Option<String> {
        self.identity.map(Into::into)
    }
}

pub(super) type Starts = mpsc::Receiver<ScriptedPeer>;
pub(super) type Connecting = tokio::task::JoinHandle<Result<ClientSession>>;

pub(super) fn start(client: &Client, identity: Option<&'static str>) -> (Starts, Connecting) {
    let (starts, started) = mpsc::channel(1);
    let client = client.clone();
    let transport = Startable { starts, identity };
    (
        started,
        tokio::spawn(async move { client.connect(transport).await }),
    )
}

pub(super) async fn initialize(peer: &mut ScriptedPeer) {
    let request = expect(peer, "initialize").await;
    answer(peer, &request, initialized("2025-11-25")).await;
    expect(peer, "notifications/initialized").await;
}

#[tokio::test]
async fn server_exiting_at_the_probe_restarts_and_initializes() {
    let (mut starts, connecting) = start(&client(), None);
    let mut first = starts.recv().await.unwrap();
    expect(&mut first, "server/discover").await;
    drop(first);
    let mut second = starts.recv().await.unwrap();
    initialize(&mut second).await;
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(session.revision(), Revision::V2025_11_25);
}

#[tokio::test]
async fn exiting_server_is_started_at_most_twice() {
    let (mut starts, connecting) = start(&client(), Some("s"));
    drop(starts.recv().await.unwrap());
    drop(starts.recv().await.unwrap());
    assert!(connecting.await.unwrap().unwrap_err().is_closed());
    assert!(starts.recv().await.is_none());
}

#[tokio::test]
async fn server_refusing_initialize_after_probe_is_restarted() {
    for works in [true, false] {
        let client = client();
        let (mut starts, connecting) = start(&client, Some("s"));
        let mut first = starts.recv().await.unwrap();
        let already = || serde_json::json!({"code": -32603, "message": "already initialized"});
        let probe = expect(&mut first, "server/discover").await;
        refuse(&mut first, &probe, method_not_found()).await;
        let request = expect(&mut first, "initialize").await;
        refuse(&mut first, &request, already()).await;
        assert!(first.receive().await.is_err(), "it is closed first");
        let mut second = starts.recv().await.unwrap();
        if works {
            initialize(&mut second).await;
            let session = connecting.await.unwrap().unwrap();
            assert_eq!(session.revision(), Revision::V2025_11_25);
            // From now on the era of the server is known.
            let (mut starts, connecting) = start(&client, Some("s"));
            initialize(&mut starts.recv().await.unwrap()).await;
            connecting.await.unwrap().unwrap();
        } else {
            let request = expect(&mut second, "initialize").await;
            refuse(&mut second, &request, already()).await;
            let error = connecting.await.unwrap().unwrap_err();
            assert!(error.is_protocol() && error.message().contains("started twice"));
            assert!(starts.recv().await.is_none());
        }
    }
}

#[tokio::test]
async fn single_era_client_does_not_restart_the_server() {
    {
        let revision = Revision::V2025_06_18;
        let (mut starts, connecting) = start(&client().revisions([revision]), Some("s"));
        drop(starts.recv().await.unwrap());
        assert!(connecting.await.unwrap().unwrap_err().is_closed());
        assert!(starts.recv().await.is_none());
    }
}

#[tokio::test]
async fn transport_without_restart_surfaces_the_first_error() {
    let (mut starts, connecting) = start(&client(), None);
    let mut first = starts.recv().await.unwrap();
    expect(&mut first, "server/discover").await;
    starts.close();
    drop(first);
    let error = connecting.await.unwrap().unwrap_err();
    assert_eq!(error.message(), "the peer closed the connection");
}

/// Connects to a legacy server, which must be probed.
async fn find_legacy(client: &Client, identity: Option<&'static str>) {
    let (mut starts, connecting) = start(client, identity);
    let mut peer = starts.recv().await.unwrap();
    let probe = expect(&mut peer, "server/discover").await;
    refuse(&mut peer, &probe, method_not_found()).await;
    initialize(&mut peer).await;
    connecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn legacy_server_is_not_probed_again() {
    let client = client();
    find_legacy(&client, Some("s")).await;
    for _ in 0..3 {
        let (mut starts, connecting) = start(&client, Some("s"));
        initialize(&mut starts.recv().await.unwrap()).await;
        connecting.await.unwrap().unwrap();
    }
    // A clone of the client does not probe it either; other servers, unnamed servers and other clients do not share its era.
    let (mut starts, connecting) = start(&client.clone(), Some("s"));
    initialize(&mut starts.recv().await.unwrap()).await;
    connecting.await.unwrap().unwrap();
    find_legacy(&client, Some("other")).await;
    find_legacy(&client, None).await;
    find_legacy(&client, None).await;
    find_legacy(&crate::client::client(), Some("s")).await;
}

#[tokio::test]
async fn stale_legacy_era_is_detected_again() {
    let client = client();
    find_legacy(&client, Some("s")).await;
    let (mut starts, connecting) = start(&client, Some("s"));
    let mut peer = starts.recv().await.unwrap();
    let request = expect(&mut peer, "initialize").await;
    refuse(&mut peer, &request, method_not_found()).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
    assert_eq!(
        connecting.await.unwrap().unwrap().revision(),
        Revision::LATEST
    );
    // The new era counts from now on.
    let (mut starts, connecting) = start(&client, Some("s"));
    let mut peer = starts.recv().await.unwrap();
    let probe = expect(&mut peer, "server/discover").await;
    // When the new era is stale in turn, the server is found to be legacy again.
    refuse(&mut peer, &probe, method_not_found()).await;
    initialize(&mut peer).await;
    connecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn legacy_server_exiting_at_initialize_is_probed() {
    let client = client();
    find_legacy(&client, Some("s")).await;
    let (mut starts, connecting) = start(&client, Some("s"));
    let mut first = starts.recv().await.unwrap();
    expect(&mut first, "initialize").await;
    drop(first);
    let mut second = starts.recv().await.unwrap();
    let probe = expect(&mut second, "server/discover").await;
    answer(&mut second, &probe, discovered(&["2026-07-28"])).await;
    assert_eq!(
        connecting.await.unwrap().unwrap().revision(),
        Revision::LATEST
    );
}

#[tokio::test]
async fn failed_connection_does_not_change_remembered_era() {
    let client = client();
    find_legacy(&client, Some("s")).await;
    let (mut starts, connecting) = start(&client, Some("s"));
    drop(starts.recv().await.unwrap());
    drop(starts.recv().await.unwrap());
    connecting.await.unwrap().unwrap_err();
    find_legacy(&client, Some("s")).await;
}

#[tokio::test]
async fn pinned_session_does_not_set_the_remembered_era() {
    let client = client().revisions([Revision::V2025_11_25]);
    let (mut starts, connecting) = start(&client, Some("s"));
    initialize(&mut starts.recv().await.unwrap()).await;
    connecting.await.unwrap().unwrap();
    find_legacy(&client.revisions(Revision::ALL), Some("s")).await;
}

#[test]
fn command_is_identified_by_program_arguments_and_directory() {
    use oxmcp::{Command, transport::Logging};
    let command = || Command::new("server").arg("--stdio");
    let identity = command().identity().unwrap();
    assert_eq!(
        command().env("TOKEN", "secret").identity().unwrap(),
        identity
    );
    assert_ne!(command().arg("-v").identity().unwrap(), identity);
    assert_ne!(command().current_dir("/").identity().unwrap(), identity);
    assert_ne!(
        Command::new("other").arg("--stdio").identity().unwrap(),
        identity
    );
    assert_eq!(
        Logging::with(command(), |_| {}).identity().unwrap(),
        identity
    );
    assert_eq!(oxmcp::in_memory().0.identity(), None);
}

#[tokio::test]
async fn outgoing_middleware_sees_every_message() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let count = Arc::new(AtomicUsize::new(0));
    let (log, counted) = (Arc::clone(&seen), Arc::clone(&count));
    let client = client().outgoing_layer(oxmcp::middleware::from_fn(
        move |request: oxmcp::middleware::Request, next: oxmcp::middleware::Next| {
            log.lock().unwrap().push(request.method().to_owned());
            counted.fetch_add(1, Ordering::Relaxed);
            async move { next.run(request).await }
        },
    ));
    find_legacy(&client, None).await;
    let seen: Value = seen.lock().unwrap().clone().into();
    assert_eq!(
        seen,
        serde_json::json!(["server/discover", "initialize", "notifications/initialized"])
    );
    assert_eq!(count.load(Ordering::Relaxed), 3);
}

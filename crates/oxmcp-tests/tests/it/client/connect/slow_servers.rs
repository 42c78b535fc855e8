//! Discovery of servers that answer late or never.

use std::time::Duration;

use oxmcp::{
    Limits, Revision,
    testing::ScriptedPeer,
    transport::{InMemory, Startup, Transport},
};
use serde_json::json;
use tokio::time::Instant;

use crate::client::{
    answer, client,
    connect::negotiation::{legacy, unsupported},
    connecting, discovered, expect, initialized, method_not_found, refuse,
};

#[tokio::test(start_paused = true)]
async fn silent_server_is_initialized_after_the_probe_timeout() {
    for patience in [5, 2] {
        let start = Instant::now();
        let client = client().probe_timeout(Duration::from_secs(patience));
        let (mut peer, connecting) = connecting(client).await;
        expect(&mut peer, "server/discover").await;
        let request = expect(&mut peer, "initialize").await;
        assert_eq!(start.elapsed(), Duration::from_secs(patience));
        answer(&mut peer, &request, initialized("2024-11-05")).await;
        let session = connecting.await.unwrap().unwrap();
        assert_eq!(legacy(&session), "2024-11-05");
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_error_names_the_client_setting() {
    let (mut peer, connecting) = connecting(client()).await;
    expect(&mut peer, "server/discover").await;
    expect(&mut peer, "initialize").await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.message().contains("Client::timeout"), "{error}");
    assert!(!error.message().contains("cancelled"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn late_answer_to_the_probe_still_wins() {
    let (mut peer, connecting) = connecting(client()).await;
    let probe = expect(&mut peer, "server/discover").await;
    let request = expect(&mut peer, "initialize").await;
    answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(session.revision(), Revision::LATEST);
    // The late answer to `initialize` is ignored and opens no session.
    answer(&mut peer, &request, initialized("2025-11-25")).await;
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, json!({"content": []})).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn late_refusal_of_the_probe_changes_nothing() {
    for error in [method_not_found(), json!({"code": -32021, "message": "no"})] {
        let (mut peer, connecting) = connecting(client()).await;
        let probe = expect(&mut peer, "server/discover").await;
        let request = expect(&mut peer, "initialize").await;
        refuse(&mut peer, &probe, error).await;
        answer(&mut peer, &request, initialized("2025-11-25")).await;
        assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2025-11-25");
    }
}

#[tokio::test(start_paused = true)]
async fn client_waits_for_slow_server_that_refuses_initialize() {
    for error in [
        method_not_found(),
        json!({"code": -32602, "message": "_meta?"}),
        unsupported(&["2099-01-01"]),
    ] {
        let (mut peer, connecting) = connecting(client()).await;
        let probe = expect(&mut peer, "server/discover").await;
        let request = expect(&mut peer, "initialize").await;
        refuse(&mut peer, &request, error).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
        assert_eq!(
            connecting.await.unwrap().unwrap().revision(),
            Revision::LATEST
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slow_modern_server_naming_its_revision_is_retried() {
    let (mut peer, connecting) = connecting(client()).await;
    expect(&mut peer, "server/discover").await;
    let request = expect(&mut peer, "initialize").await;
    refuse(&mut peer, &request, unsupported(&["2026-07-28"])).await;
    let again = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &again, discovered(&["2026-07-28"])).await;
    assert_eq!(
        connecting.await.unwrap().unwrap().revision(),
        Revision::LATEST
    );
}

#[tokio::test(start_paused = true)]
async fn silent_server_fails_within_a_bounded_time() {
    let start = Instant::now();
    let (mut peer, connecting) = connecting(client().timeout(Duration::from_secs(20))).await;
    expect(&mut peer, "server/discover").await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(
        start.elapsed() <= Duration::from_secs(26),
        "{:?}",
        start.elapsed()
    );

    let start = Instant::now();
    let (peer, connecting) =
        crate::client::connecting(client().revisions([Revision::V2025_06_18])).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    drop(peer);
}

/// A transport with a diagnosis of its server.
struct Known(InMemory);

impl Transport for Known {
    type Read = <InMemory as Transport>::Read;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(Self::Read, Self::Write)> {
        self.0.connect(limits).await
    }

    fn diagnosis(&self) -> Option<String> {
        Some("it sings".into())
    }
}

/// A transport of a server that was started, and gives a sign of life each 4 seconds until it is ready.
struct Starting(InMemory, Instant);

impl Transport for Starting {
    type Read = <InMemory as Transport>::Read;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> oxmcp::Result<(Self::Read, Self::Write)> {
        self.0.connect(limits).await
    }

    fn startup(&self) -> Option<Startup> {
        let started = self.1;
        Some(Startup::new(Duration::from_secs(5), move || {
            let signs = (started.elapsed().as_secs() / 4).min(3);
            started + Duration::from_secs(4 * signs)
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_extend_the_start_timeout() {
    let (_silent, transport) = ScriptedPeer::new().await;
    let started = Instant::now();
    let error = client().connect(Starting(transport, started)).await;
    assert!(error.unwrap_err().is_timeout());
    assert_eq!(started.elapsed(), Duration::from_secs(12 + 5));
}

#[tokio::test(start_paused = true)]
async fn silent_server_error_reports_known_facts() {
    let (_silent, transport) = ScriptedPeer::new().await;
    let error = client().connect(Known(transport)).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.to_string().ends_with("\nit sings"), "{error}");
}

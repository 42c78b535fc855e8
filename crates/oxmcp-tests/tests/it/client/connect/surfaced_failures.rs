//! Discovery over transports that answer each request separately: failures that do not tell the era are surfaced.

use std::time::Duration;

use oxmcp::{CacheMode, ClientSession, Error, Result, Revision, testing::ScriptedPeer};
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};

use crate::client::{
    answer,
    answers_each::{self, connecting},
    client,
    connect::negotiation::{legacy, unsupported},
    discovered, expect, initialized, method_not_found, refuse,
    requests::mirrored_headers::{list, session_of, tool},
    soon,
};

async fn failed(mut peer: ScriptedPeer, connecting: JoinHandle<Result<ClientSession>>) -> Error {
    let error = connecting.await.unwrap().unwrap_err();
    // No other request was tried, and the connection is closed.
    loop {
        match peer.receive().await {
            Ok(message) => assert_eq!(message["method"], "notifications/cancelled", "{message}"),
            Err(_) => return error,
        }
    }
}

async fn open(peer: &mut ScriptedPeer) {
    let request = expect(peer, "initialize").await;
    answer(peer, &request, initialized("2025-11-25")).await;
    expect(peer, "notifications/initialized").await;
}

#[tokio::test(start_paused = true)]
async fn silent_server_is_initialized_over_http_too() {
    let client = client().timeout(Duration::from_secs(30));
    let start = Instant::now();
    let (mut peer, _way, connecting) = connecting(client.clone(), None).await;
    expect(&mut peer, "server/discover").await;
    let request = expect(&mut peer, "initialize").await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    answer(&mut peer, &request, initialized("2025-11-25")).await;
    // The probe ends.
    expect(&mut peer, "notifications/cancelled").await;
    expect(&mut peer, "notifications/initialized").await;
    assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2025-11-25");
    // A server that answers nothing at all is an error.
    let (mut peer, _way, connecting) = answers_each::connecting(client, None).await;
    expect(&mut peer, "server/discover").await;
    expect(&mut peer, "initialize").await;
    let error = failed(peer, connecting).await;
    assert!(error.is_timeout(), "{error}");
}

#[tokio::test]
async fn network_failure_is_surfaced() {
    for error in [
        || Error::unreachable("no such host"),
        || Error::network("cut off"),
    ] {
        let (mut peer, way, connecting) = connecting(client(), None).await;
        let probe = expect(&mut peer, "server/discover").await;
        way.fail(&probe, error()).await;
        let told = failed(peer, connecting).await;
        assert!(told.is_network(), "{told}");
        assert_eq!(told.message(), error().message());
    }
}

#[tokio::test]
async fn connection_lost_at_the_probe_is_not_reopened() {
    let (mut peer, _way, connecting) = connecting(client(), None).await;
    expect(&mut peer, "server/discover").await;
    drop(peer);
    let error = connecting.await.unwrap().unwrap_err();
    assert_eq!(error.message(), "the peer closed the connection");
}

#[tokio::test]
async fn any_other_answer_falls_back_to_initialize() {
    for error in [
        method_not_found(),
        json!({"code": -32000, "message": "Bad Request: Server not initialized"}),
        unsupported(&["2025-06-18"]),
    ] {
        let (mut peer, _way, connecting) = connecting(client(), None).await;
        let probe = expect(&mut peer, "server/discover").await;
        refuse(&mut peer, &probe, error).await;
        open(&mut peer).await;
        assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2025-11-25");
    }
}

/// The nodes of a server may run different versions.
#[tokio::test]
async fn refused_version_the_server_names_is_retried_once() {
    for is_given_up in [false, true] {
        let (mut peer, _way, connecting) = connecting(client(), None).await;
        let probe = expect(&mut peer, "server/discover").await;
        refuse(&mut peer, &probe, unsupported(&["2026-07-28"])).await;
        let probe = expect(&mut peer, "server/discover").await;
        if is_given_up {
            refuse(&mut peer, &probe, unsupported(&["2026-07-28"])).await;
            assert_eq!(failed(peer, connecting).await.code().value(), -32022);
        } else {
            answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
            let session = connecting.await.unwrap().unwrap();
            assert_eq!(session.revision(), Revision::LATEST);
        }
    }
}

#[tokio::test]
async fn missing_headers_error_suggests_a_proxy() {
    let (mut peer, _way, connecting) = connecting(client(), None).await;
    let probe = expect(&mut peer, "server/discover").await;
    let error = json!({"code": -32020, "message": "Mcp-Method is missing", "data": {"x": 1}});
    refuse(&mut peer, &probe, error).await;
    let error = failed(peer, connecting).await;
    assert_eq!(error.code().value(), -32020);
    assert_eq!(error.data().unwrap().get(), r#"{"x":1}"#);
    for words in ["Mcp-Method is missing", "proxy"] {
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test]
async fn pinned_revision_surfaces_the_servers_answer() {
    let client = client().revisions([Revision::LATEST]);
    let (mut peer, _way, connecting) = connecting(client, None).await;
    let session = connecting.await.unwrap().unwrap();
    let listing = tokio::spawn(session.tools().all());
    let asked = expect(&mut peer, "server/discover").await;
    let error = json!({"code": -32000, "message": "use the other door"});
    refuse(&mut peer, &asked, error).await;
    let error = listing.await.unwrap().unwrap_err();
    assert!(error.message().contains("use the other door"), "{error}");
}

#[tokio::test]
async fn failure_keeps_the_remembered_era() {
    let client = client();
    let (mut peer, _way, opening) = connecting(client.clone(), Some("s")).await;
    let probe = expect(&mut peer, "server/discover").await;
    refuse(&mut peer, &probe, method_not_found()).await;
    open(&mut peer).await;
    opening.await.unwrap().unwrap();
    // The network is down for a while.
    let (mut peer, way, opening) = connecting(client.clone(), Some("s")).await;
    let request = expect(&mut peer, "initialize").await;
    way.fail(&request, Error::unreachable("no such host")).await;
    assert!(failed(peer, opening).await.is_network());
    // The era of the server is still known.
    let (mut peer, _way, opening) = connecting(client.clone(), Some("s")).await;
    open(&mut peer).await;
    opening.await.unwrap().unwrap();
    // It is known until the server answers differently.
    let (mut peer, _way, opening) = connecting(client, Some("s")).await;
    let request = expect(&mut peer, "initialize").await;
    refuse(&mut peer, &request, method_not_found()).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
    assert_eq!(opening.await.unwrap().unwrap().revision(), Revision::LATEST);
}

#[tokio::test(start_paused = true)]
async fn two_failed_pings_end_the_session() {
    let interval = Duration::from_secs(30);
    let client = client()
        .revisions([Revision::V2025_11_25])
        .keep_alive(interval);
    let (mut peer, way, connecting) = connecting(client, None).await;
    open(&mut peer).await;
    let session = connecting.await.unwrap().unwrap();
    let lost = || Error::network("cut off");
    for _ in 0..3 {
        let ping = expect(&mut peer, "ping").await;
        way.fail(&ping, lost()).await;
        let ping = expect(&mut peer, "ping").await;
        answer(&mut peer, &ping, json!({})).await;
    }
    for _ in 0..2 {
        let ping = expect(&mut peer, "ping").await;
        way.fail(&ping, lost()).await;
    }
    let error = soon("end of the session", session.wait())
        .await
        .unwrap_err();
    assert!(error.message().contains("ping"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn stale_answer_is_used_while_server_is_unreachable() {
    let (mut peer, way, session) = session_of(&client()).await;
    list(&mut peer, &session, &[tool("run", &json!("Region"))]).await;
    tokio::time::advance(Duration::from_secs(61)).await;
    let listed = tokio::spawn(session.tools().all());
    let request = expect(&mut peer, "tools/list").await;
    way.fail(&request, Error::unreachable("no such host")).await;
    assert_eq!(listed.await.unwrap().unwrap().len(), 1);
    let listed = tokio::spawn(session.tools().cache(CacheMode::Refresh).all());
    let request = expect(&mut peer, "tools/list").await;
    way.fail(&request, Error::unreachable("no such host")).await;
    assert!(listed.await.unwrap().unwrap_err().is_network());
}

#[tokio::test(start_paused = true)]
async fn watchers_get_the_original_error() {
    let client = client().revisions(crate::client::asking(Revision::LATEST));
    let (mut peer, way, connecting) = connecting(client, None).await;
    let probe = expect(&mut peer, "server/discover").await;
    let mut found = discovered(&["2026-07-28"]);
    found["capabilities"] = json!({"resources": {"subscribe": true}});
    answer(&mut peer, &probe, found).await;
    let session = connecting.await.unwrap().unwrap();
    let watched = session.clone();
    let watch = tokio::spawn(async move { watched.watch_resource("file:///a").await });
    let request = expect(&mut peer, "subscriptions/listen").await;
    way.fail(&request, Error::network("cut off")).await;
    let error = soon("answer", watch).await.unwrap().unwrap_err();
    assert!(error.is_network() && !error.is_closed(), "{error}");
}

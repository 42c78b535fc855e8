//! Negotiation of the revision with servers of every kind.

use oxmcp::{ClientSession, FeatureKind, Revision, Server, in_memory, testing::ScriptedPeer};
use serde_json::{Value, json};

use crate::client::{
    answer, calling, client, connecting, discovered, done, expect, initialized, refuse,
};
use crate::support::{LEGACY, calculator};

pub(crate) fn unsupported(versions: &[&str]) -> Value {
    json!({"code": -32022, "message": "unsupported", "data": {"supported": versions, "requested": "2026-07-28"}})
}

/// Answers `initialize`, and receives `initialized`.
async fn open(peer: &mut ScriptedPeer, version: &str) {
    let request = expect(peer, "initialize").await;
    answer(peer, &request, initialized(version)).await;
    expect(peer, "notifications/initialized").await;
}

pub(crate) fn legacy(session: &ClientSession) -> &'static str {
    assert!(!session.revision().is_modern());
    session.revision().as_str()
}

#[tokio::test]
async fn modern_server_is_probed_once() {
    let (mut peer, connecting) = connecting(client().title("Tester")).await;
    let probe = expect(&mut peer, "server/discover").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "title": "Tester", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert_eq!(probe["params"]["_meta"], meta);
    let mut result = discovered(&["2099-01-01", "2026-07-28", "2025-11-25"]);
    result["instructions"] = "be kind".into();
    result["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "9"}});
    answer(&mut peer, &probe, result).await;
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(session.revision(), Revision::LATEST);
    assert_eq!(session.server_info().unwrap().name, "s");
    assert_eq!(session.instructions(), Some("be kind"));
    assert!(session.server_capabilities().tools.is_some());

    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["_meta"], meta);
    answer(
        &mut peer,
        &request,
        json!({"resultType": "complete", "content": []}),
    )
    .await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn legacy_server_is_recognized_by_any_other_error() {
    for code in [-32601, -32602, -32600, -32000, -32603, 0, 404] {
        let (mut peer, connecting) = connecting(client()).await;
        let probe = expect(&mut peer, "server/discover").await;
        refuse(&mut peer, &probe, json!({"code": code, "message": "what?"})).await;
        open(&mut peer, "2025-11-25").await;
        let session = connecting.await.unwrap().unwrap();
        assert_eq!(legacy(&session), "2025-11-25", "{code}");
    }
}

#[tokio::test]
async fn nonsensical_probe_answer_falls_back_to_initialize() {
    for result in [
        json!({}),
        json!(null),
        json!("pong"),
        json!({"supportedVersions": "2026-07-28"}),
        json!([1]),
    ] {
        let (mut peer, connecting) = connecting(client().strict()).await;
        let probe = expect(&mut peer, "server/discover").await;
        answer(&mut peer, &probe, result.clone()).await;
        open(&mut peer, "2025-06-18").await;
        assert_eq!(
            legacy(&connecting.await.unwrap().unwrap()),
            "2025-06-18",
            "{result}"
        );
    }
}

#[tokio::test]
async fn errors_of_modern_servers_are_surfaced() {
    for code in [-32020, -32021] {
        let (mut peer, connecting) = connecting(client()).await;
        let probe = expect(&mut peer, "server/discover").await;
        refuse(
            &mut peer,
            &probe,
            json!({"code": code, "message": "capability", "data": {"x": 1}}),
        )
        .await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.code().value(), code);
        assert_eq!(error.message(), "capability");
        assert_eq!(error.data().unwrap().get(), r#"{"x":1}"#);
        // No other request was tried, and the connection is closed.
        let next = peer.receive().await;
        assert!(next.is_err(), "{next:?}");
    }
}

#[tokio::test]
async fn unsupported_modern_revision_falls_back_to_initialize() {
    let (mut peer, connecting) = connecting(client()).await;
    let probe = expect(&mut peer, "server/discover").await;
    refuse(
        &mut peer,
        &probe,
        unsupported(&["2024-11-05", "2025-06-18"]),
    )
    .await;
    open(&mut peer, "2025-06-18").await;
    assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2025-06-18");
}

#[tokio::test]
async fn unsupported_without_common_version_ends_negotiation() {
    for data in [
        json!({"supported": ["2099-01-01"], "requested": "2026-07-28"}),
        json!({"supported": []}),
        json!(null),
    ] {
        let (mut peer, connecting) = connecting(client()).await;
        let probe = expect(&mut peer, "server/discover").await;
        refuse(
            &mut peer,
            &probe,
            json!({"code": -32022, "message": "no", "data": data}),
        )
        .await;
        let error = connecting.await.unwrap().unwrap_err();
        assert_eq!(error.code().value(), -32022, "{error}");
        assert!(peer.receive().await.is_err());
    }
}

#[tokio::test]
async fn missing_common_version_error_names_server_versions() {
    let (mut peer, connecting) = connecting(client()).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, discovered(&["2099-01-01", "2100-01-01"])).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.is_unsupported());
    for word in ["2099-01-01", "2100-01-01", "2026-07-28", "2024-11-05"] {
        assert!(error.message().contains(word), "{word} is not in {error}");
    }
}

#[tokio::test]
async fn discovery_of_legacy_revisions_falls_back_to_initialize() {
    let (mut peer, connecting) = connecting(client()).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, discovered(&["2025-06-18"])).await;
    open(&mut peer, "2025-06-18").await;
    assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2025-06-18");
}

#[tokio::test]
async fn initialize_accepts_any_supported_version() {
    for version in LEGACY {
        let (mut peer, connecting) = connecting(client().revisions(LEGACY)).await;
        let request = expect(&mut peer, "initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2025-11-25");
        answer(&mut peer, &request, initialized(version.as_str())).await;
        expect(&mut peer, "notifications/initialized").await;
        assert_eq!(connecting.await.unwrap().unwrap().revision(), version);
    }
}

#[tokio::test]
async fn initialize_with_unsupported_version_ends_the_handshake() {
    for version in ["2099-01-01", "2026-07-28", "", "2025-03-26"] {
        let ours = [Revision::V2025_11_25, Revision::V2024_11_05];
        let (mut peer, connecting) = connecting(client().revisions(ours)).await;
        let request = expect(&mut peer, "initialize").await;
        answer(&mut peer, &request, initialized(version)).await;
        let error = connecting.await.unwrap().unwrap_err();
        assert!(error.is_unsupported());
        assert!(
            error.message().contains(version) && error.message().contains("2025-11-25"),
            "{error}"
        );
        assert!(peer.receive().await.is_err(), "nothing more is sent");
    }
}

#[tokio::test]
async fn initialize_is_retried_once_with_the_servers_version() {
    let (mut peer, connecting) = connecting(client().revisions(LEGACY)).await;
    let request = expect(&mut peer, "initialize").await;
    let error = json!({"code": -32602, "message": "Unsupported protocol version", "data": {"supported": ["2024-11-05"], "requested": "2025-11-25"}});
    refuse(&mut peer, &request, error.clone()).await;
    let request = expect(&mut peer, "initialize").await;
    assert_eq!(request["params"]["protocolVersion"], "2024-11-05");
    answer(&mut peer, &request, initialized("2024-11-05")).await;
    assert_eq!(legacy(&connecting.await.unwrap().unwrap()), "2024-11-05");

    let (mut peer, connecting) = crate::client::connecting(client().revisions(LEGACY)).await;
    for _ in 0..2 {
        let request = expect(&mut peer, "initialize").await;
        refuse(&mut peer, &request, error.clone()).await;
    }
    assert!(connecting.await.unwrap().unwrap_err().is_protocol());
}

#[tokio::test]
async fn refused_or_garbled_initialize_is_reported() {
    let (mut peer, connecting) = connecting(client().revisions(LEGACY)).await;
    let request = expect(&mut peer, "initialize").await;
    refuse(
        &mut peer,
        &request,
        json!({"code": -32000, "message": "license expired"}),
    )
    .await;
    assert_eq!(
        connecting.await.unwrap().unwrap_err().message(),
        "license expired"
    );

    let (mut peer, connecting) = crate::client::connecting(client().revisions(LEGACY)).await;
    let request = expect(&mut peer, "initialize").await;
    answer(&mut peer, &request, json!({"capabilities": {}})).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.message().contains("initialize"), "{error}");
}

#[tokio::test]
async fn pinned_revision_is_the_only_one_used() {
    for revision in Revision::ALL {
        let (mut peer, connecting) = connecting(client().revisions([revision])).await;
        if revision.is_modern() {
            // A client with a single modern revision does not probe.
            let session = connecting.await.unwrap().unwrap();
            assert_eq!(session.revision(), revision);
            let call = calling(&session);
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, done()).await;
            call.await.unwrap().unwrap();
            assert!(session.discovered().is_none());
        } else {
            let request = expect(&mut peer, "initialize").await;
            assert_eq!(request["params"]["protocolVersion"], revision.as_str());
            answer(&mut peer, &request, initialized(revision.as_str())).await;
            expect(&mut peer, "notifications/initialized").await;
            assert_eq!(connecting.await.unwrap().unwrap().revision(), revision);
        }
    }
}

#[tokio::test]
async fn discovery_in_pinned_session_records_server_info() {
    for pings in [false, true] {
        let (mut peer, connecting) = connecting(client().revisions([Revision::LATEST])).await;
        let session = connecting.await.unwrap().unwrap();
        assert!(session.server_info().is_none());
        let asking = session.clone();
        let discovering = tokio::spawn(async move {
            match pings {
                true => asking.ping().await,
                false => asking.discover().await.map(drop),
            }
        });
        let request = expect(&mut peer, "server/discover").await;
        let mut found = discovered(&["2026-07-28"]);
        found["_meta"] =
            json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}});
        found["capabilities"] = json!({"tools": {}});
        answer(&mut peer, &request, found).await;
        discovering.await.unwrap().unwrap();
        assert_eq!(session.server_info().unwrap().name, "s");
        assert!(session.server_capabilities().tools.is_some());
        assert!(session.discovered().is_some());
    }
}

#[tokio::test]
async fn client_without_revisions_is_a_named_mistake() {
    let (_peer, connecting) = connecting(client().revisions([])).await;
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.message().contains("at least one revision"), "{error}");
}

#[tokio::test]
async fn immediately_closing_server_is_reported() {
    for revisions in [
        Revision::ALL.to_vec(),
        LEGACY.to_vec(),
        crate::client::asking(Revision::LATEST),
    ] {
        let (peer, connecting) = connecting(client().revisions(revisions)).await;
        drop(peer);
        let error = connecting.await.unwrap().unwrap_err();
        assert!(error.is_closed(), "{error}");
    }
}

#[tokio::test]
async fn unparsable_lines_appear_in_the_disconnect_error() {
    let (mut peer, connecting) = connecting(client()).await;
    expect(&mut peer, "server/discover").await;
    peer.send_line("Usage: server [--stdio]").await.unwrap();
    drop(peer);
    let error = connecting.await.unwrap().unwrap_err();
    assert!(error.message().contains("Usage: server"), "{error}");
}

#[tokio::test]
async fn unparsable_lines_are_skipped() {
    let (mut peer, connecting) = connecting(client()).await;
    let probe = expect(&mut peer, "server/discover").await;
    for line in [
        "starting…",
        "{\"level\": \"info\"}",
        "[]",
        "\u{feff}",
        "{\"jsonrpc\": \"2.0\", \"id\": 77, \"result\": {}}",
    ] {
        peer.send_line(line).await.unwrap();
    }
    answer(&mut peer, &probe, discovered(&["2026-07-28"])).await;
    connecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn dropping_connect_closes_the_connection() {
    let (mut peer, connecting) = connecting(client()).await;
    expect(&mut peer, "server/discover").await;
    connecting.abort();
    // The pending probe is cancelled first.
    expect(&mut peer, "notifications/cancelled").await;
    assert!(peer.receive().await.is_err());

    let (mut peer, connecting) = crate::client::connecting(client().revisions(LEGACY)).await;
    expect(&mut peer, "initialize").await;
    connecting.abort();
    assert!(
        peer.receive().await.is_err(),
        "initialize is never cancelled"
    );
}

#[tokio::test]
async fn client_and_server_agree_on_newest_common_revision() {
    let sets: Vec<Vec<Revision>> = (1u8..32)
        .map(|bits| {
            Revision::ALL
                .into_iter()
                .enumerate()
                .filter(|(index, _)| bits >> index & 1 == 1)
                .map(|(_, it)| it)
                .collect()
        })
        .collect();
    for theirs in &sets {
        let server: Server = calculator().revisions(theirs.iter().copied());
        for ours in &sets {
            let (near, far) = in_memory();
            server.connect(far).await.unwrap();
            let connected = client().revisions(ours.iter().copied()).connect(near).await;
            if *ours == [Revision::LATEST] {
                // This client does not probe.
                assert_eq!(connected.unwrap().revision(), Revision::LATEST);
                continue;
            }
            // A legacy client offers only its newest revision, and accepts the revision that the server chooses.
            let common = ours.iter().copied().filter(|it| theirs.contains(it)).max();
            let both_modern = common.is_some_and(Revision::is_modern);
            let newest = |set: &[Revision]| set.iter().copied().filter(|it| !it.is_modern()).max();
            let legacy = newest(ours).and_then(|asked| {
                let offered = if theirs.contains(&asked) {
                    Some(asked)
                } else {
                    newest(theirs)
                };
                offered.filter(|it| ours.contains(it))
            });
            let expected = if both_modern { common } else { legacy };
            match (connected, expected) {
                (Ok(session), Some(expected)) => assert_eq!(session.revision(), expected),
                (Err(_), None) => {}
                (connected, expected) => {
                    panic!("{ours:?} and {theirs:?}: {connected:?}, not {expected:?}")
                }
            }
        }
    }
}

#[tokio::test]
async fn capabilities_are_requested_once_on_demand() {
    let pinned = client().revisions([Revision::LATEST]);
    let (mut peer, opening) = connecting(pinned.clone()).await;
    let session = opening.await.unwrap().unwrap();
    let listing = tokio::spawn(session.prompts().all());
    let request = expect(&mut peer, "server/discover").await;
    let asking = session.clone();
    let offers = tokio::spawn(async move { asking.offers(FeatureKind::Tools).await });
    tokio::task::yield_now().await;
    let mut found = discovered(&["2026-07-28"]);
    found["capabilities"] = json!({"tools": {}});
    answer(&mut peer, &request, found).await;
    // A feature that the server does not have is not listed.
    assert!(listing.await.unwrap().unwrap().is_empty());
    assert!(offers.await.unwrap().unwrap());
    assert!(!session.offers(FeatureKind::Prompts).await.unwrap());
    assert!(session.server_capabilities().tools.is_some());
    let saved = session.discovered().unwrap().clone();
    assert_eq!(saved.supported_versions, ["2026-07-28"]);

    // With the saved result no probe is sent, not even by a client that supports other revisions.
    for client in [pinned, client()] {
        let (mut peer, opening) = connecting(client.discovered(saved.clone())).await;
        let session = opening.await.unwrap().unwrap();
        assert_eq!(session.revision(), Revision::LATEST);
        assert!(session.prompts().all().await.unwrap().is_empty());
        assert!(session.discovered().is_some());
        let listing = tokio::spawn(session.tools().all());
        let request = expect(&mut peer, "tools/list").await;
        answer(&mut peer, &request, json!({"tools": []})).await;
        listing.await.unwrap().unwrap();
    }
    // A saved result that has no revision of the client is not used.
    let old = client().revisions([Revision::V2025_06_18]);
    let (mut peer, _opening) = connecting(old.discovered(saved)).await;
    expect(&mut peer, "initialize").await;
}

#[tokio::test(start_paused = true)]
async fn change_handlers_may_ask_in_the_background() {
    let pinned = client()
        .revisions([Revision::LATEST])
        .on_tools_changed(|_| async {});
    let (mut peer, opening) = connecting(pinned).await;
    let _session = opening.await.unwrap().unwrap();
    let request = expect(&mut peer, "server/discover").await;
    let mut found = discovered(&["2026-07-28"]);
    found["capabilities"] = json!({"tools": {"listChanged": true}});
    answer(&mut peer, &request, found).await;
    expect(&mut peer, "subscriptions/listen").await;
}

#[tokio::test]
async fn request_is_retried_once_with_the_named_revision() {
    let (mut peer, opening) = connecting(client().revisions([Revision::LATEST])).await;
    let session = opening.await.unwrap().unwrap();
    let own: &[&str] = &["2026-07-28", "2025-11-25"];
    for (supported, refusals, works) in
        [(own, 1, true), (own, 2, false), (&["2025-11-25"], 1, false)]
    {
        let call = calling(&session);
        for _ in 0..refusals {
            let request = expect(&mut peer, "tools/call").await;
            refuse(&mut peer, &request, unsupported(supported)).await;
        }
        if works {
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, done()).await;
        }
        match call.await.unwrap() {
            Ok(_) => assert!(works),
            Err(error) => assert!(!works && error.code().value() == -32022, "{error}"),
        }
    }
}

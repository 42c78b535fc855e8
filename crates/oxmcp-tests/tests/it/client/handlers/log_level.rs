//! The lowest level of the logs that a client requests from a server, in every revision.

use std::time::Duration;

use oxmcp::{
    Client, ClientSession, Revision,
    protocol::{LoggingLevel, PaginatedParams},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{
    answer, calling, client, connecting, discovered, done, expect, initialized, refuse, session_of,
};
use crate::support::LEGACY;

const LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The log level in the `_meta` of the next call.
async fn level(peer: &mut ScriptedPeer, session: &ClientSession) -> Value {
    let call = calling(session);
    let request = expect(peer, "tools/call").await;
    answer(peer, &request, done()).await;
    call.await.unwrap().unwrap();
    request["params"]["_meta"][LEVEL].clone()
}

#[tokio::test(start_paused = true)]
async fn legacy_server_gets_one_set_level_request() {
    for revision in LEGACY {
        let (mut peer, session, _) = session_of(client(), revision).await;
        let setting = tokio::spawn({
            let session = session.clone();
            async move { session.set_log_level(LoggingLevel::Warning).await }
        });
        let request = expect(&mut peer, "logging/setLevel").await;
        assert_eq!(request["params"], json!({"level": "warning"}));
        answer(&mut peer, &request, json!({})).await;
        setting.await.unwrap().unwrap();
        assert_eq!(level(&mut peer, &session).await, Value::Null, "{revision}");
        // The level of a single call is not sent to a legacy server.
        let call = session.call_tool("t", ()).log_level(LoggingLevel::Debug);
        let call = tokio::spawn(async move { call.await });
        let request = expect(&mut peer, "tools/call").await;
        assert_eq!(request["params"], json!({"name": "t"}), "{revision}");
        call.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn modern_server_gets_the_level_with_each_request() {
    let client = client().log_level(LoggingLevel::Info);
    let (mut peer, session, _) = session_of(client, Revision::LATEST).await;
    assert_eq!(level(&mut peer, &session).await, "info");
    session
        .set_log_level(LoggingLevel::Emergency)
        .await
        .unwrap();
    assert_eq!(level(&mut peer, &session).await, "emergency");

    let listing = session.list_tools(PaginatedParams::default());
    let listing = tokio::spawn(async move { listing.await });
    let request = expect(&mut peer, "tools/list").await;
    assert_eq!(request["params"]["_meta"][LEVEL], "emergency");
    listing.abort();
    expect(&mut peer, "notifications/cancelled").await;

    // A call's own level has precedence.
    let own = session.call_tool("t", ()).log_level(LoggingLevel::Debug);
    let own = tokio::spawn(async move { own.await });
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["_meta"][LEVEL], "debug");
    own.abort();
}

#[tokio::test(start_paused = true)]
async fn client_without_log_level_sends_none() {
    let (mut peer, session, _) = session_of(client(), Revision::LATEST).await;
    assert_eq!(level(&mut peer, &session).await, Value::Null);
    let own = session.call_tool("t", ()).log_level(LoggingLevel::Notice);
    let own = tokio::spawn(async move { own.await });
    let request = expect(&mut peer, "tools/call").await;
    assert_eq!(request["params"]["_meta"][LEVEL], "notice");
    own.abort();
}

/// A legacy server with these capabilities.
async fn opened(client: Client, capabilities: Value) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) = connecting(client.revisions([Revision::V2025_11_25])).await;
    let opening = expect(&mut peer, "initialize").await;
    let server = json!({"name": "scripted", "version": "1"});
    let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server});
    answer(&mut peer, &opening, result).await;
    expect(&mut peer, "notifications/initialized").await;
    (peer, connecting.await.unwrap().unwrap())
}

#[tokio::test(start_paused = true)]
async fn clients_log_level_applies_from_session_start() {
    let client = client().log_level(LoggingLevel::Error);
    let opening = async |answered: Option<bool>| {
        let client = client.clone().revisions([Revision::V2025_11_25]);
        let (mut peer, mut connecting) = connecting(client).await;
        let opening = expect(&mut peer, "initialize").await;
        let mut result = initialized("2025-11-25");
        result["capabilities"] = json!({"logging": {}});
        answer(&mut peer, &opening, result).await;
        expect(&mut peer, "notifications/initialized").await;
        let request = expect(&mut peer, "logging/setLevel").await;
        assert_eq!(request["params"], json!({"level": "error"}));
        let early = timeout(Duration::from_millis(900), &mut connecting).await;
        assert!(early.is_err(), "it waits for the answer");
        match answered {
            Some(true) => answer(&mut peer, &request, json!({})).await,
            Some(false) => {
                let error = json!({"code": -32603, "message": "no"});
                refuse(&mut peer, &request, error).await;
            }
            // The connection does not wait much longer for a server that never answers.
            None => {}
        }
        let session = timeout(Duration::from_millis(200), connecting).await;
        (peer, session.unwrap().unwrap().unwrap())
    };
    for answered in [Some(true), Some(false), None] {
        let (mut peer, session) = opening(answered).await;
        assert_eq!(level(&mut peer, &session).await, Value::Null);
    }
    // A server without logging is sent no level.
    let (mut peer, session) = opened(client.clone(), json!({})).await;
    assert_eq!(level(&mut peer, &session).await, Value::Null);
}

/// Subscriptions carry no logs, so they request no level.
#[tokio::test(start_paused = true)]
async fn subscription_requests_no_log_level() {
    let client = client()
        .log_level(LoggingLevel::Info)
        .on_tools_changed(|_| async {});
    let (mut peer, connecting) =
        connecting(client.revisions(crate::client::asking(Revision::LATEST))).await;
    let probe = expect(&mut peer, "server/discover").await;
    let mut found = discovered(&["2026-07-28"]);
    found["capabilities"] = json!({"tools": {"listChanged": true}, "logging": {}});
    answer(&mut peer, &probe, found).await;
    let listen = expect(&mut peer, "subscriptions/listen").await;
    assert_eq!(listen["params"]["_meta"][LEVEL], Value::Null);
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(level(&mut peer, &session).await, "info");
}

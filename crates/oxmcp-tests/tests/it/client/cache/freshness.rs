//! Freshness: cached answers are used until they expire or change.

use std::{future::IntoFuture, time::Duration};

use oxmcp::{
    CacheMode, CacheOptions, Client, ClientSession, Result, Revision, Server, Tool,
    protocol::{CacheHint, PaginatedParams, ReadResourceParams, SubscriptionFilter},
    testing::{self, ScriptedPeer},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{advance, sleep},
};

use crate::client::{answer, client, connecting, expect, initialized, refuse};
use crate::support::idle;

pub(crate) const CHANGED: &str = "notifications/tools/list_changed";
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A modern session with a scripted server.
pub(crate) async fn modern(client: &Client) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) = connecting(
        client
            .clone()
            .revisions(crate::client::asking(Revision::LATEST)),
    )
    .await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(
        &mut peer,
        &probe,
        crate::client::discovered(&["2026-07-28"]),
    )
    .await;
    (peer, connecting.await.unwrap().unwrap())
}

pub(crate) fn tools(name: &str, seconds: u64) -> Value {
    json!({
        "resultType": "complete",
        "tools": [{"name": name, "inputSchema": {"type": "object"}}],
        "ttlMs": seconds * 1000,
    })
}

/// Lists the first page, in the background.
pub(crate) fn listing(session: &ClientSession, mode: CacheMode) -> JoinHandle<Result<String>> {
    let call = session.list_tools(PaginatedParams::default()).cache(mode);
    tokio::spawn(async move { Ok(call.await?.tools.remove(0).name) })
}

/// Lists the first page, which must come from the cache.
pub(crate) async fn kept(session: &ClientSession) -> String {
    let listed = listing(session, CacheMode::Use);
    let patience = tokio::time::timeout(SECOND / 100, listed);
    patience
        .await
        .expect("the server was asked")
        .unwrap()
        .unwrap()
}

/// Lists the first page, which must be requested from the server.
pub(crate) async fn asked(
    peer: &mut ScriptedPeer,
    session: &ClientSession,
    result: Value,
) -> String {
    let listed = listing(session, CacheMode::Use);
    let request = expect(peer, "tools/list").await;
    answer(peer, &request, result).await;
    listed.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn cached_answer_is_reused_until_it_expires() {
    let (mut peer, session) = modern(&client()).await;
    assert_eq!(asked(&mut peer, &session, tools("a", 60)).await, "a");
    advance(SECOND * 59).await;
    assert_eq!(kept(&session).await, "a");
    advance(SECOND).await;
    assert_eq!(asked(&mut peer, &session, tools("b", 60)).await, "b");
    assert_eq!(kept(&session).await, "b");
}

#[tokio::test(start_paused = true)]
async fn answers_without_freshness_are_not_cached() {
    let (mut peer, session) = modern(&client()).await;
    for ttl in [json!(null), json!(0), json!(-5000)] {
        let mut page = tools("a", 0);
        page["ttlMs"] = ttl;
        asked(&mut peer, &session, page).await;
    }
    asked(&mut peer, &session, tools("a", 60)).await;
    kept(&session).await;
}

#[tokio::test(start_paused = true)]
async fn client_limit_caps_freshness() {
    let options = CacheOptions {
        max_ttl: SECOND * 10,
        ..CacheOptions::default()
    };
    let (mut peer, session) = modern(&client().cache(options)).await;
    asked(&mut peer, &session, tools("a", 3600)).await;
    advance(SECOND * 10).await;
    asked(&mut peer, &session, tools("b", 3600)).await;

    let (mut peer, session) = modern(&client().without_cache()).await;
    asked(&mut peer, &session, tools("a", 3600)).await;
    asked(&mut peer, &session, tools("b", 3600)).await;
}

#[tokio::test(start_paused = true)]
async fn call_can_bypass_the_cache() {
    let (mut peer, session) = modern(&client()).await;
    asked(&mut peer, &session, tools("a", 60)).await;
    for (mode, name, then) in [
        (CacheMode::Bypass, "b", "a"),
        (CacheMode::Refresh, "c", "c"),
    ] {
        let listed = listing(&session, mode);
        let request = expect(&mut peer, "tools/list").await;
        answer(&mut peer, &request, tools(name, 60)).await;
        assert_eq!(listed.await.unwrap().unwrap(), name);
        assert_eq!(kept(&session).await, then);
    }
    // The cache does not answer calls with metadata or a progress handler either.
    let calls = [
        session.list_tools(PaginatedParams::default()).meta("a", 1),
        session
            .list_tools(PaginatedParams::default())
            .on_progress(|_| {}),
    ];
    for call in calls {
        let call = tokio::spawn(call.into_future());
        let request = expect(&mut peer, "tools/list").await;
        answer(&mut peer, &request, tools("d", 60)).await;
        call.await.unwrap().unwrap();
    }
    assert_eq!(kept(&session).await, "c");
}

#[tokio::test(start_paused = true)]
async fn pages_and_resources_are_cached_separately() {
    let (mut peer, session) = modern(&client()).await;
    let all = |session: &ClientSession| {
        let listing = session.tools();
        tokio::spawn(async move { listing.all().await.map(|tools| tools.len()) })
    };
    let listed = all(&session);
    for (next, seconds) in [(Some("2"), 60), (None, 10)] {
        let request = expect(&mut peer, "tools/list").await;
        let mut page = tools("a", seconds);
        if let Some(next) = next {
            page["nextCursor"] = next.into();
        }
        answer(&mut peer, &request, page).await;
    }
    assert_eq!(listed.await.unwrap().unwrap(), 2);
    assert_eq!(all(&session).await.unwrap().unwrap(), 2);

    advance(SECOND * 10).await;
    let listed = all(&session);
    let request = expect(&mut peer, "tools/list").await;
    assert_eq!(request["params"]["cursor"], "2");
    // The server no longer knows the page, so the cached page before it belongs to an old list, too.
    let error = json!({"code": -32602, "message": "no such page"});
    refuse(&mut peer, &request, error).await;
    assert_eq!(listed.await.unwrap().unwrap_err().message(), "no such page");
    asked(&mut peer, &session, tools("new", 60)).await;

    for (uri, is_asked) in [
        ("file:///a", true),
        ("file:///b", true),
        ("file:///a", false),
    ] {
        let read = tokio::spawn(session.read_resource(uri).into_future());
        if is_asked {
            let request = expect(&mut peer, "resources/read").await;
            assert_eq!(request["params"]["uri"], uri);
            let result = json!({"resultType": "complete", "contents": [], "ttlMs": 60_000});
            answer(&mut peer, &request, result).await;
        }
        read.await.unwrap().unwrap();
    }
    // A listing can bypass the cached pages.
    let listing = session.tools().cache(CacheMode::Refresh);
    let listed = tokio::spawn(listing.all());
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("newer", 60)).await;
    listed.await.unwrap().unwrap();
    assert_eq!(kept(&session).await, "newer");
}

#[tokio::test(start_paused = true)]
async fn answers_to_retries_are_not_cached() {
    let (mut peer, session) = modern(&client()).await;
    for _ in 0..2 {
        let mut params = ReadResourceParams::new("file:///a");
        params.request_state = Some("state".into());
        let call = session.request::<oxmcp::protocol::method::ReadResource>(params);
        let read = tokio::spawn(call.into_future());
        let request = expect(&mut peer, "resources/read").await;
        let result = json!({"resultType": "complete", "contents": [], "ttlMs": 60_000});
        answer(&mut peer, &request, result).await;
        read.await.unwrap().unwrap();
    }
    // The cache does not answer the requests of later rounds either, which the client makes by itself.
    for _ in 0..2 {
        let read = tokio::spawn(session.read_resource("file:///b").into_future());
        let request = expect(&mut peer, "resources/read").await;
        let more = json!({"resultType": "input_required", "requestState": "state"});
        answer(&mut peer, &request, more).await;
        let request = expect(&mut peer, "resources/read").await;
        assert_eq!(request["params"]["requestState"], "state");
        let result = json!({"resultType": "complete", "contents": [], "ttlMs": 60_000});
        answer(&mut peer, &request, result).await;
        read.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn notification_invalidates_the_cache() {
    let (mut peer, session) = modern(&client()).await;
    asked(&mut peer, &session, tools("a", 60)).await;
    let others = "notifications/prompts/list_changed";
    peer.send(json!({"jsonrpc": "2.0", "method": others}))
        .await
        .unwrap();
    assert_eq!(kept(&session).await, "a");
    peer.send(json!({"jsonrpc": "2.0", "method": CHANGED}))
        .await
        .unwrap();
    sleep(SECOND / 100).await;
    let listed = listing(&session, CacheMode::Use);
    let request = expect(&mut peer, "tools/list").await;
    // A change that is notified before the answer arrives invalidates that answer, too, and later calls do not wait for it.
    peer.send(json!({"jsonrpc": "2.0", "method": CHANGED}))
        .await
        .unwrap();
    sleep(SECOND / 100).await;
    let later = listing(&session, CacheMode::Use);
    let second = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &second, tools("new", 60)).await;
    assert_eq!(later.await.unwrap().unwrap(), "new");
    answer(&mut peer, &request, tools("old", 60)).await;
    assert_eq!(listed.await.unwrap().unwrap(), "old");
    assert_eq!(kept(&session).await, "new");
}

#[tokio::test(start_paused = true)]
async fn odd_update_invalidates_the_cache_unless_strict() {
    for (client, is_read) in [(client(), true), (client().strict(), false)] {
        let (mut peer, session) = modern(&client).await;
        let read = || tokio::spawn(session.read_resource("file:///a\u{fffd}").into_future());
        let result = json!({"resultType": "complete", "contents": [], "ttlMs": 60_000});
        let reading = read();
        let request = expect(&mut peer, "resources/read").await;
        answer(&mut peer, &request, result.clone()).await;
        reading.await.unwrap().unwrap();
        peer.send_line(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a\ud83d"}}"#)
            .await
            .unwrap();
        sleep(SECOND / 100).await;
        let reading = read();
        if is_read {
            let request = expect(&mut peer, "resources/read").await;
            answer(&mut peer, &request, result).await;
        }
        reading.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn configured_lifetime_applies_to_legacy_servers_until_change() {
    for (default_ttl, is_kept) in [(Duration::ZERO, false), (SECOND * 60, true)] {
        let options = CacheOptions {
            default_ttl,
            ..CacheOptions::default()
        };
        let client = client().revisions([Revision::V2025_06_18]).cache(options);
        let (mut peer, connecting) = connecting(client).await;
        let opening = expect(&mut peer, "initialize").await;
        answer(&mut peer, &opening, initialized("2025-06-18")).await;
        expect(&mut peer, "notifications/initialized").await;
        let session = connecting.await.unwrap().unwrap();

        let page = || json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]});
        asked(&mut peer, &session, page()).await;
        if is_kept {
            kept(&session).await;
            peer.send(json!({"jsonrpc": "2.0", "method": CHANGED}))
                .await
                .unwrap();
            sleep(SECOND / 100).await;
        }
        asked(&mut peer, &session, page()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_invalidates_the_cache_before_its_event() {
    let hint = CacheHint::public(SECOND * 3600);
    let server = Server::new("s", "1").tool(idle("a")).cache_tools(hint);
    let session = testing::connect(&server).await.unwrap();
    let filter = SubscriptionFilter::default().with_tools_list_changed(true);
    let mut subscription = session.listen(filter).await.unwrap();
    assert_eq!(session.tools().all().await.unwrap().len(), 1);
    server.add_tools([idle("b")]).unwrap();
    subscription.next().await.unwrap();
    assert_eq!(session.tools().all().await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreadable_answers_are_not_cached() {
    let (mut peer, session) = modern(&client().strict()).await;
    let listed = listing(&session, CacheMode::Use);
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, json!({"tools": 7, "ttlMs": 60_000})).await;
    listed.await.unwrap().unwrap_err();
    asked(&mut peer, &session, tools("a", 60)).await;
}

#[tokio::test(start_paused = true)]
async fn ping_is_not_answered_from_the_cache() {
    let server = Server::new("s", "1").cache_discovery(CacheHint::public(SECOND * 3600));
    let session = testing::connect(&server).await.unwrap();
    session.discover().await.unwrap();
    session.ping().await.unwrap();
    server.sessions().next().unwrap().close().await.unwrap();
    sleep(SECOND).await;
    session.discover().await.unwrap();
    assert!(session.ping().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn tool_results_are_never_cached() {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counter = count.clone();
    let server = Server::new("s", "1").tool(Tool::new("count", "Count", move || {
        let counter = counter.clone();
        async move { counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) }
    }));
    let options = CacheOptions {
        default_ttl: SECOND * 60,
        ..CacheOptions::default()
    };
    let client = client().cache(options);
    let session = testing::connect(&server).client(&client).await.unwrap();
    for expected in 0..3 {
        let counted: u32 = session.call_tool("count", ()).structured().await.unwrap();
        assert_eq!(counted, expected);
    }
}

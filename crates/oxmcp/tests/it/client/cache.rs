//! What servers say stays fresh is not asked for again.

use std::{future::IntoFuture, time::Duration};

use oxmcp::{
    CacheMode, CacheOptions, CancellationToken, Client, ClientSession, Limits, Result, Revision,
    Server, Tool,
    protocol::{CacheHint, PaginatedParams, ReadResourceParams, SubscriptionFilter},
    testing::{self, ScriptedPeer},
    transport::{InMemory, Transport, in_memory},
};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, advance, sleep},
};

use super::{answer, client, connecting, expect, initialized, refuse};
use crate::support::idle;

const CHANGED: &str = "notifications/tools/list_changed";
const SECOND: Duration = Duration::from_secs(1);

/// A modern session with a server by script.
async fn modern(client: &Client) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) = connecting(client.clone().revisions([Revision::LATEST])).await;
    let probe = expect(&mut peer, "server/discover").await;
    answer(&mut peer, &probe, super::discovered(&["2026-07-28"])).await;
    (peer, connecting.await.unwrap().unwrap())
}

fn tools(name: &str, seconds: u64) -> Value {
    json!({
        "resultType": "complete",
        "tools": [{"name": name, "inputSchema": {"type": "object"}}],
        "ttlMs": seconds * 1000,
    })
}

/// Lists the first page, in the background.
fn listing(session: &ClientSession, mode: CacheMode) -> JoinHandle<Result<String>> {
    let call = session.list_tools(PaginatedParams::default()).cache(mode);
    tokio::spawn(async move { Ok(call.await?.tools.remove(0).name) })
}

/// Lists the first page, which must not be asked for.
async fn kept(session: &ClientSession) -> String {
    let listed = listing(session, CacheMode::Use);
    let patience = tokio::time::timeout(SECOND / 100, listed);
    patience
        .await
        .expect("the server was asked")
        .unwrap()
        .unwrap()
}

/// Lists the first page, which must be asked for.
async fn asked(peer: &mut ScriptedPeer, session: &ClientSession, result: Value) -> String {
    let listed = listing(session, CacheMode::Use);
    let request = expect(peer, "tools/list").await;
    answer(peer, &request, result).await;
    listed.await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_taken_again_until_its_time_is_over() {
    let (mut peer, session) = modern(&client()).await;
    assert_eq!(asked(&mut peer, &session, tools("a", 60)).await, "a");
    advance(SECOND * 59).await;
    assert_eq!(kept(&session).await, "a");
    advance(SECOND).await;
    assert_eq!(asked(&mut peer, &session, tools("b", 60)).await, "b");
    assert_eq!(kept(&session).await, "b");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_said_to_stay_fresh_is_asked_for_again() {
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
async fn no_answer_stays_fresh_for_longer_than_the_client_allows() {
    let options = CacheOptions {
        max_ttl: SECOND * 10,
        ..CacheOptions::default()
    };
    let (mut peer, session) = modern(&client().cache(options)).await;
    asked(&mut peer, &session, tools("a", 3600)).await;
    advance(SECOND * 10).await;
    asked(&mut peer, &session, tools("b", 3600)).await;

    let (mut peer, session) = modern(&client().no_cache()).await;
    asked(&mut peer, &session, tools("a", 3600)).await;
    asked(&mut peer, &session, tools("b", 3600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_can_do_without_what_is_kept() {
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
    // Nor is it used by calls that say more than their params do.
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
async fn every_page_and_every_resource_is_kept_by_itself() {
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
    // The server does not know the page any more: the one before it is of an old list, too.
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
    // A listing can be told not to use what is kept.
    let listing = session.tools().cache(CacheMode::Refresh);
    let listed = tokio::spawn(listing.all());
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("newer", 60)).await;
    listed.await.unwrap().unwrap();
    assert_eq!(kept(&session).await, "newer");
}

#[tokio::test(start_paused = true)]
async fn answers_to_retries_are_not_kept() {
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
    // Nor are those that the client makes by itself.
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
async fn a_notification_makes_what_is_kept_worthless() {
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
    // A change that is said before the answer comes makes the answer worthless, too, and nobody waits for it any more.
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
async fn of_legacy_servers_is_kept_what_the_user_wants_until_they_say_it_changed() {
    for (default_ttl, is_kept) in [(SECOND * 0, false), (SECOND * 60, true)] {
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
async fn a_subscription_makes_what_is_kept_worthless_in_time() {
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
async fn those_who_ask_the_same_at_once_share_a_request() {
    let (mut peer, session) = modern(&client()).await;
    let calls = [(); 3].map(|()| listing(&session, CacheMode::Use));
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("a", 60)).await;
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "a");
    }

    // Where the answer is stale at once, it is for who asked alone; and next time nobody waits for it.
    peer.send(json!({"jsonrpc": "2.0", "method": CHANGED}))
        .await
        .unwrap();
    sleep(SECOND / 100).await;
    let calls = [(); 3].map(|()| listing(&session, CacheMode::Use));
    for name in ["a", "b", "c"] {
        let request = expect(&mut peer, "tools/list").await;
        answer(&mut peer, &request, tools(name, 0)).await;
    }
    for (call, name) in calls.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(call.await.unwrap().unwrap(), name);
    }
    let calls = [(); 2].map(|()| listing(&session, CacheMode::Use));
    let first = expect(&mut peer, "tools/list").await;
    let second = expect(&mut peer, "tools/list").await;
    for request in [first, second] {
        answer(&mut peer, &request, tools("d", 60)).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "d");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_takes_over_from_who_gives_up() {
    let (mut peer, session) = modern(&client()).await;
    let hasty = session.list_tools(PaginatedParams::default());
    let hasty = tokio::spawn(hasty.timeout(SECOND).into_future());
    let dropped_request = expect(&mut peer, "tools/list").await;
    let dropped = listing(&session, CacheMode::Use);
    let stop = CancellationToken::new();
    let stopped = session.list_tools(PaginatedParams::default());
    let stopped = tokio::spawn(stopped.cancel_with(stop.clone()).into_future());
    let impatient = session.list_tools(PaginatedParams::default());
    let impatient = tokio::spawn(impatient.timeout(SECOND * 2).into_future());
    sleep(SECOND / 2).await;
    let patient = listing(&session, CacheMode::Use);

    // The first has no time left.
    assert!(hasty.await.unwrap().unwrap_err().is_timeout());
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], dropped_request["id"]);
    // The second is dropped, and the third is cancelled while it waits.
    expect(&mut peer, "tools/list").await;
    stop.cancel();
    assert!(stopped.await.unwrap().unwrap_err().is_cancelled());
    dropped.abort();
    expect(&mut peer, "notifications/cancelled").await;
    expect(&mut peer, "tools/list").await;
    // The fourth has its own patience, counted from when it asked.
    let start = Instant::now();
    assert!(impatient.await.unwrap().unwrap_err().is_timeout());
    assert!(start.elapsed() <= SECOND);
    expect(&mut peer, "notifications/cancelled").await;
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("a", 60)).await;
    assert_eq!(patient.await.unwrap().unwrap(), "a");
    assert_eq!(kept(&session).await, "a");
}

#[tokio::test(start_paused = true)]
async fn who_waited_asks_itself_where_the_first_is_refused() {
    let (mut peer, session) = modern(&client()).await;
    let calls = [(); 2].map(|()| listing(&session, CacheMode::Use));
    let request = expect(&mut peer, "tools/list").await;
    refuse(
        &mut peer,
        &request,
        json!({"code": -32000, "message": "not you"}),
    )
    .await;
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("a", 60)).await;
    let [first, second] = calls;
    assert_eq!(first.await.unwrap().unwrap_err().message(), "not you");
    assert_eq!(second.await.unwrap().unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn an_old_answer_is_better_than_none_for_a_while() {
    for (stale_if_error, late, found) in [(10, 5, true), (10, 10, false), (0, 0, false)] {
        let options = CacheOptions {
            stale_if_error: SECOND * stale_if_error,
            ..CacheOptions::default()
        };
        let (mut peer, session) = modern(&client().cache(options)).await;
        asked(&mut peer, &session, tools("old", 60)).await;
        advance(SECOND * (60 + late)).await;
        let failed = json!({"code": -32603, "message": "no disk"});
        let wrong = json!({"code": -32602, "message": "no such thing"});
        for (error, helps) in [(failed, true), (wrong, false)] {
            let listed = listing(&session, CacheMode::Use);
            let request = expect(&mut peer, "tools/list").await;
            refuse(&mut peer, &request, error).await;
            let listed = listed.await.unwrap();
            assert_eq!(listed.is_ok(), found && helps, "{listed:?}");
        }
        // Who wants a new one gets no old one.
        let listed = listing(&session, CacheMode::Refresh);
        let request = expect(&mut peer, "tools/list").await;
        refuse(&mut peer, &request, json!({"code": -32603, "message": ""})).await;
        listed.await.unwrap().unwrap_err();
        // The server goes.
        drop(peer);
        sleep(SECOND / 100).await;
        assert_eq!(
            listing(&session, CacheMode::Use).await.unwrap().is_ok(),
            found
        );
        // This side goes.
        session.close().await.unwrap();
        let closed = listing(&session, CacheMode::Use).await.unwrap();
        assert!(closed.unwrap_err().is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_not_kept() {
    let (mut peer, session) = modern(&client()).await;
    let listed = listing(&session, CacheMode::Use);
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, json!({"tools": 7, "ttlMs": 60_000})).await;
    listed.await.unwrap().unwrap_err();
    asked(&mut peer, &session, tools("a", 60)).await;
}

#[tokio::test(start_paused = true)]
async fn a_sign_of_life_is_not_taken_from_what_is_kept() {
    let server = Server::new("s", "1").cache_discovery(CacheHint::public(SECOND * 3600));
    let session = testing::connect(&server).await.unwrap();
    session.discover().await.unwrap();
    session.ping().await.unwrap();
    server.sessions().next().unwrap().close().await.unwrap();
    sleep(SECOND).await;
    session.discover().await.unwrap();
    assert!(session.ping().await.unwrap_err().is_closed());
}

/// A transport that says who is at its other end, and on whose behalf.
struct Named(InMemory, &'static str, Option<&'static str>);

impl Transport for Named {
    type Read = <InMemory as Transport>::Read;
    type Write = <InMemory as Transport>::Write;

    async fn connect(&mut self, limits: &Limits) -> Result<(Self::Read, Self::Write)> {
        self.0.connect(limits).await
    }

    fn identity(&self) -> Option<String> {
        Some(self.1.into())
    }

    fn authorization(&self) -> Option<String> {
        self.2.map(Into::into)
    }
}

async fn named(
    client: &Client,
    server: &Server,
    name: &'static str,
    authorization: Option<&'static str>,
) -> ClientSession {
    let (near, far) = in_memory();
    server.connect(far).await.unwrap();
    client
        .connect(Named(near, name, authorization))
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn w11_sessions_share_what_is_public_and_nothing_else_of_others() {
    let ours = client();
    for (hint, shared) in [
        (CacheHint::public(SECOND * 60), [true, true, false, true]),
        (CacheHint::private(SECOND * 60), [true, false, false, false]),
    ] {
        let server = |tool: &str| Server::new("s", "1").tool(idle(tool)).cache_tools(hint);
        let name = if shared[1] { "public" } else { "private" };
        let first = named(&ours, &server("first"), name, Some("ann")).await;
        first.tools().all().await.unwrap();
        let cases = [
            (name, Some("ann")),
            (name, Some("bob")),
            ("other", Some("ann")),
            (name, None),
        ];
        for ((name, who), shared) in cases.into_iter().zip(shared) {
            let session = named(&ours, &server("second"), name, who).await;
            let tools = session.tools().all().await.unwrap();
            let expected = if shared { "first" } else { "second" };
            assert_eq!(tools[0].name, expected, "{hint:?} {name} {who:?}");
        }
        // Another client has its own.
        let theirs = named(&client(), &server("second"), name, Some("ann")).await;
        assert_eq!(theirs.tools().all().await.unwrap()[0].name, "second");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_called_are_never_taken_from_what_is_kept() {
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

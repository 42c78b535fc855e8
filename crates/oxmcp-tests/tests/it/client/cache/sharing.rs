//! Sharing: sessions share cached answers, and concurrent requests are made once.

use std::future::IntoFuture;

use oxmcp::{
    CacheMode, CacheOptions, CancellationToken, Client, ClientSession, Limits, Result, Server,
    protocol::{CacheHint, PaginatedParams},
    transport::{InMemory, Transport, in_memory},
};
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use crate::client::{
    answer,
    cache::freshness::{CHANGED, SECOND, asked, kept, listing, modern, tools},
    client, expect, refuse,
};
use crate::support::idle;

#[tokio::test(start_paused = true)]
async fn concurrent_equal_requests_are_sent_once() {
    let (mut peer, session) = modern(&client()).await;
    let calls = [(); 3].map(|()| listing(&session, CacheMode::Use));
    let request = expect(&mut peer, "tools/list").await;
    answer(&mut peer, &request, tools("a", 60)).await;
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "a");
    }

    // An answer that is stale at once is for its own caller alone; the next time no call waits for another.
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
async fn waiting_caller_takes_over_from_a_cancelled_one() {
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

    // The first call times out.
    assert!(hasty.await.unwrap().unwrap_err().is_timeout());
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], dropped_request["id"]);
    // The second call is dropped, and the third is cancelled while it waits.
    expect(&mut peer, "tools/list").await;
    stop.cancel();
    assert!(stopped.await.unwrap().unwrap_err().is_cancelled());
    dropped.abort();
    expect(&mut peer, "notifications/cancelled").await;
    expect(&mut peer, "tools/list").await;
    // The fourth call has its own timeout, counted from its start.
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
async fn waiting_caller_retries_when_the_first_is_refused() {
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
async fn stale_answer_is_used_briefly_after_an_error() {
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
        // A call that refreshes gets no stale answer.
        let listed = listing(&session, CacheMode::Refresh);
        let request = expect(&mut peer, "tools/list").await;
        refuse(&mut peer, &request, json!({"code": -32603, "message": ""})).await;
        listed.await.unwrap().unwrap_err();
        // The server disconnects.
        drop(peer);
        sleep(SECOND / 100).await;
        assert_eq!(
            listing(&session, CacheMode::Use).await.unwrap().is_ok(),
            found
        );
        // The client closes the session.
        session.close().await.unwrap();
        let closed = listing(&session, CacheMode::Use).await.unwrap();
        assert!(closed.unwrap_err().is_closed());
    }
}

/// A transport that declares the peer's identity and the principal of the connection.
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
async fn sessions_share_only_public_answers() {
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
        // Another client has its own cache.
        let theirs = named(&client(), &server("second"), name, Some("ann")).await;
        assert_eq!(theirs.tools().all().await.unwrap()[0].name, "second");
    }
}

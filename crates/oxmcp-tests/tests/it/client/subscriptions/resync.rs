//! Interrupted subscriptions: they are opened again, and no change is missed.

use std::time::Duration;

use oxmcp::{
    Client, ClientSession, Revision, Subscription, SubscriptionEnd, SubscriptionEvent,
    protocol::SubscriptionFilter, testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use crate::client::{answer, client, connecting, expect, refuse, soon};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
const TOOLS: &str = "notifications/tools/list_changed";

fn tools() -> SubscriptionFilter {
    SubscriptionFilter::default().with_tools_list_changed(true)
}

pub(crate) fn resources() -> Value {
    json!({
        "tools": {"listChanged": true}, "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
    })
}

/// A modern session with a scripted server that declares all notifications of changes.
pub(crate) async fn modern(client: Client) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) =
        connecting(client.revisions(crate::client::asking(Revision::LATEST))).await;
    let probe = expect(&mut peer, "server/discover").await;
    let mut discovered = crate::client::discovered(&["2026-07-28"]);
    discovered["capabilities"] = resources();
    answer(&mut peer, &probe, discovered).await;
    (peer, connecting.await.unwrap().unwrap())
}

/// The id and the filter of the next request for a subscription.
pub(crate) async fn listen(peer: &mut ScriptedPeer) -> (Value, Value) {
    let request = expect(peer, "subscriptions/listen").await;
    (
        request["id"].clone(),
        request["params"]["notifications"].clone(),
    )
}

pub(crate) async fn acknowledge(peer: &mut ScriptedPeer, id: &Value, filter: Value) {
    let method = "notifications/subscriptions/acknowledged";
    tell(peer, id, method, json!({"notifications": filter})).await;
}

/// Sends a notification within a subscription.
pub(crate) async fn tell(peer: &mut ScriptedPeer, id: &Value, method: &str, mut params: Value) {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    peer.send(message).await.unwrap();
}

/// Acknowledges the next request for a subscription, with its whole filter.
pub(crate) async fn agree(peer: &mut ScriptedPeer) -> (Value, Value) {
    let (id, filter) = listen(peer).await;
    acknowledge(peer, &id, filter.clone()).await;
    (id, filter)
}

/// Ends a subscription gracefully, as the server.
pub(crate) async fn end(peer: &mut ScriptedPeer, id: &Value) {
    answer(peer, &json!({"id": id}), json!({"resultType": "complete"})).await;
}

pub(crate) async fn quiet(peer: &mut ScriptedPeer, wait: Duration) {
    let heard = timeout(wait, peer.receive()).await;
    assert!(heard.is_err(), "{heard:?}");
}

pub(crate) async fn settle() {
    sleep(Duration::from_millis(20)).await;
}

/// Lists the tools of a server that has none.
pub(crate) async fn list_tools(peer: &mut ScriptedPeer, session: &ClientSession) {
    let listing = tokio::spawn(session.tools().all());
    let request = expect(peer, "tools/list").await;
    answer(
        peer,
        &request,
        json!({"resultType": "complete", "tools": []}),
    )
    .await;
    listing.await.unwrap().unwrap();
}

async fn subscription(peer: &mut ScriptedPeer, session: &ClientSession) -> (Subscription, Value) {
    let listener = session.clone();
    let subscribing = tokio::spawn(async move { listener.listen(tools()).await });
    let (id, _) = agree(peer).await;
    (subscribing.await.unwrap().unwrap(), id)
}

#[tokio::test(start_paused = true)]
async fn subscription_ended_by_the_server_is_resumed() {
    let (mut peer, session) = modern(client()).await;
    let (mut subscription, mut id) = subscription(&mut peer, &session).await;
    for most in [500, 1000, 2000] {
        tell(&mut peer, &id, TOOLS, json!({})).await;
        assert_eq!(
            subscription.next().await,
            Some(SubscriptionEvent::ToolsListChanged)
        );
        let start = Instant::now();
        end(&mut peer, &id).await;
        (id, _) = agree(&mut peer).await;
        let pause = start.elapsed().as_millis();
        assert!(
            (most / 2..=most + 1).contains(&pause),
            "{pause} of {most} ms"
        );
        assert_eq!(
            subscription.next().await,
            Some(SubscriptionEvent::Resumed(tools()))
        );
    }
    // A subscription that the server cancels is opened again, too; after a while the backoff starts over.
    sleep(SECOND * 3600).await;
    let start = Instant::now();
    let taken_back =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    peer.send(taken_back).await.unwrap();
    let (id, _) = listen(&mut peer).await;
    assert!(start.elapsed() <= SECOND / 2 + Duration::from_millis(1));
    assert_eq!(subscription.end(), None);
    // The server can grant less than before.
    acknowledge(&mut peer, &id, json!({})).await;
    let nothing = SubscriptionFilter::default();
    assert_eq!(
        subscription.next().await,
        Some(SubscriptionEvent::Resumed(nothing.clone()))
    );
    assert_eq!(*subscription.filter(), nothing);
    // A subscription with an empty grant is not opened again.
    end(&mut peer, &id).await;
    assert_eq!(subscription.ended().await, SubscriptionEnd::Graceful);
    quiet(&mut peer, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn failing_server_is_retried_with_backoff() {
    let (mut peer, session) = modern(client()).await;
    let (mut subscription, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    let start = Instant::now();
    for attempt in 0..20 {
        let (id, _) = listen(&mut peer).await;
        if attempt % 2 == 0 {
            let error = json!({"code": -32603, "message": "too many"});
            refuse(&mut peer, &json!({"id": id}), error).await;
        } else {
            end(&mut peer, &id).await;
        }
    }
    assert!(start.elapsed() > SECOND * 400, "{:?}", start.elapsed());
    let (id, _) = agree(&mut peer).await;
    assert_eq!(
        subscription.next().await,
        Some(SubscriptionEvent::Resumed(tools()))
    );
    // A subscription is not requested again once the server does not know the method.
    end(&mut peer, &id).await;
    let (id, _) = listen(&mut peer).await;
    refuse(
        &mut peer,
        &json!({"id": id}),
        crate::client::method_not_found(),
    )
    .await;
    assert_eq!(subscription.next().await, None);
    assert_eq!(subscription.end(), Some(SubscriptionEnd::Remote));
    quiet(&mut peer, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn interrupted_subscription_ends_with_caller_or_session() {
    let (mut peer, session) = modern(client()).await;
    let (closed, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    settle().await;
    assert_eq!(closed.close().await, SubscriptionEnd::Local);
    let (dropped, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    settle().await;
    drop(dropped);
    quiet(&mut peer, SECOND * 600).await;

    let (ended, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    settle().await;
    drop(peer);
    assert_eq!(ended.ended().await, SubscriptionEnd::Graceful);

    let (mut peer, session) = modern(client()).await;
    let (ended, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    settle().await;
    let start = Instant::now();
    let closing = tokio::spawn(async move { session.close().await });
    assert_eq!(ended.ended().await, SubscriptionEnd::Local);
    peer.close().await.unwrap();
    closing.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn interruption_invalidates_the_cache() {
    let (mut peer, session) = modern(client()).await;
    let (mut subscription, id) = subscription(&mut peer, &session).await;
    for resumed in [false, true] {
        if resumed {
            end(&mut peer, &id).await;
            // Until the server is heard again, the lifetime that it declares counts.
            session.tools().all().await.unwrap();
            agree(&mut peer).await;
            subscription.next().await.unwrap();
        }
        let listing = tokio::spawn(session.tools().all());
        let request = expect(&mut peer, "tools/list").await;
        let page = json!({"resultType": "complete", "tools": [], "ttlMs": 3_600_000});
        answer(&mut peer, &request, page).await;
        listing.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_are_called_after_an_interruption() {
    let (sender, mut heard) = mpsc::channel(16);
    let client = client().on_tools_changed(move |_| {
        let sender = sender.clone();
        async move { sender.send(()).await.unwrap() }
    });
    let (mut peer, session) = modern(client).await;
    let (id, filter) = listen(&mut peer).await;
    assert_eq!(filter, json!({"toolsListChanged": true}));
    list_tools(&mut peer, &session).await;
    acknowledge(&mut peer, &id, filter.clone()).await;
    // The tools may have changed after they were listed and before the acknowledgement, so the handler is called once.
    soon("call of the handler", heard.recv()).await.unwrap();
    settle().await;
    assert!(heard.try_recv().is_err());
    end(&mut peer, &id).await;
    let (id, again) = agree(&mut peer).await;
    assert_eq!(again, filter);
    soon("call of the handler", heard.recv()).await.unwrap();
    tell(&mut peer, &id, TOOLS, json!({})).await;
    soon("call of the handler", heard.recv()).await.unwrap();
    settle().await;
    assert!(heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn lists_fetched_before_acknowledgement_are_refetched() {
    let client = client().on_tools_changed(|_| async {});
    let (mut peer, session) = modern(client).await;
    let (id, filter) = listen(&mut peer).await;
    for agrees in [true, false] {
        let listing = tokio::spawn(session.tools().all());
        let request = expect(&mut peer, "tools/list").await;
        let page = json!({"resultType": "complete", "tools": [], "ttlMs": 3_600_000});
        answer(&mut peer, &request, page).await;
        listing.await.unwrap().unwrap();
        if agrees {
            acknowledge(&mut peer, &id, filter.clone()).await;
            settle().await;
        }
    }
    assert!(session.tools().all().await.unwrap().is_empty());
}

/// A server that takes the request and never acknowledges it.
#[tokio::test(start_paused = true)]
async fn unacknowledged_subscription_times_out() {
    let (mut peer, session) = modern(client()).await;
    let start = Instant::now();
    let listener = session.clone();
    let listening = tokio::spawn(async move { listener.listen(tools()).await.map(drop) });
    let request = expect(&mut peer, "subscriptions/listen").await;
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    let error = listening.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert!(error.message().contains("did not acknowledge"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(120));

    // The request times out after an interruption as well, and is then made again.
    let (mut subscription, id) = subscription(&mut peer, &session).await;
    end(&mut peer, &id).await;
    let (id, _) = listen(&mut peer).await;
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
    agree(&mut peer).await;
    assert_eq!(
        subscription.next().await,
        Some(SubscriptionEvent::Resumed(tools()))
    );
}

#[tokio::test(start_paused = true)]
async fn lists_acknowledged_later_are_then_resumed() {
    let (sender, mut heard) = mpsc::channel(16);
    let client = client().on_tools_changed(move |_| {
        let sender = sender.clone();
        async move { sender.send(()).await.unwrap() }
    });
    let (mut peer, session) = modern(client).await;
    let (id, _) = listen(&mut peer).await;
    acknowledge(&mut peer, &id, json!({})).await;
    list_tools(&mut peer, &session).await;
    settle().await;
    assert!(heard.try_recv().is_err());
    let watching = session.clone();
    let watching = tokio::spawn(async move { watching.watch_resource("file:///x").await });
    agree(&mut peer).await;
    let _watch = watching.await.unwrap().unwrap();
    soon("call of the handler", heard.recv()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn interruption_keeps_the_output_schemas() {
    let (mut peer, session) = modern(client().on_tools_changed(|_| async {})).await;
    let (id, _) = agree(&mut peer).await;
    settle().await;
    let listing = tokio::spawn(session.tools().all());
    let request = expect(&mut peer, "tools/list").await;
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["a"]}});
    let page = json!({"resultType": "complete", "tools": [tool]});
    answer(&mut peer, &request, page).await;
    listing.await.unwrap().unwrap();
    end(&mut peer, &id).await;
    let (id, _) = agree(&mut peer).await;
    settle().await;
    for is_taken in [false, true] {
        let call = tokio::spawn(session.call_tool("t", json!({})).validated());
        let request = expect(&mut peer, "tools/call").await;
        let result =
            json!({"resultType": "complete", "content": [], "structuredContent": {"b": 1}});
        answer(&mut peer, &request, result).await;
        assert_eq!(call.await.unwrap().is_ok(), is_taken);
        tell(&mut peer, &id, TOOLS, json!({})).await;
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn pinned_session_retries_reading_capabilities() {
    let (sender, mut heard) = mpsc::channel(16);
    let client = client()
        .revisions([Revision::LATEST])
        .on_tools_changed(move |_| {
            let sender = sender.clone();
            async move { sender.send(()).await.unwrap() }
        });
    let busy = || json!({"code": -32603, "message": "busy"});
    for is_dropped in [false, true] {
        let (mut peer, connecting) = connecting(client.clone()).await;
        let session = connecting.await.unwrap().unwrap();
        let asked = expect(&mut peer, "server/discover").await;
        refuse(&mut peer, &asked, busy()).await;
        settle().await;
        if is_dropped {
            // The background task that asks does not keep the session open.
            drop(session);
            let heard = timeout(SECOND / 10, peer.receive()).await;
            assert!(heard.is_ok_and(|it| it.is_err()), "it is closed");
            continue;
        }
        let asked = expect(&mut peer, "server/discover").await;
        let mut discovered = crate::client::discovered(&["2026-07-28"]);
        discovered["capabilities"] = resources();
        answer(&mut peer, &asked, discovered).await;
        let (id, _) = agree(&mut peer).await;
        tell(&mut peer, &id, TOOLS, json!({})).await;
        soon("call of the handler", heard.recv()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn connecting_triggers_no_change_notification() {
    // For each list that is requested before the acknowledgement, the handlers that are called after it.
    for (listed, expected) in [
        (None, vec![]),
        (Some("tools/list"), vec!["tools"]),
        (Some("prompts/list"), vec!["prompts"]),
        (Some("resources/list"), vec!["resources"]),
        (Some("resources/templates/list"), vec!["resources"]),
    ] {
        let (sender, mut heard) = mpsc::channel(16);
        let told = |name: &'static str| {
            let sender = sender.clone();
            move |_: ClientSession| {
                let sender = sender.clone();
                async move { sender.send(name).await.unwrap() }
            }
        };
        let client = client()
            .on_tools_changed(told("tools"))
            .on_prompts_changed(told("prompts"))
            .on_resources_changed(told("resources"));
        let (mut peer, session) = modern(client).await;
        let (id, filter) = listen(&mut peer).await;
        let listing = tokio::spawn(async move {
            // The response is not needed: the server may have read its list before the request for the subscription.
            match listed {
                Some("tools/list") => drop(session.list_tools(Default::default()).await),
                Some("prompts/list") => drop(session.list_prompts(Default::default()).await),
                Some("resources/list") => drop(session.list_resources(Default::default()).await),
                Some(_) => drop(session.list_resource_templates(Default::default()).await),
                None => {}
            }
            session
        });
        if let Some(method) = listed {
            let request = expect(&mut peer, method).await;
            refuse(
                &mut peer,
                &request,
                json!({"code": -32603, "message": "no"}),
            )
            .await;
        }
        let _session = listing.await.unwrap();
        acknowledge(&mut peer, &id, filter).await;
        settle().await;
        let called: Vec<_> = std::iter::from_fn(|| heard.try_recv().ok()).collect();
        assert_eq!(called, expected, "{listed:?}");
    }
}

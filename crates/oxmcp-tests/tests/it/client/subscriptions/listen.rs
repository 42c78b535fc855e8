//! Notifications of changes: by handlers in every revision, and by `subscriptions/listen` in
//! revisions that have it.

use std::{future::IntoFuture, time::Duration};

use oxmcp::{
    Client, ClientSession, Limits, Revision, Subscription, SubscriptionEnd, SubscriptionEvent,
    middleware,
    protocol::{ResourceUpdatedParams, SubscriptionFilter},
    testing::{self, ScriptedPeer},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::{Instant, sleep},
};

use crate::client::{answer, client, connecting, expect, pass_on, refuse};
use crate::support::{calculator, idle};

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A client that reports which of its handlers were called.
fn with_handlers(client: Client) -> (Client, Receiver<&'static str>) {
    let (sender, heard) = mpsc::channel(16);
    let told = move |what: &'static str| {
        let sender = sender.clone();
        move |_: ClientSession| {
            let sender = sender.clone();
            async move { sender.send(what).await.unwrap() }
        }
    };
    let client = client
        .on_tools_changed(told("tools"))
        .on_prompts_changed(told("prompts"))
        .on_resources_changed(told("resources"));
    (client, heard)
}

fn tools() -> SubscriptionFilter {
    SubscriptionFilter::default().with_tools_list_changed(true)
}

fn within(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn acknowledgement(id: &Value, filter: Value) -> Value {
    within(id, ACKNOWLEDGED, json!({"notifications": filter}))
}

/// A modern session with a scripted server that declares all notifications of changes.
async fn modern(client: Client) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) =
        connecting(client.revisions(crate::client::asking(Revision::LATEST))).await;
    let probe = expect(&mut peer, "server/discover").await;
    let everything = json!({
        "resultType": "complete",
        "supportedVersions": [Revision::LATEST],
        "capabilities": {
            "tools": {"listChanged": true},
            "prompts": {"listChanged": false},
            "resources": {"listChanged": true, "subscribe": true},
        },
    });
    answer(&mut peer, &probe, everything).await;
    (peer, connecting.await.unwrap().unwrap())
}

/// An explicit subscription, and the id of its request.
async fn subscribe(peer: &mut ScriptedPeer, session: &ClientSession) -> (Subscription, Value) {
    let listener = session.clone();
    let subscribing = tokio::spawn(async move { listener.listen(tools()).once().await });
    let request = expect(peer, "subscriptions/listen").await;
    let id = request["id"].clone();
    peer.send(acknowledgement(&id, json!({"toolsListChanged": true})))
        .await
        .unwrap();
    (subscribing.await.unwrap().unwrap(), id)
}

async fn settle() {
    sleep(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn tool_change_reaches_the_handler_in_every_revision() {
    for revision in Revision::ALL {
        for through_middleware in [false, true] {
            let server = calculator();
            let (mut client, mut heard) = with_handlers(client());
            if through_middleware {
                client = client.layer(middleware::from_fn(pass_on));
            }
            let session = testing::connect(&server)
                .client(&client)
                .revision(revision)
                .await
                .unwrap();
            server.add_tools([idle("more")]).unwrap();
            assert_eq!(heard.recv().await, Some("tools"), "{revision}");
            server.remove_tools(["more"]);
            assert_eq!(heard.recv().await, Some("tools"), "{revision}");
            settle().await;
            assert!(heard.try_recv().is_err(), "{revision}: it was told twice");

            let start = Instant::now();
            session.close().await.unwrap();
            assert_eq!(start.elapsed(), Duration::ZERO, "{revision}");
            settle().await;
            assert_eq!(server.sessions().count(), 0, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_of_modern_session_share_one_subscription() {
    let (client, mut heard) = with_handlers(client());
    let (mut peer, session) = modern(client).await;
    // The subscription is requested before any other request of the session.
    let call = tokio::spawn(session.list_tools(Default::default()).into_future());
    let request = expect(&mut peer, "subscriptions/listen").await;
    // Notifications that the server does not declare are not requested.
    let wanted = json!({"toolsListChanged": true, "resourcesListChanged": true});
    assert_eq!(request["params"]["notifications"], wanted);
    let id = &request["id"];
    let list = expect(&mut peer, "tools/list").await;
    answer(
        &mut peer,
        &list,
        json!({"resultType": "complete", "tools": []}),
    )
    .await;
    call.await.unwrap().unwrap();

    let unknown = json!(4711);
    let lists = [
        (id, CHANGED, Some("tools")),
        (
            id,
            "notifications/resources/list_changed",
            Some("resources"),
        ),
        (&unknown, CHANGED, None),
        (id, "notifications/resources/updated", None),
    ];
    peer.send(acknowledgement(id, wanted)).await.unwrap();
    // The tools may have changed between their list and the subscription; the resources were not listed.
    assert_eq!(heard.recv().await, Some("tools"));
    for (id, method, called) in lists {
        peer.send(within(id, method, json!({"uri": "file:///x"})))
            .await
            .unwrap();
        settle().await;
        assert_eq!(heard.try_recv().ok(), called, "{method}");
    }
    // Hours later the subscription is still open.
    sleep(Duration::from_secs(24 * 3600)).await;
    peer.send(within(id, CHANGED, json!({}))).await.unwrap();
    assert_eq!(heard.recv().await, Some("tools"));

    let closing = tokio::spawn(async move { session.close().await });
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], *id);
    peer.close().await.unwrap();
    closing.await.unwrap().unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn refused_subscription_does_not_fail_the_session() {
    let (client, _heard) = with_handlers(client());
    let (mut peer, session) = modern(client).await;
    let request = expect(&mut peer, "subscriptions/listen").await;
    refuse(&mut peer, &request, crate::client::method_not_found()).await;
    let call = tokio::spawn(async move { session.discover().await });
    let probe = expect(&mut peer, "server/discover").await;
    answer(
        &mut peer,
        &probe,
        crate::client::discovered(&["2026-07-28"]),
    )
    .await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_without_handlers_does_not_subscribe() {
    let (mut peer, session) = modern(client()).await;
    let call = tokio::spawn(async move { session.discover().await });
    expect(&mut peer, "server/discover").await;
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn subscription_delivers_its_first_and_last_message() {
    let (mut peer, session) = modern(Client::new("t", "1")).await;
    let (mut subscription, id) = subscribe(&mut peer, &session).await;
    assert_eq!(*subscription.filter(), tools());
    assert_eq!(subscription.end(), None);
    let messages = [
        (CHANGED, json!({})),
        (
            "notifications/resources/updated",
            json!({"uri": "file:///x"}),
        ),
        (CHANGED, json!({})),
        ("notifications/com.example/news", json!({"a": 1})),
    ];
    for (method, params) in messages {
        peer.send(within(&id, method, params)).await.unwrap();
    }
    answer(
        &mut peer,
        &json!({"id": id}),
        json!({"resultType": "complete"}),
    )
    .await;
    assert_eq!(subscription.ended().await, SubscriptionEnd::Graceful);

    // Events that have arrived can still be read, and duplicates are merged.
    assert_eq!(
        subscription.next().await,
        Some(SubscriptionEvent::ToolsListChanged)
    );
    let Some(SubscriptionEvent::ResourceUpdated(ResourceUpdatedParams { uri, .. })) =
        subscription.next().await
    else {
        panic!("no update");
    };
    assert_eq!(uri, "file:///x");
    let Some(SubscriptionEvent::Other { method, params, .. }) = subscription.next().await else {
        panic!("nothing else");
    };
    assert_eq!(method, "notifications/com.example/news");
    assert!(params.unwrap().get().contains(r#""a":1"#));
    assert_eq!(subscription.next().await, None);
    assert_eq!(subscription.close().await, SubscriptionEnd::Graceful);
    drop(subscription);

    let (subscription, _) = subscribe(&mut peer, &session).await;
    drop(subscription);
    expect(&mut peer, "notifications/cancelled").await;
    insta::assert_snapshot!(peer.transcript(), @r#"
    <- {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
    -> {"id":1,"jsonrpc":"2.0","result":{"capabilities":{"prompts":{"listChanged":false},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"resultType":"complete","supportedVersions":["2026-07-28"]}}
    <- {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{"toolsListChanged":true}}}
    -> {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{"toolsListChanged":true}}}
    -> {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    -> {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"uri":"file:///x"}}
    -> {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}
    -> {"jsonrpc":"2.0","method":"notifications/com.example/news","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"a":1}}
    -> {"id":2,"jsonrpc":"2.0","result":{"resultType":"complete"}}
    <- {"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{"toolsListChanged":true}}}
    -> {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":3},"notifications":{"toolsListChanged":true}}}
    <- {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"the caller stopped waiting"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn subscription_reports_how_it_ended() {
    let (mut peer, session) = modern(client()).await;
    let (mut subscription, id) = subscribe(&mut peer, &session).await;
    assert_eq!(subscription.close().await, SubscriptionEnd::Local);
    assert_eq!(subscription.next().await, None);
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
    // Late notifications are ignored.
    peer.send(within(&id, CHANGED, json!({}))).await.unwrap();

    // The server cancels the subscription.
    let (subscription, id) = subscribe(&mut peer, &session).await;
    let params = json!({"requestId": id});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await
        .unwrap();
    assert_eq!(subscription.ended().await, SubscriptionEnd::Remote);
    drop(subscription);

    // The server disconnects. A second cancellation of the subscription before would have arrived first.
    let (subscription, _) = subscribe(&mut peer, &session).await;
    drop(peer);
    assert_eq!(subscription.ended().await, SubscriptionEnd::Remote);
    let error = session.listen(tools()).await.unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_cannot_cancel_an_ordinary_call() {
    let (mut peer, session) = modern(client()).await;
    let call = tokio::spawn(async move { session.discover().await });
    let probe = expect(&mut peer, "server/discover").await;
    let params = json!({"requestId": probe["id"]});
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        .await
        .unwrap();
    answer(
        &mut peer,
        &probe,
        crate::client::discovered(&["2026-07-28"]),
    )
    .await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn unacknowledged_subscription_is_an_error() {
    let (mut peer, session) = modern(client()).await;
    for (refused, says) in [(true, "enough"), (false, "before the server acknowledged")] {
        let listener = session.clone();
        let listening = tokio::spawn(async move { listener.listen(tools()).await.map(drop) });
        let request = expect(&mut peer, "subscriptions/listen").await;
        if refused {
            refuse(
                &mut peer,
                &request,
                json!({"code": -32603, "message": "enough"}),
            )
            .await;
        } else {
            answer(&mut peer, &request, json!({"resultType": "complete"})).await;
        }
        let error = listening.await.unwrap().unwrap_err();
        assert!(error.message().contains(says), "{error}");
    }
    // A caller that stops waiting cancels the request.
    let listener = session.clone();
    let listening = tokio::spawn(async move { listener.listen(tools()).await.map(drop) });
    let request = expect(&mut peer, "subscriptions/listen").await;
    listening.abort();
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn odd_notifications_reach_subscriptions_unless_strict() {
    let client = || Client::new("t", "1");
    for (client, is_strict) in [(client(), false), (client().strict(), true)] {
        let (mut peer, session) = modern(client).await;
        let listener = session.clone();
        let subscribing = tokio::spawn(async move { listener.listen(tools()).once().await });
        let request = expect(&mut peer, "subscriptions/listen").await;
        let id = &request["id"];
        let odd = json!({"toolsListChanged": "true", "resourceSubscriptions": null});
        peer.send(acknowledgement(id, odd)).await.unwrap();
        let mut subscription = subscribing.await.unwrap().unwrap();
        assert_eq!(subscription.filter().tools_list_changed, !is_strict);
        let update = within(id, "notifications/resources/updated", json!({"uri": 5}));
        peer.send(update).await.unwrap();
        let event = subscription.next().await;
        let is_read = matches!(event, Some(SubscriptionEvent::ResourceUpdated(_)));
        assert_eq!(is_read, !is_strict, "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_distinguished_and_do_not_call_handlers() {
    let server = calculator();
    let (client, mut heard) = with_handlers(client().layer(middleware::from_fn(pass_on)));
    let session = testing::connect(&server).client(&client).await.unwrap();
    let mut one = session.listen(tools()).await.unwrap();
    let other = session.listen(SubscriptionFilter::default().with_prompts_list_changed(true));
    let other = other.await.unwrap();
    assert!(other.filter().is_empty());

    server.add_tools([idle("more")]).unwrap();
    assert_eq!(one.next().await, Some(SubscriptionEvent::ToolsListChanged));
    settle().await;
    assert_eq!(heard.try_recv(), Ok("tools"));
    assert!(
        heard.try_recv().is_err(),
        "the handler was called for each subscription"
    );

    // The server closes the session: all subscriptions end gracefully.
    server.sessions().next().unwrap().close().await.unwrap();
    assert_eq!(one.ended().await, SubscriptionEnd::Graceful);
    assert_eq!(other.ended().await, SubscriptionEnd::Graceful);
    assert_eq!(one.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn closing_the_session_ends_its_subscriptions_at_once() {
    let server = calculator();
    let session = testing::connect(&server).await.unwrap();
    let subscription = session.listen(tools()).await.unwrap();
    let start = Instant::now();
    session.close().await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(subscription.ended().await, SubscriptionEnd::Local);
}

#[tokio::test(start_paused = true)]
async fn unread_events_are_bounded() {
    let limits = Limits::default().max_queued_notifications(3);
    let (mut peer, session) = modern(client().limits(limits)).await;
    let (mut subscription, id) = subscribe(&mut peer, &session).await;
    for index in 0..10 {
        let params = json!({"uri": format!("file:///{index}")});
        peer.send(within(&id, "notifications/resources/updated", params))
            .await
            .unwrap();
    }
    answer(&mut peer, &json!({"id": id}), json!({})).await;
    subscription.ended().await;
    let mut uris = Vec::new();
    while let Some(SubscriptionEvent::ResourceUpdated(updated)) = subscription.next().await {
        uris.push(updated.uri);
    }
    assert_eq!(uris, ["file:///7", "file:///8", "file:///9"]);
}

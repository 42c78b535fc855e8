//! Subscriptions outlive their interruptions, and resources are watched in every revision.

use std::time::Duration;

use oxmcp::{
    Client, ClientSession, Error, Limits, ResourceWatch, Result, Revision, Subscription,
    SubscriptionEnd, SubscriptionEvent, protocol::SubscriptionFilter, testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{answer, client, connecting, expect, refuse};

const SECOND: Duration = Duration::from_secs(1);
const TOOLS: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn tools() -> SubscriptionFilter {
    SubscriptionFilter::default().with_tools_list_changed(true)
}

fn resources() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true}})
}

/// A modern session with a server by script that tells of all that changes.
async fn modern(client: Client) -> (ScriptedPeer, ClientSession) {
    let (mut peer, connecting) = connecting(client.revisions([Revision::LATEST])).await;
    let probe = expect(&mut peer, "server/discover").await;
    let mut discovered = super::discovered(&["2026-07-28"]);
    discovered["capabilities"] = resources();
    answer(&mut peer, &probe, discovered).await;
    (peer, connecting.await.unwrap().unwrap())
}

/// The same with a legacy server.
async fn legacy() -> (ScriptedPeer, ClientSession) {
    let client = client().revisions([Revision::V2025_11_25]);
    let (mut peer, connecting) = connecting(client).await;
    let opening = expect(&mut peer, "initialize").await;
    let mut initialized = super::initialized("2025-11-25");
    initialized["capabilities"] = resources();
    answer(&mut peer, &opening, initialized).await;
    expect(&mut peer, "notifications/initialized").await;
    (peer, connecting.await.unwrap().unwrap())
}

/// The next request for a subscription, and what it asks for.
async fn listen(peer: &mut ScriptedPeer) -> (Value, Value) {
    let request = expect(peer, "subscriptions/listen").await;
    (
        request["id"].clone(),
        request["params"]["notifications"].clone(),
    )
}

async fn acknowledge(peer: &mut ScriptedPeer, id: &Value, filter: Value) {
    let method = "notifications/subscriptions/acknowledged";
    tell(peer, id, method, json!({"notifications": filter})).await;
}

/// Says something within a subscription.
async fn tell(peer: &mut ScriptedPeer, id: &Value, method: &str, mut params: Value) {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
    peer.send(message).await.unwrap();
}

/// Agrees to the next request for a subscription, whatever it asks for.
async fn agree(peer: &mut ScriptedPeer) -> (Value, Value) {
    let (id, filter) = listen(peer).await;
    acknowledge(peer, &id, filter.clone()).await;
    (id, filter)
}

/// Ends a subscription as a server does that has nothing more to say.
async fn end(peer: &mut ScriptedPeer, id: &Value) {
    answer(peer, &json!({"id": id}), json!({"resultType": "complete"})).await;
}

async fn quiet(peer: &mut ScriptedPeer, wait: Duration) {
    let heard = timeout(wait, peer.receive()).await;
    assert!(heard.is_err(), "{heard:?}");
}

async fn settle() {
    sleep(Duration::from_millis(20)).await;
}

async fn subscription(peer: &mut ScriptedPeer, session: &ClientSession) -> (Subscription, Value) {
    let listener = session.clone();
    let subscribing = tokio::spawn(async move { listener.listen(tools()).await });
    let (id, _) = agree(peer).await;
    (subscribing.await.unwrap().unwrap(), id)
}

fn watching(session: &ClientSession, uri: &'static str) -> JoinHandle<Result<ResourceWatch>> {
    let session = session.clone();
    tokio::spawn(async move { session.watch_resource(uri).await })
}

#[tokio::test(start_paused = true)]
async fn p5_a_subscription_that_the_server_ends_is_taken_up_again() {
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
    // One that was taken back is, too; and after a while all begins anew.
    sleep(SECOND * 3600).await;
    let start = Instant::now();
    let taken_back =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    peer.send(taken_back).await.unwrap();
    let (id, _) = listen(&mut peer).await;
    assert!(start.elapsed() <= SECOND / 2 + Duration::from_millis(1));
    assert_eq!(subscription.end(), None);
    // The server can agree to less than before.
    acknowledge(&mut peer, &id, json!({})).await;
    let nothing = SubscriptionFilter::default();
    assert_eq!(
        subscription.next().await,
        Some(SubscriptionEvent::Resumed(nothing.clone()))
    );
    assert_eq!(*subscription.filter(), nothing);
    // A server that agrees to nothing is not asked for ever.
    end(&mut peer, &id).await;
    assert_eq!(subscription.ended().await, SubscriptionEnd::Graceful);
    quiet(&mut peer, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn p5_a_server_that_fails_is_asked_less_and_less_often() {
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
    // Where it cannot help it is not asked again.
    end(&mut peer, &id).await;
    let (id, _) = listen(&mut peer).await;
    refuse(&mut peer, &json!({"id": id}), super::method_not_found()).await;
    assert_eq!(subscription.next().await, None);
    assert_eq!(subscription.end(), Some(SubscriptionEnd::Remote));
    quiet(&mut peer, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn p5_an_interrupted_subscription_ends_when_this_side_or_the_session_does() {
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
async fn what_is_kept_is_worthless_after_an_interruption() {
    let (mut peer, session) = modern(client()).await;
    let (mut subscription, id) = subscription(&mut peer, &session).await;
    for resumed in [false, true] {
        if resumed {
            end(&mut peer, &id).await;
            // Until the server is heard again, its own word counts.
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
async fn p5_handlers_are_called_after_an_interruption() {
    let (sender, mut heard) = mpsc::channel(16);
    let client = client().on_tools_changed(move |_| {
        let sender = sender.clone();
        async move { sender.send(()).await.unwrap() }
    });
    let (mut peer, _session) = modern(client).await;
    let (id, filter) = agree(&mut peer).await;
    assert_eq!(filter, json!({"toolsListChanged": true}));
    settle().await;
    assert!(heard.try_recv().is_err());
    end(&mut peer, &id).await;
    let (id, again) = agree(&mut peer).await;
    assert_eq!(again, filter);
    heard.recv().await.unwrap();
    tell(&mut peer, &id, TOOLS, json!({})).await;
    heard.recv().await.unwrap();
    settle().await;
    assert!(heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn p1_a_session_has_one_subscription_for_all_that_is_watched() {
    let client = client().on_tools_changed(|_| async {});
    let (mut peer, session) = modern(client).await;
    let (first, _) = agree(&mut peer).await;

    let watch = watching(&session, "file:///a");
    let (second, filter) = listen(&mut peer).await;
    let both = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(filter, both);
    // The old one is not ended before the new one is there, and what is still said on it is heard.
    quiet(&mut peer, SECOND).await;
    acknowledge(&mut peer, &second, filter).await;
    let mut watch = watch.await.unwrap().unwrap();
    tell(&mut peer, &first, UPDATED, json!({"uri": "file:///a"})).await;
    assert_eq!(watch.next().await.unwrap().uri, "file:///a");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], first);

    // Others that watch the same cost nothing.
    let mut other = session.watch_resource("file:///a").await.unwrap();
    tell(
        &mut peer,
        &second,
        UPDATED,
        json!({"uri": "file:///a/part"}),
    )
    .await;
    tell(&mut peer, &second, UPDATED, json!({"uri": "file:///ab"})).await;
    for watch in [&mut watch, &mut other] {
        assert_eq!(watch.next().await.unwrap().uri, "file:///a/part");
        let more = timeout(SECOND / 100, watch.next()).await;
        assert!(more.is_err(), "{more:?}");
    }
    drop(watch);
    quiet(&mut peer, SECOND).await;

    // When the last goes, the subscription is for what is left.
    drop(other);
    let (third, filter) = agree(&mut peer).await;
    assert_eq!(filter, json!({"toolsListChanged": true}));
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], second);
    assert_ne!(third, second);
    quiet(&mut peer, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn p1_who_watches_hears_of_an_interruption_and_of_the_end() {
    let (mut peer, session) = modern(client()).await;
    let watch = watching(&session, "file:///a");
    let (id, _) = agree(&mut peer).await;
    let mut watch = watch.await.unwrap().unwrap();
    end(&mut peer, &id).await;
    // Who comes meanwhile waits for the next answer.
    let other = watching(&session, "file:///b");
    let (id, filter) = listen(&mut peer).await;
    assert_eq!(
        filter["resourceSubscriptions"],
        json!(["file:///a", "file:///b"])
    );
    assert!(!other.is_finished());
    acknowledge(&mut peer, &id, filter).await;
    let mut other = other.await.unwrap().unwrap();
    assert_eq!(watch.next().await.unwrap().uri, "file:///a");
    // A server that is asked again and agrees to less has ended the watch.
    end(&mut peer, &id).await;
    let (id, _) = listen(&mut peer).await;
    acknowledge(
        &mut peer,
        &id,
        json!({"resourceSubscriptions": ["file:///b"]}),
    )
    .await;
    assert_eq!(watch.next().await, None);
    assert_eq!(watch.end(), Some(SubscriptionEnd::Remote));
    assert_eq!(other.next().await.unwrap().uri, "file:///b");
    quiet(&mut peer, SECOND).await;
    drop(session);
    drop(watch);
    drop(peer);
    // It was an update, too, that nobody had taken.
    while other.next().await.is_some() {}
    assert_eq!(other.end(), Some(SubscriptionEnd::Remote));
}

#[tokio::test(start_paused = true)]
async fn p1_what_the_server_does_not_agree_to_is_an_error() {
    let (mut peer, session) = modern(client().on_tools_changed(|_| async {})).await;
    let (first, _) = agree(&mut peer).await;
    let watch = watching(&session, "file:///secret");
    let (second, _) = listen(&mut peer).await;
    acknowledge(&mut peer, &second, json!({"toolsListChanged": true})).await;
    let error = watch.await.unwrap().unwrap_err();
    assert!(error.is_unsupported());
    insta::assert_snapshot!(error, @"the server does not tell of changes of file:///secret: it left it out of what it agreed to");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], first);

    // A refusal is for who asked; what there was goes on, and nobody is asked again.
    for (code, message) in [(-32602, "no"), (-32603, "too many")] {
        let watch = watching(&session, "file:///other");
        let (id, _) = listen(&mut peer).await;
        let error = json!({"code": code, "message": message});
        refuse(&mut peer, &json!({"id": id}), error).await;
        let error: Error = watch.await.unwrap().unwrap_err();
        assert_eq!(error.message(), message);
        assert_eq!(error.code(), oxmcp::ErrorCode::from(code));
    }
    quiet(&mut peer, SECOND * 600).await;

    // Nothing is sent to a server that tells nobody of resources.
    let (_peer, session) = super::session(Revision::LATEST).await;
    let error = session.watch_resource("file:///a").await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn p1_a_server_that_cannot_be_asked_is_asked_no_more() {
    let (mut peer, session) = modern(client()).await;
    for _ in 0..2 {
        let watch = watching(&session, "file:///a");
        let (id, _) = listen(&mut peer).await;
        refuse(&mut peer, &json!({"id": id}), super::method_not_found()).await;
        let error = watch.await.unwrap().unwrap_err();
        assert_eq!(error.message(), "Method not found");
    }
    // Nor is one that says nothing.
    let watch = watching(&session, "file:///a");
    let (id, _) = listen(&mut peer).await;
    let error = watch.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
    quiet(&mut peer, SECOND * 600).await;
    // Nor is one that nobody waits for.
    let watch = watching(&session, "file:///a");
    let (id, _) = listen(&mut peer).await;
    watch.abort();
    settle().await;
    acknowledge(
        &mut peer,
        &id,
        json!({"resourceSubscriptions": ["file:///a"]}),
    )
    .await;
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
    quiet(&mut peer, SECOND * 600).await;
}

#[tokio::test(start_paused = true)]
async fn p1_legacy_servers_are_asked_once_for_each_resource() {
    let (mut peer, session) = legacy().await;
    let watches = ["file:///a", "file:///a", "file:///b"].map(|uri| watching(&session, uri));
    for uri in ["file:///a", "file:///b"] {
        let request = expect(&mut peer, "resources/subscribe").await;
        assert_eq!(request["params"]["uri"], uri);
        answer(&mut peer, &request, json!({})).await;
    }
    let [first, second, other] = watches;
    let mut first = first.await.unwrap().unwrap();
    let mut second = second.await.unwrap().unwrap();
    let other = other.await.unwrap().unwrap();
    let update = json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "file:///a"}});
    peer.send(update).await.unwrap();
    assert_eq!(first.next().await.unwrap().uri, "file:///a");
    assert_eq!(second.next().await.unwrap().uri, "file:///a");
    drop(first);
    quiet(&mut peer, SECOND).await;
    drop(second);
    let request = expect(&mut peer, "resources/unsubscribe").await;
    assert_eq!(request["params"]["uri"], "file:///a");

    // Who comes back while it is taken back asks anew, and later.
    let again = watching(&session, "file:///a");
    settle().await;
    answer(&mut peer, &request, json!({})).await;
    let request = expect(&mut peer, "resources/subscribe").await;
    let error = json!({"code": -32002, "message": "it is gone"});
    refuse(&mut peer, &request, error).await;
    assert_eq!(again.await.unwrap().unwrap_err().message(), "it is gone");

    drop(peer);
    session.wait().await.unwrap();
    settle().await;
    assert_eq!(other.end(), Some(SubscriptionEnd::Remote));
    assert!(
        session
            .watch_resource("file:///a")
            .await
            .unwrap_err()
            .is_closed()
    );
}

#[tokio::test(start_paused = true)]
async fn p1_what_is_not_taken_is_bounded() {
    let limits = Limits {
        max_queued_notifications: 2,
        ..Limits::default()
    };
    let (mut peer, session) = modern(client().limits(limits)).await;
    let watch = watching(&session, "file:///dir/");
    let (id, _) = agree(&mut peer).await;
    let mut watch = watch.await.unwrap().unwrap();
    for name in ["a", "b", "b", "c"] {
        let uri = format!("file:///dir/{name}");
        tell(&mut peer, &id, UPDATED, json!({"uri": uri})).await;
    }
    settle().await;
    assert_eq!(watch.next().await.unwrap().uri, "file:///dir/b");
    assert_eq!(watch.next().await.unwrap().uri, "file:///dir/c");
    // It ends when the session is closed.
    let closing = tokio::spawn(async move { session.close().await });
    assert_eq!(watch.next().await, None);
    assert_eq!(watch.end(), Some(SubscriptionEnd::Local));
    peer.close().await.unwrap();
    closing.await.unwrap().unwrap();
}

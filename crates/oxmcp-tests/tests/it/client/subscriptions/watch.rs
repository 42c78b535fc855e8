//! Watched resources, in every revision.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use oxmcp::{
    ClientSession, Error, Limits, RequestContext, Resource, ResourceWatch, Result, Revision,
    Server, SubscriptionEnd,
    testing::{self, ScriptedPeer},
};
use serde_json::json;
use tokio::{task::JoinHandle, time::timeout};

use crate::client::{
    answer, client, connecting, expect, refuse, soon,
    subscriptions::resync::{
        SECOND, acknowledge, agree, end, listen, modern, quiet, resources, settle, tell,
    },
};

const UPDATED: &str = "notifications/resources/updated";

/// A session with a scripted legacy server that declares all notifications of changes.
async fn legacy() -> (ScriptedPeer, ClientSession) {
    let client = client().revisions([Revision::V2025_11_25]);
    let (mut peer, connecting) = connecting(client).await;
    let opening = expect(&mut peer, "initialize").await;
    let mut initialized = crate::client::initialized("2025-11-25");
    initialized["capabilities"] = resources();
    answer(&mut peer, &opening, initialized).await;
    expect(&mut peer, "notifications/initialized").await;
    (peer, connecting.await.unwrap().unwrap())
}

fn watching(session: &ClientSession, uri: &'static str) -> JoinHandle<Result<ResourceWatch>> {
    let session = session.clone();
    tokio::spawn(async move { session.watch_resource(uri).await })
}

#[tokio::test(start_paused = true)]
async fn watches_share_one_subscription_per_session() {
    let client = client().on_tools_changed(|_| async {});
    let (mut peer, session) = modern(client).await;
    let (first, _) = agree(&mut peer).await;

    let watch = watching(&session, "file:///a");
    let (second, filter) = listen(&mut peer).await;
    let both = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(filter, both);
    // The old subscription does not end before the new one is acknowledged, and its last notifications are delivered.
    quiet(&mut peer, SECOND).await;
    acknowledge(&mut peer, &second, filter).await;
    let mut watch = watch.await.unwrap().unwrap();
    tell(&mut peer, &first, UPDATED, json!({"uri": "file:///a"})).await;
    assert_eq!(watch.next().await.unwrap().uri, "file:///a");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], first);

    // Another watch of the same resource sends nothing.
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

    // When the last watch is dropped, the subscription is replaced by one without the resource.
    drop(other);
    let (third, filter) = agree(&mut peer).await;
    assert_eq!(filter, json!({"toolsListChanged": true}));
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], second);
    assert_ne!(third, second);
    quiet(&mut peer, SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn watchers_are_notified_of_interruption_and_end() {
    let (mut peer, session) = modern(client()).await;
    let watch = watching(&session, "file:///a");
    let (id, _) = agree(&mut peer).await;
    let mut watch = soon("watch", watch).await.unwrap().unwrap();
    end(&mut peer, &id).await;
    // A watch that begins meanwhile waits for the next acknowledgement.
    let other = watching(&session, "file:///b");
    let (id, filter) = listen(&mut peer).await;
    assert_eq!(
        filter["resourceSubscriptions"],
        json!(["file:///a", "file:///b"])
    );
    assert!(!other.is_finished());
    acknowledge(&mut peer, &id, filter).await;
    let mut other = soon("watch", other).await.unwrap().unwrap();
    assert_eq!(soon("update", watch.next()).await.unwrap().uri, "file:///a");
    // A server that grants less after an interruption ends the watch.
    end(&mut peer, &id).await;
    let (id, _) = listen(&mut peer).await;
    acknowledge(
        &mut peer,
        &id,
        json!({"resourceSubscriptions": ["file:///b"]}),
    )
    .await;
    assert_eq!(soon("update", watch.next()).await, None);
    assert_eq!(watch.end(), Some(SubscriptionEnd::Remote));
    assert_eq!(soon("update", other.next()).await.unwrap().uri, "file:///b");
    quiet(&mut peer, SECOND).await;
    drop(session);
    drop(watch);
    drop(peer);
    // The interruption counts as an update, too, which was not read yet.
    while soon("update", other.next()).await.is_some() {}
    assert_eq!(other.end(), Some(SubscriptionEnd::Remote));
}

#[tokio::test(start_paused = true)]
async fn watch_refused_by_the_server_is_an_error() {
    let (mut peer, session) = modern(client().on_tools_changed(|_| async {})).await;
    let (first, _) = agree(&mut peer).await;
    let watch = watching(&session, "file:///secret");
    let (second, _) = listen(&mut peer).await;
    acknowledge(&mut peer, &second, json!({"toolsListChanged": true})).await;
    let error = watch.await.unwrap().unwrap_err();
    assert!(error.is_unsupported());
    insta::assert_snapshot!(error, @"the server did not subscribe to file:///secret: its acknowledgment leaves the resource out");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], first);

    // A refusal fails only its own watch; the open subscription continues, and no request is repeated.
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

    // Nothing is sent to a server that does not notify updates of resources.
    let (_peer, session) = crate::client::session(Revision::LATEST).await;
    let error = session.watch_resource("file:///a").await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn server_without_subscriptions_is_not_retried() {
    let (mut peer, session) = modern(client()).await;
    for _ in 0..2 {
        let watch = watching(&session, "file:///a");
        let (id, _) = listen(&mut peer).await;
        refuse(
            &mut peer,
            &json!({"id": id}),
            crate::client::method_not_found(),
        )
        .await;
        let error = watch.await.unwrap().unwrap_err();
        assert_eq!(error.message(), "Method not found");
    }
    // A server that does not answer is not asked again either.
    let watch = watching(&session, "file:///a");
    let (id, _) = listen(&mut peer).await;
    let error = watch.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error}");
    let cancelled = expect(&mut peer, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
    quiet(&mut peer, SECOND * 600).await;
    // Neither is a server whose watch was abandoned.
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
async fn legacy_servers_get_one_subscription_per_resource() {
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

    // A watch that begins during the unsubscription is requested again afterwards.
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
async fn rewatched_resource_needs_no_new_acknowledgement() {
    let (mut peer, session) = modern(client()).await;
    let watch = watching(&session, "file:///a");
    let (id, _) = agree(&mut peer).await;
    let watch = watch.await.unwrap().unwrap();
    // The server was not told of the dropped watch, so it need not grant it again.
    drop(watch);
    let again = timeout(SECOND, session.watch_resource("file:///a")).await;
    let mut again = again.expect("the subscription is still open").unwrap();
    tell(&mut peer, &id, UPDATED, json!({"uri": "file:///a"})).await;
    assert_eq!(again.next().await.unwrap().uri, "file:///a");

    let (mut peer, session) = legacy().await;
    let watch = watching(&session, "file:///a");
    let request = expect(&mut peer, "resources/subscribe").await;
    answer(&mut peer, &request, json!({})).await;
    drop(watch.await.unwrap().unwrap());
    let again = timeout(SECOND, session.watch_resource("file:///a")).await;
    let mut again = again.expect("the server still tells").unwrap();
    let update = json!({"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "file:///a"}});
    peer.send(update).await.unwrap();
    assert_eq!(again.next().await.unwrap().uri, "file:///a");
}

#[tokio::test(start_paused = true)]
async fn unread_updates_are_bounded() {
    let limits = Limits::default().max_queued_notifications(2);
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
    // The watch ends when the session is closed.
    let closing = tokio::spawn(async move { session.close().await });
    assert_eq!(watch.next().await, None);
    assert_eq!(watch.end(), Some(SubscriptionEnd::Local));
    peer.close().await.unwrap();
    closing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn updates_reach_watchers_in_every_revision() {
    for revision in Revision::ALL {
        let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (begins, ends) = (Arc::clone(&begun), Arc::clone(&ended));
        let server = Server::new("files", "1.0.0")
            .resource(Resource::text("file:///a", "a", ""))
            .on_subscribe(
                move |_: RequestContext, _: String| {
                    begins.fetch_add(1, Relaxed);
                    async { Ok::<_, Error>(()) }
                },
                move |_, _| {
                    ends.fetch_add(1, Relaxed);
                    async {}
                },
            );
        let connecting = testing::connect(&server).revision(revision);
        let session = connecting.await.unwrap();
        let mut watch = session.watch_resource("file:///a").await.unwrap();
        let mut other = session.watch_resource("file:///a").await.unwrap();
        for _ in 0..3 {
            server.resource_updated("file:///a");
            assert_eq!(watch.next().await.unwrap().uri, "file:///a", "{revision}");
            assert_eq!(other.next().await.unwrap().uri, "file:///a", "{revision}");
        }
        assert_eq!(begun.load(Relaxed), 1, "{revision}");
        drop((watch, other));
        tokio::time::sleep(SECOND).await;
        assert_eq!(ended.load(Relaxed), 1, "{revision}");
    }
}

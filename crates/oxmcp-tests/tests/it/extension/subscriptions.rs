//! Extensions' keys in the filters of subscriptions.

use std::sync::{Arc, Mutex};

use oxmcp::{
    Limits, Revision, SubscriptionEvent, protocol::SubscriptionFilter, testing::ScriptedPeer,
};
use serde_json::{Value, json};

use crate::extension::*;
use crate::support::{LEGACY, modern, script};

const KEY: &str = "com.example/towers";

fn towers() -> Extension {
    clock().listen_key(KEY).notifies::<Struck>(..)
}

async fn listen(peer: &mut ScriptedPeer, id: i64, filter: Value) -> Value {
    let listen = modern(id, "subscriptions/listen", json!({"notifications": filter}));
    let acknowledged = peer.ask(listen).await.unwrap();
    acknowledged["params"]["notifications"].clone()
}

async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn subscribed_key_is_acknowledged_and_notified() {
    let server = server(towers());
    let mut peer = script(&server).await;
    let honoured = listen(
        &mut peer,
        1,
        json!({KEY: ["north", "south"], "com.example/other": 1}),
    )
    .await;
    assert_eq!(honoured, json!({KEY: ["north", "south"]}));
    assert_eq!(
        listen(&mut peer, 2, json!({KEY: true})).await,
        json!({KEY: true})
    );
    assert_eq!(
        listen(&mut peer, 3, json!({KEY: "east"})).await,
        json!({KEY: "east"})
    );
    assert_eq!(
        listen(&mut peer, 4, json!({KEY: false})).await,
        json!({KEY: false})
    );
    assert_eq!(listen(&mut peer, 5, json!({})).await, json!({}));

    for (strikes, tower) in (1..).zip(["north", "east", "west"]) {
        server
            .publish::<Struck>(KEY, tower, hours(strikes))
            .unwrap();
    }
    peer.send(modern(9, "server/discover", json!({})))
        .await
        .unwrap();
    settle().await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        let message = peer.receive().await.unwrap();
        if message["method"] == Struck::NAME {
            let params = &message["params"];
            let id = params["_meta"]["io.modelcontextprotocol/subscriptionId"].as_i64();
            heard.push((id.unwrap(), params["hours"].as_i64().unwrap()));
        }
    }
    heard.sort_unstable();
    assert_eq!(heard, [(1, 1), (2, 1), (2, 2), (2, 3), (3, 2)]);
}

#[tokio::test]
async fn extension_decides_which_keys_are_granted() {
    let clock = clock().listen_key_with(KEY, |cx, asked| {
        assert!(cx.revision().is_modern());
        let granted: Vec<_> = asked
            .as_array()?
            .iter()
            .filter(|it| *it != "secret")
            .cloned()
            .collect();
        Some(granted.into())
    });
    let server = server(clock);
    let mut peer = script(&server).await;
    assert_eq!(
        listen(&mut peer, 1, json!({KEY: ["north", "secret"]})).await,
        json!({KEY: ["north"]})
    );
    assert_eq!(listen(&mut peer, 2, json!({KEY: true})).await, json!({}));
    server.publish::<Struck>(KEY, "secret", hours(1)).unwrap();
    server.publish::<Struck>(KEY, "north", hours(2)).unwrap();
    assert_eq!(peer.receive().await.unwrap()["params"]["hours"], 2);
}

#[tokio::test]
async fn publishing_reaches_clients_in_every_revision() {
    let server = server(towers());
    for revision in Revision::ALL {
        let heard: Arc<Mutex<Vec<u32>>> = Arc::default();
        let keep = Arc::clone(&heard);
        let hears = towers().notification::<Struck, _>(.., move |Hours { hours }: Hours| {
            keep.lock().unwrap().push(hours);
            async {}
        });
        let session = connect(&server, &client(hears), revision).await;
        session.ping().await.unwrap();
        for strikes in 1..=100 {
            server
                .publish::<Struck>(KEY, "north", hours(strikes))
                .unwrap();
        }
        for _ in 0..10 {
            settle().await;
            session.ping().await.unwrap();
        }
        assert_eq!(
            *heard.lock().unwrap(),
            (1..=100).collect::<Vec<_>>(),
            "{revision}"
        );
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn extension_keys_are_bounded_per_connection() {
    let limits = Limits::default()
        .max_watched_uris(3)
        .max_watched_uri_bytes(100);
    let server = server(towers()).limits(limits);
    let mut peer = script(&server).await;
    let ask = async |peer: &mut ScriptedPeer, id: i64, value: Value| {
        let filter = json!({"notifications": {KEY: value}});
        let answer = peer.ask(modern(id, "subscriptions/listen", filter)).await;
        answer.unwrap()
    };
    let refused = |answer: Value| {
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("the limit is 3 URIs with 100 bytes"),
            "{answer}"
        );
    };
    refused(ask(&mut peer, 1, json!(["x".repeat(80)])).await);
    for id in 2..5 {
        assert!(ask(&mut peer, id, json!("x")).await["params"].is_object());
    }
    refused(ask(&mut peer, 5, json!("x")).await);
}

#[tokio::test]
async fn any_thread_can_publish() {
    let server = server(towers());
    for revision in Revision::ALL {
        let (sender, mut heard) = tokio::sync::mpsc::channel(1);
        let hears = towers().notification::<Struck, _>(.., move |Hours { hours }: Hours| {
            sender.try_send(hours).unwrap();
            async {}
        });
        let session = connect(&server, &client(hears), revision).await;
        session.ping().await.unwrap();
        let other = server.clone();
        let publish = move || other.publish::<Struck>(KEY, "north", hours(7)).unwrap();
        std::thread::spawn(publish).join().unwrap();
        assert_eq!(heard.recv().await, Some(7), "{revision}");
        session.close().await.unwrap();
    }
}

#[tokio::test]
async fn client_can_subscribe_manually() {
    let server = server(towers());
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    let filter = SubscriptionFilter::default().with_other(KEY, json!(["north"]));
    let mut subscription = session.listen(filter.clone()).await.unwrap();
    assert_eq!(*subscription.filter(), filter);
    server.publish::<Struck>(KEY, "south", hours(1)).unwrap();
    server.publish::<Struck>(KEY, "north", hours(2)).unwrap();
    let Some(SubscriptionEvent::Other { method, params, .. }) = subscription.next().await else {
        panic!("nothing was heard");
    };
    let params: Value = serde_json::from_str(params.unwrap().get()).unwrap();
    assert_eq!((&*method, &params["hours"]), (Struck::NAME, &json!(2)));
}

#[tokio::test]
async fn legacy_clients_receive_published_notifications_without_declaration() {
    for extension in [towers(), towers().requires_client()] {
        let server = server(extension);
        for revision in LEGACY {
            let mut peer = script(&server).await;
            peer.initialize(revision).await.unwrap();
            let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
            assert_eq!(peer.ask(ping).await.unwrap()["id"], 1, "{revision}");
            server.publish::<Struck>(KEY, "north", hours(1)).unwrap();
            let heard = peer.receive().await.unwrap();
            assert_eq!(heard["method"], Struck::NAME, "{revision}");
            assert_eq!(heard["params"]["hours"], 1, "{revision}");
        }
    }
}

#[tokio::test]
async fn legacy_clients_receive_only_notifications_of_their_revision() {
    let clock = clock().listen_key(KEY);
    let server = server(clock.notifies::<Struck>(Revision::V2026_07_28..));
    for revision in LEGACY {
        let mut peer = script(&server).await;
        peer.initialize(revision).await.unwrap();
        let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        assert_eq!(peer.ask(ping(1)).await.unwrap()["id"], 1, "{revision}");
        server.publish::<Struck>(KEY, "north", hours(1)).unwrap();
        settle().await;
        assert_eq!(peer.ask(ping(2)).await.unwrap()["id"], 2, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn unread_subscription_ends_without_delaying_others() {
    let limits = Limits::default()
        .max_queued_events(10)
        .max_unsent_bytes(200);
    let server = server(towers()).limits(limits);
    let mut peer = script(&server).await;
    listen(&mut peer, 1, json!({KEY: true})).await;
    for strikes in 0..1_000 {
        server
            .publish::<Struck>(KEY, "north", hours(strikes))
            .unwrap();
        tokio::task::yield_now().await;
    }
    let mut heard = 0;
    let end = loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 1 {
            break message;
        }
        assert_eq!(message["params"]["hours"], heard);
        heard += 1;
    };
    assert_eq!(end["error"]["code"], -32603, "{end}");
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("too slowly"),
        "{end}"
    );
    assert!(heard < 1_000);
    // The session continues, and the place of the subscription is free again.
    assert_eq!(
        listen(&mut peer, 2, json!({KEY: true})).await,
        json!({KEY: true})
    );
}

#[tokio::test]
async fn keys_without_subscriptions_cannot_be_published() {
    let error = server(clock())
        .publish::<Struck>(KEY, true, hours(1))
        .unwrap_err();
    assert!(error.message().contains("Extension::listen_key"), "{error}");
}

//! The bus: the contract, its data in Redis, and missed messages.

use std::{future::poll_fn, time::Duration};

use futures_util::stream::BoxStream;
use oxmcp::{
    store::{Bus, Delivery},
    testing,
};
use tokio::time::timeout;

use super::server::{key, own, shared};

async fn next(subscription: &mut BoxStream<'static, Delivery>) -> Option<Delivery> {
    let next = poll_fn(|cx| subscription.as_mut().poll_next(cx));
    timeout(Duration::from_secs(60), next)
        .await
        .expect("nothing comes")
}

#[tokio::test]
async fn session_bus_contract_holds() {
    let Some((server, prefix)) = shared("the contract of buses") else {
        return;
    };
    let make = || async { (server.connect(&prefix).await, server.connect(&prefix).await) };
    testing::bus_contract(make).await.unwrap();
}

#[tokio::test]
async fn subscription_ends_with_its_connection_and_is_renewed() {
    let Some(server) = own("subscriptions of the bus", &[]) else {
        return;
    };
    let store = server.connect("shop").await;
    let mut subscription = store.subscribe(&["changes"]).await.unwrap();
    let killed: usize = server.says(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    assert!(killed > 0);
    assert_eq!(next(&mut subscription).await, None);
    let mut subscription = store.subscribe(&["changes"]).await.unwrap();
    store.publish("changes", "1".into()).await.unwrap();
    assert!(matches!(
        next(&mut subscription).await,
        Some(Delivery::Message { .. })
    ));
}

#[tokio::test]
async fn slow_subscriber_misses_messages_and_is_notified() {
    let Some((server, prefix)) = shared("a slow subscriber") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let mut slow = store.subscribe(&["changes"]).await.unwrap();
    let mut quick = store.subscribe(&["changes"]).await.unwrap();
    for number in 0..5000 {
        store
            .publish("changes", number.to_string().into())
            .await
            .unwrap();
        next(&mut quick).await.unwrap();
    }
    assert_eq!(next(&mut slow).await, Some(Delivery::Missed));
}

#[tokio::test]
async fn messages_are_sealed_and_unopenable_ones_are_missed() {
    let Some((server, prefix)) = shared("secrets of the bus") else {
        return;
    };
    let store = server.connect(&prefix).await;
    let mut subscription = store.subscribe(&["changes"]).await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let mut listening = client.get_connection().unwrap();
    let mut listening = listening.as_pubsub();
    let channel = format!("{{{prefix}}}:bus:changes");
    listening.subscribe(&channel).unwrap();
    store.publish("changes", "secret".into()).await.unwrap();
    let heard = listening.get_message().unwrap();
    let heard = heard.get_payload_bytes();
    assert!(!heard.windows(6).any(|it| it == b"secret"));
    next(&mut subscription).await.unwrap();
    let other = server.connect(&prefix).await.keys([key(2)]);
    other.publish("changes", "1".into()).await.unwrap();
    // The end of a subscription reports missed messages.
    assert_eq!(next(&mut subscription).await, None);
}

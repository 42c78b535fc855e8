//! The bus: the contract, what Redis sees, and what is missed.

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
    timeout(Duration::from_secs(10), next)
        .await
        .expect("nothing comes")
}

#[tokio::test]
async fn the_contract_holds() {
    let Some((server, prefix)) = shared("the contract of buses") else {
        return;
    };
    let make = || async { (server.connect(&prefix).await, server.connect(&prefix).await) };
    testing::bus_contract(make).await.unwrap();
}

#[tokio::test]
async fn a_subscription_ends_with_its_connection_and_another_one_begins() {
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
async fn what_is_not_taken_is_bounded_and_said_to_be_missed() {
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
async fn messages_are_sealed_and_one_that_does_not_open_is_missed() {
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
    // The end of a subscription says that something was missed.
    assert_eq!(next(&mut subscription).await, None);
}

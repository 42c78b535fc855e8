//! The stream that a client gets by GET, at one of several nodes.

use std::{collections::BTreeSet, time::Duration};

use oxmcp::{
    Limits, Server,
    protocol::{LoggingLevel, LoggingMessageParams},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::pair::{Pair, turns};
use crate::http::server::peer::{Event, Events, LEGACY};

/// Two servers that send messages of their own accord, and have no lists that may have changed.
fn servers() -> [Server; 2] {
    [(); 2].map(|()| Server::new("speaker", "1.0.0").logging())
}

/// Sends a log message that belongs to no request, and gives it time to arrive.
async fn say(server: &Server, text: &str) {
    say_at_once(server, text).await;
    turns().await;
}

async fn say_at_once(server: &Server, text: &str) {
    let session = server.sessions().next().unwrap();
    let message = LoggingMessageParams::new(LoggingLevel::Error, &text).unwrap();
    session.log(message).await.unwrap();
}

fn said(event: &Event) -> Value {
    event.data["params"]["data"].clone()
}

async fn next(events: &mut Events) -> Value {
    let next = async {
        loop {
            let event = events.next().await.expect("the stream has ended");
            if !event.data.is_null() {
                return said(&event);
            }
        }
    };
    let next = timeout(Duration::from_secs(10), next).await;
    next.expect("nothing comes")
}

async fn is_silent(events: &mut Events) {
    let next = async {
        while let Some(event) = events.next().await {
            assert!(event.data.is_null(), "{event:?}");
        }
    };
    let ended = timeout(Duration::from_secs(60), next).await;
    assert!(ended.is_err(), "the stream has ended");
}

#[tokio::test(start_paused = true)]
async fn stream_belongs_to_the_node_that_opened_last() {
    let servers = servers();
    let Pair { one, other, .. } = Pair::of([&servers[0], &servers[1]]).await;
    for (here, there) in [(&one, &other), (&other, &one), (&one, &other)] {
        let old = Events::of(here.get().await);
        turns().await;
        let mut new = Events::of(there.get().await);
        let rest = timeout(Duration::from_secs(1), old.rest()).await;
        assert!(rest.expect("it ends").iter().all(|it| it.data.is_null()));
        say(&servers[0], "a").await;
        assert_eq!(next(&mut new).await, "a");
        drop(new);
        turns().await;
    }
}

#[tokio::test(start_paused = true)]
async fn client_resuming_elsewhere_leaves_the_first_node() {
    let servers = servers();
    let Pair { one, other, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let mut old = Events::of(one.get().await);
    let seen = old.next().await.unwrap().id.unwrap();
    say(&servers[0], "a").await;
    assert_eq!(next(&mut old).await, "a");
    turns().await;
    // Nothing is read from the new stream yet, so only the lease shows that the client has moved.
    let response = other.resume(&seen).await;
    let rest = timeout(Duration::from_secs(1), old.rest()).await;
    assert!(rest.expect("it ends").is_empty());
    say(&servers[0], "b").await;
    let mut new = Events::of(response);
    assert_eq!(next(&mut new).await, "a");
    assert_eq!(next(&mut new).await, "b");
}

#[tokio::test(start_paused = true)]
async fn simultaneous_messages_of_two_nodes_arrive_once() {
    let servers = servers();
    let Pair { one, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let mut events = Events::of(one.get().await);
    for order in [[0, 1], [1, 0]] {
        turns().await;
        for number in order {
            say_at_once(&servers[number], &number.to_string()).await;
        }
        let mut both = [next(&mut events).await, next(&mut events).await];
        both.sort_by_key(ToString::to_string);
        assert_eq!(both, ["0", "1"]);
    }
    is_silent(&mut events).await;
}

#[tokio::test(start_paused = true)]
async fn message_of_one_node_arrives_where_client_listens() {
    for version in ["2025-03-26", LEGACY] {
        let servers = servers();
        let limits = Limits::default();
        let all = [&servers[0], &servers[1]];
        let Pair { one, .. } = Pair::open(all, version, json!({}), limits).await;
        let mut events = Events::of(one.get().await);
        for turn in 0..5 {
            for (number, server) in servers.iter().enumerate() {
                let text = format!("{turn} {number}");
                say(server, &text).await;
                assert_eq!(next(&mut events).await, text);
            }
        }
        is_silent(&mut events).await;
    }
}

#[tokio::test(start_paused = true)]
async fn message_without_a_listener_arrives_later_once() {
    for version in ["2025-06-18", LEGACY] {
        let servers = servers();
        let limits = Limits::default();
        let all = [&servers[0], &servers[1]];
        let Pair { one, other, .. } = Pair::open(all, version, json!({}), limits).await;
        for round in 0..3 {
            for (session, silent) in [(&one, &other), (&other, &one)] {
                let texts = [format!("{round} a"), format!("{round} b")];
                for (server, text) in servers.iter().zip(&texts) {
                    say(server, text).await;
                }
                let mut events = Events::of(session.get().await);
                for text in &texts {
                    assert_eq!(next(&mut events).await, *text);
                }
                is_silent(&mut events).await;
                drop(events);
                turns().await;
                // The messages were delivered, so no node sends them again, wherever the client comes next.
                let mut events = Events::of(silent.get().await);
                is_silent(&mut events).await;
                drop(events);
                turns().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn moving_client_gets_every_message_exactly_once() {
    let servers = servers();
    let Pair { one, other, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let mut seen: Option<String> = None;
    let mut all = Vec::new();
    for turn in 0..40 {
        let session = if turn % 3 == 0 { &one } else { &other };
        let response = match &seen {
            Some(seen) => session.resume(seen).await,
            None => session.get().await,
        };
        let mut events = Events::of(response);
        for number in 0..turn % 5 {
            say_at_once(&servers[number % 2], &format!("{turn} {number}")).await;
        }
        // Some events are read, and some are left to the next stream.
        for _ in 0..turn % 4 {
            let Ok(Some(event)) = timeout(Duration::from_millis(500), events.next()).await else {
                break;
            };
            seen.clone_from(&event.id);
            if !event.data.is_null() {
                all.push(said(&event).as_str().unwrap().to_owned());
            }
        }
    }
    let mut events = Events::of(one.resume(seen.as_deref().unwrap()).await);
    while let Ok(Some(event)) = timeout(Duration::from_secs(1), events.next()).await {
        if !event.data.is_null() {
            all.push(said(&event).as_str().unwrap().to_owned());
        }
    }
    let expected: Vec<_> = (0..40)
        .flat_map(|turn| (0..turn % 5).map(move |number| format!("{turn} {number}")))
        .collect();
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
    assert_eq!(distinct, expected.iter().collect());
}

#[tokio::test(start_paused = true)]
async fn undelivered_message_is_sent_again() {
    let servers = servers();
    let Pair { one, other, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let events = one.listen().await;
    say(&servers[0], "a").await;
    drop(events);
    turns().await;
    let mut events = Events::of(other.get().await);
    assert_eq!(next(&mut events).await, "a");
}

#[tokio::test(start_paused = true)]
async fn stream_begun_without_store_is_taken_over_later() {
    let servers = servers();
    let Pair { one, links, .. } = Pair::of([&servers[0], &servers[1]]).await;
    links[0].cut(true);
    let mut events = Events::of(one.get().await);
    sleep(Duration::from_secs(10)).await;
    links[0].cut(false);
    say(&servers[1], "a").await;
    let next = timeout(Duration::from_secs(60), async {
        while let Some(event) = events.next().await {
            if !event.data.is_null() {
                return said(&event);
            }
        }
        Value::Null
    });
    assert_eq!(next.await.unwrap(), "a");
}

#[tokio::test(start_paused = true)]
async fn store_outage_does_not_cut_off_local_clients() {
    let servers = servers();
    let Pair { one, links, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let mut events = one.listen().await;
    links[0].cut(true);
    say(&servers[0], "a").await;
    let event = events.next().await.unwrap();
    assert_eq!((event.id.clone(), said(&event)), (None, json!("a")));
    links[0].cut(false);
    sleep(Duration::from_secs(10)).await;
    say(&servers[0], "b").await;
    let event = events.next().await.unwrap();
    assert!(event.id.is_some() && said(&event) == "b", "{event:?}");
    say(&servers[1], "c").await;
    assert_eq!(next(&mut events).await, "c");
}

#[tokio::test(start_paused = true)]
async fn message_waits_until_the_store_accepts_it() {
    let servers = servers();
    let Pair { one, links, .. } = Pair::of([&servers[0], &servers[1]]).await;
    let mut events = one.listen().await;
    links[1].cut(true);
    say(&servers[1], "a").await;
    is_silent(&mut events).await;
    links[1].cut(false);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(next(&mut events).await, "a");
    is_silent(&mut events).await;
}

#[tokio::test(start_paused = true)]
async fn unannounced_change_is_found_soon() {
    let servers = servers();
    let Pair { one, links, .. } = Pair::of([&servers[0], &servers[1]]).await;
    links[0].deafen();
    let mut events = one.listen().await;
    say(&servers[1], "a").await;
    let event = timeout(Duration::from_secs(31), events.next()).await;
    assert_eq!(said(&event.unwrap().unwrap()), "a");
}

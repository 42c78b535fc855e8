//! Notifications of changes, which the client of a session gets once, however many nodes have the session.

use std::time::Duration;

use bytes::Bytes;
use oxmcp::{
    Limits, RequestContext, Resource, Server,
    middleware::{self, Next, Request},
    store::Bus,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::pair::{Pair, turns};
use crate::http::server::peer::{Events, LEGACY, json};
use crate::support::idle;

const WATCHED: &str = "test://a";
const TOOLS: &str = "notifications/tools/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

fn server() -> Server {
    Server::new("shop", "1.0.0")
        .tool(idle("nap"))
        .subscriptions()
}

/// Two servers whose updates are sent at once (0), or first pass a visibility check (1) or a layer (2).
fn servers(number: usize) -> [Server; 2] {
    async fn pass(request: Request, next: Next) -> oxmcp::Result<middleware::Response> {
        next.run(request).await
    }
    let resource = || Resource::text(WATCHED, "a", "text");
    [(); 2].map(|()| match number {
        0 => server().resource(resource()),
        1 => server().resource(resource().visible_to(|_: &RequestContext| true)),
        _ => (server().resource(resource())).outgoing_layer(middleware::from_fn(pass)),
    })
}

/// Two nodes that have a session whose client is subscribed to a resource.
async fn watched(servers: &[Server; 2], version: &str) -> Pair {
    let all = [&servers[0], &servers[1]];
    let pair = Pair::open(all, version, json!({}), Limits::default()).await;
    let params = json!({"uri": WATCHED});
    json(pair.one.call(1, "resources/subscribe", params).await).await;
    turns().await;
    // The other node takes the subscription over before its next answer.
    json(pair.other.call(2, "ping", json!({})).await).await;
    // A node that has just started may have missed changes, and may send notifications because of that.
    notified(&mut Events::of(pair.one.get().await)).await;
    turns().await;
    pair
}

/// The URIs or methods of the notifications that arrive until the stream is silent, and the id of the last event.
async fn heard(events: &mut Events) -> (Vec<String>, Option<String>) {
    let (mut heard, mut last) = (Vec::new(), None);
    while let Ok(event) = timeout(Duration::from_secs(8), events.next()).await {
        let event = event.expect("the stream has ended");
        last = event.id.or(last);
        if !event.data.is_null() {
            let uri = event.data["params"]["uri"].as_str();
            let what = uri.or_else(|| event.data["method"].as_str()).unwrap();
            heard.push(what.to_owned());
        }
    }
    (heard, last)
}

async fn notified(events: &mut Events) -> Vec<String> {
    heard(events).await.0
}

#[tokio::test(start_paused = true)]
async fn change_arrives_once_where_the_client_listens() {
    for version in ["2025-03-26", "2025-06-18", LEGACY] {
        for kind in [0, 1, 2] {
            let servers = servers(kind);
            let Pair { one, other, .. } = watched(&servers, version).await;
            for here in [&one, &other] {
                let mut events = Events::of(here.get().await);
                assert_eq!(notified(&mut events).await, [""; 0]);
                for server in &servers {
                    server.resource_updated(WATCHED);
                    assert_eq!(notified(&mut events).await, [WATCHED], "{version} {kind}");
                    server.resource_updated(WATCHED);
                    server.remove_tools(["nap"]);
                    server.resource_updated(WATCHED);
                    assert_eq!(notified(&mut events).await, [TOOLS, WATCHED]);
                    server.add_tools([idle("nap")]).unwrap();
                    assert_eq!(notified(&mut events).await, [TOOLS]);
                }
                // Two changes, possibly at the same time, are notified once or twice.
                for server in &servers {
                    server.resource_updated(WATCHED);
                }
                let told = notified(&mut events).await;
                assert!((1..=2).contains(&told.len()), "{told:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn change_arrives_once_for_a_late_listener() {
    for version in ["2025-06-18", LEGACY] {
        let servers = servers(0);
        let Pair { one, other, .. } = watched(&servers, version).await;
        for (here, there) in [(&one, &other), (&other, &one)] {
            for server in &servers {
                server.resource_updated(WATCHED);
                sleep(Duration::from_secs(1)).await;
            }
            for listening in [here, there] {
                let mut events = Events::of(listening.get().await);
                let expected = if std::ptr::eq(listening, here) { 2 } else { 0 };
                assert_eq!(notified(&mut events).await, vec![WATCHED; expected]);
                drop(events);
                turns().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn change_arrives_once_for_a_moving_client() {
    for moves in [false, true] {
        let servers = servers(0);
        let Pair { one, other, links } = watched(&servers, LEGACY).await;
        let mut events = one.listen().await;
        links[1].cut(true);
        servers[0].resource_updated(WATCHED);
        let (told_first, last) = heard(&mut events).await;
        assert_eq!(told_first, [WATCHED]);
        drop(events);
        turns().await;
        // The other node has not stored its notification yet.
        links[1].cut(false);
        let mut events = if moves {
            sleep(Duration::from_secs(15)).await;
            Events::of(other.resume(&last.unwrap()).await)
        } else {
            Events::of(one.get().await)
        };
        assert_eq!(notified(&mut events).await, [""; 0]);
        servers[1].resource_updated(WATCHED);
        assert_eq!(notified(&mut events).await, [WATCHED]);
    }
}

#[tokio::test(start_paused = true)]
async fn lost_change_is_sent_again() {
    let servers = servers(0);
    let Pair { one, other, .. } = watched(&servers, LEGACY).await;
    let mut events = Events::of(one.get().await);
    let seen = events.next().await.unwrap().id.unwrap();
    servers[1].resource_updated(WATCHED);
    assert_eq!(notified(&mut events).await, [WATCHED]);
    // The notification is sent again wherever the client resumes.
    for session in [&one, &other, &other, &one] {
        let mut again = Events::of(session.resume(&seen).await);
        assert_eq!(notified(&mut again).await, [WATCHED]);
        events = again;
    }
    drop(events);
}

#[tokio::test(start_paused = true)]
async fn uncertain_changes_are_reported_as_everything_each_time() {
    let servers = servers(0);
    let Pair { one, links, .. } = watched(&servers, LEGACY).await;
    let mut events = one.listen().await;
    for round in 0..2 {
        servers[0].resource_updated(WATCHED);
        for number in 0..2000 {
            servers[0].resource_updated(format!("test://{number}"));
        }
        let mut all = notified(&mut events).await;
        // One node knows what has changed, and the other node does not.
        all.sort();
        assert_eq!(all, [RESOURCES, TOOLS, WATCHED, WATCHED], "{round}");
        for _ in 0..5000 {
            links[0].publish("changes", Bytes::new()).await.unwrap();
        }
        let mut all = notified(&mut events).await;
        all.sort();
        all.dedup();
        assert_eq!(all, [RESOURCES, TOOLS, WATCHED], "{round}");
    }
}

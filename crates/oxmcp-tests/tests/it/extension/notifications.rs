//! Notifications of extensions, in both directions.

use std::sync::{Arc, Mutex};

use oxmcp::{
    RequestContext, Revision, Tool,
    middleware::{self, Next, Request},
    protocol::{NotificationParams, Root},
};
use serde_json::json;

use crate::extension::*;
use crate::support::{LEGACY, modern, script};

type Heard = Arc<Mutex<Vec<u32>>>;

/// An extension that records the hours of the notifications that it receives.
fn hears(heard: &Heard) -> Extension {
    let heard = Arc::clone(heard);
    clock().notification::<Struck, _>(.., move |Hours { hours }: Hours| {
        let heard = Arc::clone(&heard);
        async move {
            tokio::task::yield_now().await;
            heard.lock().unwrap().push(hours);
        }
    })
}

async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_before_the_end_are_delivered() {
    let heard = Heard::default();
    let (mut peer, transport) = testing::ScriptedPeer::new().await;
    let server = server(hears(&heard));
    let running = tokio::spawn(async move { server.run(transport).await });
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for hours in 1..=3 {
        let params = json!({"hours": hours});
        peer.send(json!({"jsonrpc": "2.0", "method": Struck::NAME, "params": params}))
            .await
            .unwrap();
    }
    peer.close().await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(*heard.lock().unwrap(), [1, 2, 3]);
}

#[tokio::test]
async fn servers_receive_extension_notifications_in_order() {
    let pass = || {
        middleware::from_fn(|request: Request, next: Next| async move { next.run(request).await })
    };
    for revision in Revision::ALL {
        for layers in [false, true] {
            let heard = Heard::default();
            let server = server(hears(&heard));
            let server = if layers { server.layer(pass()) } else { server };
            let client = client(clock().notifies::<Struck>(..));
            let client = if layers {
                client.outgoing_layer(pass())
            } else {
                client
            };
            let session = connect(&server, &client, revision).await;
            for strikes in 1..=12 {
                session.notify::<Struck>(hours(strikes)).await.unwrap();
            }
            session.ping().await.unwrap();
            settle().await;
            assert_eq!(
                *heard.lock().unwrap(),
                (1..=12).collect::<Vec<_>>(),
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn server_knows_the_sender_of_a_notification() {
    for revision in Revision::ALL {
        let who: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&who);
        let server = server(clock().notification::<Struck, _>(
            ..,
            move |cx: RequestContext, _: Hours| {
                let name = cx.peer_info().map(|info| info.name.clone());
                keep.lock()
                    .unwrap()
                    .push(format!("{} {name:?}", cx.revision()));
                async {}
            },
        ));
        let session = connect(&server, &client(clock()), revision).await;
        session.notify::<Struck>(hours(1)).await.unwrap();
        session.ping().await.unwrap();
        settle().await;
        assert_eq!(
            *who.lock().unwrap(),
            [format!("{revision} Some(\"wearer\")")]
        );
    }
    // A modern client need not declare the extension in a notification.
    let heard = Heard::default();
    let mut peer = script(&server(hears(&heard))).await;
    let bare = json!({"jsonrpc": "2.0", "method": Struck::NAME, "params": {"hours": 3}});
    let odd = json!({"jsonrpc": "2.0", "method": Struck::NAME, "params": {"hours": "many"}});
    peer.send(odd).await.unwrap();
    peer.send(bare).await.unwrap();
    peer.ask(modern(1, "server/discover", json!({})))
        .await
        .unwrap();
    settle().await;
    assert_eq!(*heard.lock().unwrap(), [3]);
}

#[tokio::test]
async fn notification_handlers_cannot_send_requests() {
    for revision in Revision::ALL {
        let refused: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&refused);
        let server = server(clock().notification::<Struck, _>(
            ..,
            move |cx: RequestContext, _: Hours| {
                let keep = Arc::clone(&keep);
                async move {
                    let error = cx.roots().await.unwrap_err();
                    keep.lock().unwrap().push(error.to_string());
                }
            },
        ));
        let client = client(clock()).roots([Root::new("file:///tower")]);
        let session = connect(&server, &client, revision).await;
        session.notify::<Struck>(hours(1)).await.unwrap();
        session.ping().await.unwrap();
        settle().await;
        let refused = refused.lock().unwrap();
        assert!(
            refused.len() == 1 && refused[0].contains("cannot ask while handling a notification"),
            "{revision}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn call_notifications_reach_client_before_the_answer() {
    let tool = Tool::new("strike", "Strike twelve", |cx: RequestContext| async move {
        for strikes in 1..=12 {
            cx.notify::<Struck>(hours(strikes)).await.unwrap();
        }
        let late = cx.clone();
        tokio::spawn(async move {
            settle().await;
            late.notify::<Struck>(hours(13)).await.unwrap();
        });
        "done"
    });
    let server = server(clock().notifies::<Struck>(..)).tool(tool);
    for revision in Revision::ALL {
        let heard = Heard::default();
        let session = connect(&server, &client(hears(&heard)), revision).await;
        session.call_tool("strike", ()).await.unwrap();
        settle().await;
        settle().await;
        session.ping().await.unwrap();
        assert_eq!(
            *heard.lock().unwrap(),
            (1..=12).collect::<Vec<_>>(),
            "{revision}"
        );
    }
    // On the wire, with a scripted client.
    let mut peer = script(&server).await;
    let mut call = modern(1, "tools/call", json!({"name": "strike"}));
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {ID: {}}});
    let first = peer.ask(call).await.unwrap();
    assert_eq!(
        first,
        json!({"jsonrpc": "2.0", "method": Struck::NAME, "params": {"hours": 1}})
    );
}

#[tokio::test]
async fn legacy_sessions_are_notified_outside_requests() {
    let server = server(clock().notifies::<Struck>(Revision::V2025_03_26..));
    for revision in LEGACY {
        let heard = Heard::default();
        let session = connect(&server, &client(hears(&heard)), revision).await;
        let at_server = server.sessions().last().unwrap();
        let told = at_server.notify::<Struck>(hours(4)).await;
        assert_eq!(
            told.is_ok(),
            revision != Revision::V2024_11_05,
            "{revision}"
        );
        session.ping().await.unwrap();
        settle().await;
        assert_eq!(heard.lock().unwrap().len(), usize::from(told.is_ok()));
        session.close().await.unwrap();
    }
    let session = connect(&server, &client(clock()), Revision::LATEST).await;
    let modern = server
        .sessions()
        .last()
        .unwrap()
        .notify::<Struck>(hours(1))
        .await;
    assert!(modern.unwrap_err().is_unsupported());
    drop(session);
}

#[tokio::test]
async fn notifications_skip_peers_without_the_extension() {
    let sends = client(clock().notifies::<Struck>(Revision::V2025_06_18..));
    for revision in Revision::ALL {
        let session = connect(&Server::new("s", "1"), &sends, revision).await;
        let refused = session.notify::<Struck>(hours(1)).await.unwrap_err();
        assert!(refused.is_unsupported(), "{refused}");
        let session = connect(&server(clock()), &sends, revision).await;
        let told = session.notify::<Struck>(hours(1)).await;
        assert_eq!(
            told.is_ok(),
            revision >= Revision::V2025_06_18,
            "{revision}"
        );
    }
}

#[tokio::test]
async fn protocol_notifications_cannot_be_sent_manually() {
    struct Changed;
    impl Notification for Changed {
        const NAME: &'static str = "notifications/tools/list_changed";
        type Params = NotificationParams;
    }
    let session = connect(&server(clock()), &client(clock()), Revision::V2025_11_25).await;
    let refused = session
        .notify::<Changed>(NotificationParams::default())
        .await
        .unwrap_err();
    assert!(
        refused
            .message()
            .contains("not a notification of an extension"),
        "{refused}"
    );
}

#[tokio::test]
async fn undeclared_extension_can_still_notify_the_client() {
    let strike = || {
        Tool::new("strike", "Strike", |cx: RequestContext| async move {
            let told = cx.notify::<Struck>(hours(1)).await;
            told.is_err_and(|error| error.is_unsupported())
        })
    };
    for requires in [false, true] {
        let clock = clock().notifies::<Struck>(..);
        let clock = if requires {
            clock.requires_client()
        } else {
            clock
        };
        let server = server(clock).tool(strike());
        for revision in Revision::ALL {
            let mut peer = script(&server).await;
            let call = json!({"name": "strike"});
            let call = if revision.is_modern() {
                modern(1, "tools/call", call)
            } else {
                peer.initialize(revision).await.unwrap();
                let session = server.sessions().last().unwrap();
                session.notify::<Struck>(hours(2)).await.unwrap();
                assert_eq!(peer.receive().await.unwrap()["params"]["hours"], 2);
                crate::support::request(1, "tools/call", call)
            };
            // Before 2026-07-28 a call cannot declare an extension.
            let refused = requires && revision.is_modern();
            let mut answer = peer.ask(call).await.unwrap();
            assert_eq!(answer["method"] == Struck::NAME, !refused, "{revision}");
            if !refused {
                answer = peer.receive().await.unwrap();
            }
            let said = crate::support::text(&answer);
            assert_eq!(said, refused.to_string(), "{revision}");
        }
    }
}

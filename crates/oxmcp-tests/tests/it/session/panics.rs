//! Panics in users' code: each is answered as an error, and the connection continues.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use oxmcp::{
    Client, JsonSchema, RequestContext, Revision, Server, Structured, Tool,
    middleware::{self, Next, Request},
};
use serde_json::json;

use crate::session::*;

const SECRET: &str = "the secret of this panic";

#[derive(JsonSchema)]
struct Mined {
    #[expect(dead_code, reason = "it is there for its schema")]
    x: u32,
}

impl<'de> serde::Deserialize<'de> for Mined {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("{SECRET}")
    }
}

impl serde::Serialize for Mined {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("{SECRET}")
    }
}

fn boom() {
    assert!(SECRET.is_empty(), "{SECRET}");
}

fn panicking() -> Server {
    server()
        .tool(Tool::new("early", "Panics before its first await", || {
            boom();
            async { "never" }
        }))
        .tool(Tool::new("at_once", "Panics in its first poll", || async {
            boom();
        }))
        .tool(Tool::new("later", "Panics after it waited", || async {
            sleep(Duration::from_millis(1)).await;
            boom();
        }))
        .tool(Tool::new(
            "reading",
            "Panics when its input is read",
            |_: Mined| async {},
        ))
        .tool(Tool::new(
            "writing",
            "Panics when its output is written",
            || async { Structured(Mined { x: 1 }) },
        ))
        .tool(Tool::new(
            "reporting",
            "Panics between reports",
            |cx: RequestContext| async move {
                cx.progress(1).await;
                boom();
            },
        ))
}

#[tokio::test(start_paused = true)]
async fn tool_panic_is_an_internal_error_without_text() {
    let mut peer = client_of(&panicking(), Revision::V2025_11_25).await;
    // The first rounds run on a task of their own, the later ones in the reader.
    for round in 0..5 {
        for tool in [
            "early",
            "at_once",
            "later",
            "reading",
            "writing",
            "reporting",
        ] {
            let arguments = if tool == "reading" {
                json!({"x": 1})
            } else {
                json!({})
            };
            let answer = peer.ask(call(tool, tool, arguments)).await.unwrap();
            assert_eq!(answer["id"], tool, "{answer}");
            assert_eq!(
                answer["error"]["code"], -32603,
                "{tool}, round {round}: {answer}"
            );
            assert!(!answer.to_string().contains("secret"), "{tool}: {answer}");
            assert_alive(&mut peer).await;
        }
    }
    // No request is left in flight.
    peer.close().await.unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn server_middleware_panic_is_an_internal_error() {
    for early in [true, false] {
        let server = server().layer(middleware::from_fn(move |request: Request, next: Next| {
            let hit = matches!(request.method(), "tools/call" | "notifications/boom");
            if early && hit {
                boom();
            }
            async move {
                if hit {
                    boom();
                }
                next.run(request).await
            }
        }));
        let mut peer = client_of(&server, Revision::V2025_11_25).await;
        for _ in 0..4 {
            let answer = peer.ask(call(1, "fast", json!({}))).await.unwrap();
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            assert!(!answer.to_string().contains("secret"), "{answer}");
            peer.send(notification("notifications/boom", json!({})))
                .await
                .unwrap();
            assert_alive(&mut peer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_middleware_panic_is_an_internal_error() {
    let client =
        Client::new("test", "1.0.0").layer(middleware::from_fn(|request: Request, next: Next| {
            if request.method() == "boom" {
                boom();
            }
            async move { next.run(request).await }
        }));
    let (_session, mut peer) = server_of(client).await;
    for _ in 0..4 {
        let answer = peer.ask(request(1, "boom", json!({}))).await.unwrap();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(!answer.to_string().contains("secret"), "{answer}");
        assert_alive(&mut peer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn notification_handler_panic_stops_no_later_handler() {
    let handled = Arc::<AtomicU32>::default();
    let counter = Arc::clone(&handled);
    let client = Client::new("test", "1.0.0")
        .on_tools_changed(|_| {
            boom();
            async {}
        })
        .on_prompts_changed(|_| async { boom() })
        .on_resources_changed(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            async {}
        });
    let (_session, mut peer) = server_of(client).await;
    for round in 1..4 {
        for list in ["tools", "prompts", "resources"] {
            peer.send(notification(
                &format!("notifications/{list}/list_changed"),
                json!({}),
            ))
            .await
            .unwrap();
        }
        assert_alive(&mut peer).await;
        sleep(Duration::from_millis(1)).await;
        assert_eq!(handled.load(Ordering::SeqCst), round);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_handler_panic_does_not_lose_the_result() {
    let session = oxmcp::testing::connect(&server())
        .revision(Revision::V2025_11_25)
        .await
        .unwrap();
    let result = session
        .call_tool("stream", json!({"n": 3}))
        .on_progress(|_| boom())
        .await
        .unwrap();
    assert_eq!(result.content[0].as_text(), Some("done"));
    session.ping().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn panic_in_batch_keeps_the_other_answers() {
    let mut peer = client_of(&panicking(), Revision::V2025_03_26).await;
    for _ in 0..4 {
        peer.send(json!([
            call(1, "early", json!({})),
            call(2, "later", json!({})),
            call(3, "fast", json!({}))
        ]))
        .await
        .unwrap();
        let answer = peer.receive().await.unwrap();
        assert_eq!(answer.as_array().unwrap().len(), 3, "{answer}");
        assert_eq!(answer.to_string().matches("-32603").count(), 2, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn immediately_panicking_hook_stops_no_session() {
    let handled = Arc::<AtomicU32>::default();
    let (opened, counter) = (Arc::clone(&handled), Arc::clone(&handled));
    let server = server()
        .on_initialized(move |_| {
            opened.fetch_add(1, Ordering::SeqCst);
            boom();
            async {}
        })
        .on_roots_changed(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            boom();
            async {}
        });
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    assert_alive(&mut peer).await;
    for _ in 0..2 {
        peer.send(notification("notifications/roots/list_changed", json!({})))
            .await
            .unwrap();
        assert_alive(&mut peer).await;
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(handled.load(Ordering::SeqCst), 3);
}

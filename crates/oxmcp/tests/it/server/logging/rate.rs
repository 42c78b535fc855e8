//! Rate limits of log messages.

use std::time::Duration;

use oxmcp::{
    JsonSchema, Limits, RequestContext, Revision, Server, Tool, logging::LogOptions,
    protocol::LoggingLevel,
};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::server::logging::messages::{call, client, heard};
use crate::support::text;

#[derive(serde::Deserialize, JsonSchema)]
struct Count {
    n: u32,
}

/// A server whose tool logs `n` messages.
fn flood(options: LogOptions) -> Server {
    let tool = Tool::new(
        "flood",
        "Log n times",
        |cx: RequestContext, Count { n }| async move {
            for index in 0..n {
                cx.log(LoggingLevel::Error, index).await;
            }
            "done"
        },
    );
    Server::new("flood", "1.0.0")
        .logging_with(options)
        .tool(tool)
}

#[tokio::test(start_paused = true)]
async fn q2_q3_a_session_hears_so_many_at_once_and_so_many_a_second() {
    for revision in Revision::ALL {
        let mut peer = client(&flood(LogOptions::default().rate(2, 5)), revision).await;
        let mut flood = async |n: u32| {
            let call = call(1, "flood", json!({"n": n}), revision, Some("debug"));
            let heard = heard(&mut peer, call).await;
            heard
                .into_iter()
                .map(|params| params["data"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(flood(20).await, [0, 1, 2, 3, 4], "{revision}");
        assert_eq!(flood(1).await, Vec::<Value>::new());
        advance(Duration::from_secs(1)).await;
        let told =
            json!({"msg": "log messages were dropped, because there were too many", "dropped": 16});
        assert_eq!(flood(3).await, [told, json!(0), json!(1)]);
        advance(Duration::from_secs(3600)).await;
        let again = flood(20).await;
        assert_eq!((again[0]["dropped"].clone(), again.len()), (json!(1), 6));
    }
}

#[tokio::test(start_paused = true)]
async fn q2_without_a_limit_all_is_heard_by_a_slow_reader_too() {
    let limits = Limits {
        max_unsent_bytes: 2_000,
        ..Limits::default()
    };
    let server = flood(LogOptions::default().rate(0, 0)).limits(limits);
    let mut peer = client(&server, Revision::V2025_11_25).await;
    let call = call(1, "flood", json!({"n": 5_000}), Revision::V2025_11_25, None);
    peer.send(call).await.unwrap();
    for index in 0..5_000 {
        if index % 1_000 == 0 {
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(peer.receive().await.unwrap()["params"]["data"], index);
    }
    assert_eq!(text(&peer.receive().await.unwrap()), "done");
}

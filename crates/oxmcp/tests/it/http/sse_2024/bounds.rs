//! Bounds on what a client can make grow.

use oxmcp::{Limits, Tool};
use tokio::time::sleep;

use crate::http::sse_2024::*;
use crate::support::text;

#[tokio::test(start_paused = true)]
async fn attack_7_w15_there_are_no_more_sessions_than_the_limit() {
    let limits = Limits {
        max_http_sessions: 2,
        ..Limits::default()
    };
    let service = service(calculator()).limits(limits);
    let first = Client::opened(&service).await;
    let _second = Client::opened(&service).await;
    for _ in 0..3 {
        let refused = status(&service, local("GET", "/sse"), "").await;
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
    }
    drop(first);
    sleep(Duration::from_millis(1)).await;
    Client::opened(&service).await;
}

#[tokio::test(start_paused = true)]
async fn attack_7_a_client_that_does_not_read_is_not_read_from() {
    const CALLS: i64 = 100;
    let long = Tool::new("long", "Say much", || async { "x".repeat(10_000) });
    let limits = Limits {
        max_unsent_bytes: 30_000,
        ..Limits::default()
    };
    let mut client = Client::opened(&service(calculator().tool(long).limits(limits))).await;
    let mut taken = 0;
    let mut message = call(taken, "long", &json!({}));
    while let Ok(status) = timeout(Duration::from_secs(5), client.post(&message)).await {
        assert_eq!(status, StatusCode::ACCEPTED);
        taken += 1;
        assert!(taken < 1_000, "all is taken, though nothing is read");
        // Long ones, so that what waits to be served fills its room.
        message = call(taken, "long", &json!({"padding": "x".repeat(5_000)}));
    }
    assert!(taken > 3, "{taken}");
    for id in 0..taken {
        let answer = client.message().await;
        assert_eq!(answer["id"], id);
    }
    for id in 0..CALLS {
        let answer = client.ask(call(id, "long", &json!({}))).await;
        assert_eq!(text(&answer).len(), 10_000);
    }
}

#[tokio::test(start_paused = true)]
async fn attack_7_a_message_longer_than_the_servers_limit_is_answered_with_an_error() {
    let limits = Limits {
        max_message_bytes: 200,
        ..Limits::default()
    };
    let mut client = Client::open(&service(calculator().limits(limits))).await;
    let answer = client
        .ask(call(1, "add", &json!({"a": "x".repeat(200)})))
        .await;
    assert_eq!(answer["error"]["code"], -32700);
    assert_eq!(client.ask(ping(2)).await["id"], 2);
}

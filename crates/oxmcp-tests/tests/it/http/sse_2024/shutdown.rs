//! Shutdown of sessions.

use oxmcp::{Limits, RequestContext, Tool};
use tokio::time::{Instant, sleep};

use crate::http::sse_2024::*;
use crate::support::text;

/// A server whose tool `slow` takes as many seconds as its argument says.
fn slow() -> Server {
    #[derive(serde::Deserialize, oxmcp::JsonSchema)]
    struct Wait {
        seconds: u64,
    }
    calculator().tool(Tool::new("slow", "Wait", |Wait { seconds }| async move {
        sleep(Duration::from_secs(seconds)).await;
        "done"
    }))
}

#[tokio::test(start_paused = true)]
async fn client_closing_its_stream_ends_its_session() {
    let server = calculator();
    let service = service(server.clone());
    let client = Client::opened(&service).await;
    let uri = client.uri();
    assert_eq!(server.sessions().count(), 1);
    drop(client);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(server.sessions().count(), 0);
    let late = status(&service, local_post(&uri), ping(1).to_string()).await;
    assert_eq!(late, StatusCode::NOT_FOUND);
    assert!(format!("{service:?}").contains("sessions: 0"));
}

#[tokio::test(start_paused = true)]
async fn requests_of_vanished_client_may_finish_within_drain() {
    let server = slow();
    let service = service(server.clone());
    let client = Client::opened(&service).await;
    client
        .post(&call(1, "slow", &json!({"seconds": 1_000_000})))
        .await;
    drop(client);
    sleep(Limits::default().drain - Duration::from_millis(10)).await;
    assert_eq!(server.sessions().count(), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn close_lets_running_requests_finish_and_ends_streams() {
    let service = service(slow());
    let mut busy = Client::opened(&service).await;
    let mut idle = Client::opened(&service).await;
    busy.post(&call(1, "slow", &json!({"seconds": 5}))).await;
    let closing = service.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    let start = Instant::now();
    assert!(idle.event().await.is_none());
    assert_eq!(start.elapsed().as_secs(), 0);
    // What comes meanwhile is served.
    busy.post(&ping(2)).await;
    assert_eq!(busy.message().await["id"], 2);
    let mut another = Client::opened(&service).await;
    assert!(!closing.is_finished());
    assert_eq!(text(&busy.message().await), "done");
    assert!(another.event().await.is_none());
    assert!(busy.event().await.is_none());
    closing.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 5);
    service.close().await;
    let late = status(&service, local_post(&busy.uri()), "{}").await;
    assert_eq!(late, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn close_is_bounded_despite_running_handlers() {
    let service = service(slow());
    let busy = Client::opened(&service).await;
    busy.post(&call(1, "slow", &json!({"seconds": 1_000_000})))
        .await;
    let deaf = Client::opened(&service).await;
    for id in 0..10 {
        deaf.post(&ping(id)).await;
    }
    let start = Instant::now();
    service.close().await;
    assert!(start.elapsed() <= Limits::default().drain + Duration::from_secs(2));
    assert!(format!("{service:?}").contains("sessions: 0, closing: true"));
}

#[tokio::test(start_paused = true)]
async fn server_can_end_a_session() {
    let server = calculator();
    let service = service(server.clone());
    let mut client = Client::opened(&service).await;
    let session = server.sessions().next().unwrap();
    session.close().await.unwrap();
    assert!(client.event().await.is_none());
    assert_eq!(client.post(&ping(1)).await, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_stops_its_handler() {
    let waits = Tool::new("waits", "Wait", |cx: RequestContext| async move {
        cx.cancelled().await;
    });
    let mut client = Client::opened(&service(calculator().tool(waits))).await;
    client.post(&call(1, "waits", &json!({}))).await;
    let mut cancelled = notification("notifications/cancelled");
    cancelled["params"] = json!({"requestId": 1});
    assert_eq!(client.post(&cancelled).await, StatusCode::ACCEPTED);
    assert_eq!(client.ask(ping(2)).await["id"], 2);
}

//! Sessions behind a router of the user's own.

use oxmcp::http::{SseInbox, SseTransport};

use crate::http::sse_2024::*;

/// The text of a stream so far, or at its end.
async fn next(body: &mut ResponseBody) -> Option<String> {
    let frame = timeout(TIME_LIMIT, body.frame())
        .await
        .expect("nothing comes")?;
    let data = frame.unwrap().into_data().unwrap();
    Some(String::from_utf8(data.to_vec()).unwrap())
}

async fn connected() -> (oxmcp::ServerSession, SseInbox, ResponseBody) {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    let session = calculator().connect(transport).await.unwrap();
    (session, inbox, response.into_body())
}

#[tokio::test(start_paused = true)]
async fn d6_a_session_is_a_transport_an_inbox_and_a_response() {
    let (session, inbox, mut body) = connected().await;
    let first = next(&mut body).await.unwrap();
    assert_eq!(first, "event: endpoint\ndata: /messages/7\n\n");
    inbox.post(ping(1).to_string()).await.unwrap();
    let second = next(&mut body).await.unwrap();
    assert!(second.starts_with("event: message\ndata: {") && second.ends_with("}\n\n"));
    session.close().await.unwrap();
    assert_eq!(next(&mut body).await, None);
    assert!(inbox.post("{}").await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn d6_dropping_the_stream_ends_the_session() {
    let (session, inbox, body) = connected().await;
    drop(body);
    session.wait().await.unwrap();
    assert!(inbox.post("{}").await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn d6_dropping_the_inbox_ends_the_session_once_all_is_answered() {
    let (session, inbox, mut body) = connected().await;
    inbox.post(ping(1).to_string()).await.unwrap();
    drop(inbox);
    session.wait().await.unwrap();
    next(&mut body).await.unwrap();
    assert!(next(&mut body).await.unwrap().contains("\"id\":1"));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn d6_a_session_that_nobody_connects_has_an_end() {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    drop(transport);
    let mut body = response.into_body();
    next(&mut body).await.unwrap();
    assert_eq!(next(&mut body).await, None);
    assert!(inbox.post("{}").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn d6_what_was_posted_before_the_client_went_is_taken() {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    inbox.post(ping(1).to_string()).await.unwrap();
    drop(response);
    let session = calculator().connect(transport).await.unwrap();
    // Its answer finds nobody.
    let error = session.wait().await.unwrap_err();
    assert!(error.message().contains("closed its stream"), "{error}");
}

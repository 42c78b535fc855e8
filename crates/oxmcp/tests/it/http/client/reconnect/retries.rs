//! Retries while a server cannot be reached.

use oxmcp::{Error, http::Reconnect};
use serde_json::json;

use crate::http::client::peer::{Peer, both, client, legacy, open, open_with, text};

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_not_asked_twice_while_a_session_opens() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let (session, ()) = both(client.connect(endpoint), async {
        peer.next()
            .await
            .fail(Error::unreachable("connection refused"));
    })
    .await;
    let error = session.unwrap_err();
    assert!(
        error.is_network() && error.message().contains("connection refused"),
        "{error}"
    );
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_there_is_waited_for() {
    let (mut peer, session) = open(Some("s-1")).await;
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        for _ in 0..3 {
            let asked = peer.post("tools/call").await;
            asked.fail(Error::unreachable("connection refused"));
        }
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap().to_text(), "3");
}

#[tokio::test(start_paused = true)]
async fn attack_8_it_is_not_waited_for_without_end() {
    let (peer, endpoint) = Peer::endpoint();
    let endpoint = endpoint.reconnect(Reconnect::default().attempts(2));
    let (mut peer, session) = open_with(&legacy(), endpoint, peer, None).await;
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        for _ in 0..3 {
            let asked = peer.post("tools/call").await;
            asked.fail(Error::unreachable("connection refused"));
        }
    })
    .await;
    assert!(answer.unwrap_err().is_network());
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_sent_is_not_sent_again() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        let asked = peer.post("tools/call").await;
        asked.fail(Error::network("connection reset"));
    })
    .await;
    assert!(answer.unwrap_err().is_network());
    assert!(peer.is_quiet());
}

//! Retries: of servers that cannot be reached for a while, and of servers that end every stream at
//! once (attack class 8).

use std::time::Duration;

use oxmcp::{Error, http::Reconnect, protocol::SubscriptionFilter};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::http::client::peer::{
    Asked, Peer, both, client, discover, legacy, open, open_with, text,
};

#[tokio::test(start_paused = true)]
async fn unreachable_server_is_tried_once_while_connecting() {
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
async fn client_retries_while_the_server_is_down() {
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

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_server_is_bounded() {
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
    let error = answer.unwrap_err();
    assert!(error.is_network() && error.is_unserved());
    assert!(peer.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn possibly_sent_requests_are_not_resent() {
    let (mut peer, session) = open(None).await;
    let (answer, ()) = both(async { session.call_tool("add", json!({})).await }, async {
        let asked = peer.post("tools/call").await;
        asked.fail(Error::network("connection reset"));
    })
    .await;
    let error = answer.unwrap_err();
    assert!(error.is_network() && !error.is_unserved());
    assert!(peer.is_quiet());
}

/// Acknowledges a subscription, and ends its stream.
fn acknowledge_and_end(asked: Asked) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": asked.body()["id"]});
    let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    let message = json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params,
    });
    let chunks = asked.events();
    // The retry time of the stream is hostile as well.
    chunks.raw("retry: 0\n\n");
    chunks.message(&message);
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn subscriptions_ending_at_once_are_reopened_with_backoff() {
    let (mut peer, session) = discover().await;
    let wanted = SubscriptionFilter::default().with_tools_list_changed(true);
    let (subscription, ()) = both(async { session.listen(wanted).await }, async {
        acknowledge_and_end(peer.post("subscriptions/listen").await);
    })
    .await;
    let mut subscription = subscription.unwrap();
    let reading = async { while subscription.next().await.is_some() {} };
    let (_, listens) = both(timeout(Duration::from_secs(3600), reading), async {
        let (start, mut listens) = (Instant::now(), 0);
        while let Ok(asked) = timeout(Duration::from_secs(300), peer.next()).await {
            listens += 1;
            acknowledge_and_end(asked);
            if start.elapsed() > Duration::from_secs(3000) {
                break;
            }
        }
        listens
    })
    .await;
    assert!(
        (1..200).contains(&listens),
        "{listens} in less than an hour"
    );
}

// Attack: endless or rapid retries.
#[tokio::test(start_paused = true)]
async fn retry_values_never_cause_spinning_or_stalling() {
    for retry in [
        "0",
        "00",
        "1",
        "-1",
        "+1",
        "1.5",
        "1e9",
        "0x10",
        " 1",
        "18446744073709551615",
        "18446744073709551616",
        "9223372036854775807",
        "4294967296000",
        "\u{661}",
        "",
        "NaN",
    ] {
        let (mut peer, session) = open(None).await;
        let calling = async {
            let call = session.call_tool("add", json!({}));
            call.timeout(Duration::from_secs(100_000)).await
        };
        let (answer, ()) = both(calling, async {
            let asked = peer.post("tools/call").await;
            let answer = asked.reply_to(text("3"));
            asked
                .events()
                .raw(format!("id: 1\nretry: {retry}\ndata:\n\n"));
            let mut last = Instant::now();
            for id in 2..6 {
                let polled = peer.get().await;
                let pause = last.elapsed();
                assert!(pause >= Duration::from_millis(100), "{retry:?}: {pause:?}");
                assert!(pause <= Duration::from_secs(3600), "{retry:?}: {pause:?}");
                last = Instant::now();
                polled
                    .events()
                    .raw(format!("id: {id}\nretry: {retry}\ndata:\n\n"));
            }
            peer.get().await.events().message(&answer);
        })
        .await;
        assert_eq!(answer.unwrap().to_text(), "3", "{retry:?}");
    }
}

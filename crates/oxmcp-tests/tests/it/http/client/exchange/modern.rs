//! Exchanges with modern servers: each request stands alone.

use std::time::Duration;

use oxmcp::{Result, SubscriptionEvent, protocol::SubscriptionFilter};
use serde_json::json;
use tokio::time::Instant;

use crate::http::client::peer::{Chunks, Peer, both, client, discover, discovered, text};

async fn call(session: &oxmcp::ClientSession, tool: &str) -> Result<String> {
    let result = session.call_tool(tool, json!({})).await?;
    Ok(result.to_text())
}

#[tokio::test(start_paused = true)]
async fn requests_carry_their_revision_and_their_method() {
    let (mut peer, endpoint) = Peer::endpoint();
    let client = client();
    let endpoint = endpoint.header("x-key", "1").bearer_token("secret");
    let (session, ()) = both(client.connect(endpoint), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.request.uri(), crate::http::client::peer::URL);
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), Some("server/discover"));
        assert_eq!(asked.header("content-type"), Some("application/json"));
        let accept = asked.header("accept").unwrap();
        assert_eq!(accept, "application/json, text/event-stream");
        asked.result(discovered());
    })
    .await;
    let session = session.unwrap();
    let (answer, ()) = both(call(&session, "add"), async {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), Some("tools/call"));
        assert_eq!(asked.header("mcp-session-id"), None);
        assert_eq!(asked.header("x-key"), Some("1"));
        assert_eq!(asked.header("authorization"), Some("Bearer secret"));
        asked.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
    session.close().await.unwrap();
    assert!(peer.is_quiet(), "there is no session to be ended");
}

#[tokio::test(start_paused = true)]
async fn notifications_before_the_answer_are_delivered_before_it() {
    let (mut peer, session) = discover().await;
    let (sender, mut heard) = tokio::sync::mpsc::channel(8);
    let calling = async {
        let call = session.call_tool("add", json!({}));
        let call = call.on_progress(move |progress| sender.try_send(progress.progress).unwrap());
        call.await.map(|result| result.to_text())
    };
    let (answer, chunks) = both(calling, async {
        let asked = peer.post("tools/call").await;
        let token = asked.body()["params"]["_meta"]["progressToken"].clone();
        let answer = asked.reply_to(text("3"));
        let chunks = asked.events();
        let params = json!({"progressToken": token, "progress": 1});
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        // Events do not end where chunks do.
        let events = format!(": alive\n\ndata: {progress}\r\n\r\ndata: {answer}\n\n");
        let (one, other) = events.split_at(40);
        chunks.raw(one.to_owned());
        chunks.raw(other.to_owned());
        chunks
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
    assert!(heard.try_recv().is_ok());
    // The rest of the stream is read, for a while, and then given up.
    let start = Instant::now();
    chunks.given_up().await;
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn dropped_call_closes_its_exchange_without_a_notification() {
    let (mut peer, session) = discover().await;
    for streams in [false, true] {
        let limit = Duration::from_millis(100);
        let late = async {
            let call = session.call_tool("slow", json!({})).timeout(limit);
            call.await.unwrap_err()
        };
        let (error, ()) = both(late, async {
            let asked = peer.post("tools/call").await;
            if streams {
                asked.events().given_up().await;
            } else {
                asked.given_up().await;
            }
        })
        .await;
        assert!(error.is_timeout());
        assert!(peer.is_quiet());
    }
}

#[tokio::test(start_paused = true)]
async fn cut_stream_fails_only_its_call() {
    let (mut peer, session) = discover().await;
    let ends: [fn(Chunks); 3] = [drop, Chunks::breaks, |chunks| {
        // An incomplete event does not count, and event ids allow no resumption.
        chunks.raw("id: 7\ndata: {}\n\ndata: {\"jsonrpc\"");
        drop(chunks);
    }];
    for end in ends {
        let (answer, ()) = both(call(&session, "add"), async {
            end(peer.post("tools/call").await.events());
        })
        .await;
        let error = answer.unwrap_err();
        assert!(error.is_network() && !error.is_closed(), "{error}");
        assert!(error.message().contains("cannot be resumed"), "{error}");
    }
    let (answer, ()) = both(call(&session, "add"), async {
        peer.post("tools/call").await.result(text("3"));
    })
    .await;
    assert_eq!(answer.unwrap(), "3");
}

#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_for_each_other() {
    let (mut peer, session) = discover().await;
    let (first, second) = (call(&session, "first"), call(&session, "second"));
    let (answers, ()) = both(async { tokio::join!(first, second) }, async {
        let one = peer.post("tools/call").await;
        let other = peer.post("tools/call").await;
        other.result(text("2"));
        tokio::task::yield_now().await;
        one.result(text("1"));
    })
    .await;
    assert_eq!(
        (answers.0.unwrap(), answers.1.unwrap()),
        ("1".into(), "2".into())
    );
}

#[tokio::test(start_paused = true)]
async fn subscription_with_cut_stream_is_reopened() {
    let (mut peer, session) = discover().await;
    let wanted = SubscriptionFilter::default().with_tools_list_changed(true);
    let acknowledge = |asked: crate::http::client::peer::Asked| {
        let id = asked.body()["id"].clone();
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let filter = json!({"toolsListChanged": true});
        let params = json!({"_meta": meta, "notifications": filter});
        let chunks = asked.events();
        chunks.message(&json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params,
        }));
        chunks
    };
    let (subscription, chunks) = both(async { session.listen(wanted).await }, async {
        acknowledge(peer.post("subscriptions/listen").await)
    })
    .await;
    let mut subscription = subscription.unwrap();
    chunks.breaks();
    let (event, _chunks) = both(subscription.next(), async {
        acknowledge(peer.post("subscriptions/listen").await)
    })
    .await;
    assert!(
        matches!(event, Some(SubscriptionEvent::Resumed(_))),
        "{event:?}"
    );
}

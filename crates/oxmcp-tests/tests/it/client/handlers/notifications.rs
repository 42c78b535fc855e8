//! Handlers of notifications: logs, changes of resources, and completed URLs.

use std::{future::IntoFuture, time::Duration};

use oxmcp::{
    Client, ClientSession, Revision, middleware,
    protocol::{ElicitAction, ElicitUrlParams},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::{Instant, sleep, timeout},
};

use crate::client::{answer, ask, client, expect, pass_on, refuse, session_of};
use crate::support::LEGACY;

/// A client that reports the notifications that its handlers receive.
fn listening() -> (Client, Receiver<String>) {
    let (sender, heard) = mpsc::channel(16);
    let (logs, updates, visits) = (sender.clone(), sender.clone(), sender);
    let client = client()
        .on_log(move |message, session| {
            let logs = logs.clone();
            async move {
                assert!(session.client().sessions().count() == 1);
                let text = format!("{} {:?} {}", message.level, message.logger, message.data);
                logs.send(text).await.unwrap();
            }
        })
        .on_resource_updated(move |uri, _| {
            let updates = updates.clone();
            async move { updates.send(uri).await.unwrap() }
        })
        .on_elicitation_complete(move |id, _| {
            let visits = visits.clone();
            async move { visits.send(id).await.unwrap() }
        });
    (client, heard)
}

async fn says(peer: &mut ScriptedPeer, method: &str, params: Value) {
    let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
    peer.send(notification).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn log_messages_reach_their_handler_in_order() {
    for revision in Revision::ALL {
        for through_middleware in [false, true] {
            let (mut client, mut heard) = listening();
            if through_middleware {
                client = client.layer(middleware::from_fn(pass_on));
            }
            let (mut peer, _session, _) = session_of(client, revision).await;
            let data = json!({"level": "info", "logger": "db", "data": {"msg": "up"}});
            says(&mut peer, "notifications/message", data).await;
            says(
                &mut peer,
                "notifications/resources/updated",
                json!({"uri": "file:///a"}),
            )
            .await;
            // Invalid notifications are ignored.
            says(
                &mut peer,
                "notifications/message",
                json!({"level": "loud", "data": 1}),
            )
            .await;
            says(&mut peer, "notifications/resources/updated", json!({})).await;
            says(
                &mut peer,
                "notifications/message",
                json!({"level": "debug", "data": "bye"}),
            )
            .await;

            let mut all = Vec::new();
            while let Ok(Some(text)) = timeout(Duration::from_secs(1), heard.recv()).await {
                all.push(text);
            }
            let expected = [
                r#"info Some("db") {"msg":"up"}"#,
                "file:///a",
                r#"debug None "bye""#,
            ];
            assert_eq!(all, expected, "{revision}");
        }
    }
}

/// Sends completions of these elicitations, and returns the ones that the handler receives.
async fn complete(
    peer: &mut ScriptedPeer,
    heard: &mut Receiver<String>,
    ids: &[&str],
) -> Vec<String> {
    for id in ids {
        let complete = json!({"elicitationId": id});
        says(peer, "notifications/elicitation/complete", complete).await;
    }
    let mut all = Vec::new();
    while let Ok(Some(id)) = timeout(Duration::from_secs(1), heard.recv()).await {
        all.push(id);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn completion_is_reported_once_after_a_visit() {
    let (client, mut heard) = listening();
    let client = client.on_elicit_url(|_: ElicitUrlParams| async { ElicitAction::Accept });
    // Only 2025-11-25 notifies completions.
    let (mut peer, session, _) = session_of(client, Revision::V2025_11_25).await;
    assert!(complete(&mut peer, &mut heard, &["7"]).await.is_empty());

    let page = |id: &str| json!({"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": id});
    let agreed = ask((&mut peer, &session), "elicitation/create", page("7")).await;
    assert_eq!(agreed["result"]["action"], "accept", "{agreed}");
    assert_eq!(
        complete(&mut peer, &mut heard, &["8", "7", "7"]).await,
        ["7"]
    );

    // A call can also be refused until the user has completed an elicitation.
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    let data = json!({"elicitations": [page("9")]});
    let refusal = json!({"code": -32042, "message": "log in first", "data": data});
    refuse(&mut peer, &request, refusal).await;
    assert_eq!(call.await.unwrap().unwrap_err().code().value(), -32042);
    assert_eq!(complete(&mut peer, &mut heard, &["9"]).await, ["9"]);
}

#[tokio::test(start_paused = true)]
async fn client_without_urls_awaits_no_completion() {
    let (client, mut heard) = listening();
    let (mut peer, session, _) = session_of(client, Revision::V2025_11_25).await;
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    let page =
        json!({"mode": "url", "message": "m", "url": "https://example.com/", "elicitationId": "9"});
    let data = json!({"elicitations": [page]});
    let refusal = json!({"code": -32042, "message": "log in first", "data": data});
    refuse(&mut peer, &request, refusal).await;
    assert_eq!(call.await.unwrap().unwrap_err().code().value(), -32042);
    assert!(complete(&mut peer, &mut heard, &["9"]).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_does_not_end_the_session() {
    let (sender, mut heard) = mpsc::channel(1);
    let client = client().on_log(move |message, _| {
        let sender = sender.clone();
        assert_ne!(message.data.get(), "1", "on purpose");
        async move { sender.send(message.data).await.unwrap() }
    });
    let (mut peer, _session, _) = session_of(client, Revision::LATEST).await;
    for data in [1, 2] {
        says(
            &mut peer,
            "notifications/message",
            json!({"level": "info", "data": data}),
        )
        .await;
    }
    assert_eq!(heard.recv().await.unwrap().get(), "2");
}

/// Sends the server's messages and then a ping. The answer to the ping shows that the messages have arrived.
async fn says_and_answers(peer: &mut ScriptedPeer, session: &ClientSession, times: usize) {
    for _ in 0..times {
        let params = json!({"level": "info", "data": "said"});
        says(peer, "notifications/message", params).await;
    }
    let pinging = tokio::spawn({
        let session = session.clone();
        async move { session.ping().await }
    });
    let ping = expect(peer, "ping").await;
    answer(peer, &ping, json!({})).await;
    pinging.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn received_notifications_are_delivered_before_close() {
    for revision in LEGACY {
        let (sender, mut heard) = mpsc::channel(16);
        let client = client().on_log(move |_, _| {
            let sender = sender.clone();
            async move {
                sleep(Duration::from_secs(1)).await;
                sender.send(()).await.unwrap();
            }
        });
        let (mut peer, session, _) = session_of(client, revision).await;
        says_and_answers(&mut peer, &session, 3).await;
        session.close().await.unwrap();
        for _ in 0..3 {
            heard.try_recv().unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handler_can_close_the_session() {
    let client = client().on_log(|_, session| async move { session.close().await.unwrap() });
    let (mut peer, session, _) = session_of(client, Revision::LATEST_LEGACY).await;
    let start = Instant::now();
    says_and_answers(&mut peer, &session, 2).await;
    session.wait().await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

//! Sessions that have ended and are reconnected by their user.

use std::{collections::VecDeque, future::IntoFuture, pin::pin, time::Duration};

use futures_util::{
    future::{join, join_all},
    poll,
};
use oxmcp::{
    ClientSession, ErrorCode, Result, Revision, SubscriptionEnd,
    http::{Endpoint, StreamableHttp},
    protocol::LoggingLevel,
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    client::{
        answer, calling, client,
        connect::restarts::{Starts, initialize, start},
        done, expect, initialized, method_not_found, refuse, session, soon,
    },
    support::calculator,
};

/// A session with a legacy server that logs and notifies changes of resources.
async fn open() -> (ScriptedPeer, ClientSession, Starts) {
    let client = client().revisions([Revision::V2025_11_25]);
    let (mut starts, connecting) = start(&client, None);
    let mut peer = starts.recv().await.unwrap();
    opened(&mut peer).await;
    (peer, connecting.await.unwrap().unwrap(), starts)
}

async fn opened(peer: &mut ScriptedPeer) {
    let request = expect(peer, "initialize").await;
    let mut result = initialized("2025-11-25");
    result["capabilities"] = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
    answer(peer, &request, result).await;
    expect(peer, "notifications/initialized").await;
}

async fn grant(peer: &mut ScriptedPeer, method: &str) -> Value {
    let request = expect(peer, method).await;
    answer(peer, &request, json!({})).await;
    request["params"].clone()
}

async fn subscribe(peer: &mut ScriptedPeer, session: &ClientSession, uri: &str) {
    let asked = tokio::spawn(session.subscribe(uri).into_future());
    grant(peer, "resources/subscribe").await;
    asked.await.unwrap().unwrap();
}

fn reconnecting(session: &ClientSession) -> JoinHandle<Result<ClientSession>> {
    let session = session.clone();
    tokio::spawn(async move { session.reconnect().await })
}

async fn pings(peer: &mut ScriptedPeer, session: &ClientSession) {
    let session = session.clone();
    let ping = tokio::spawn(async move { session.ping().await });
    grant(peer, "ping").await;
    ping.await.unwrap().unwrap();
}

#[tokio::test]
async fn ended_session_is_reopened_with_the_same_state() {
    let (mut first, session, mut starts) = open().await;
    for uri in ["app://a", "app://b"] {
        subscribe(&mut first, &session, uri).await;
    }
    let asked = tokio::spawn(session.unsubscribe("app://a").into_future());
    grant(&mut first, "resources/unsubscribe").await;
    asked.await.unwrap().unwrap();
    let watching = session.clone();
    let watching = tokio::spawn(async move { watching.watch_resource("app://c").await });
    grant(&mut first, "resources/subscribe").await;
    let mut watch = watching.await.unwrap().unwrap();
    let leveled = session.clone();
    let leveled = tokio::spawn(async move { leveled.set_log_level(LoggingLevel::Warning).await });
    grant(&mut first, "logging/setLevel").await;
    leveled.await.unwrap().unwrap();
    let call = calling(&session);
    expect(&mut first, "tools/call").await;

    drop(first);
    assert!(call.await.unwrap().unwrap_err().is_closed());
    session.wait().await.unwrap();
    assert!(watch.next().await.is_none());
    assert_eq!(watch.end(), Some(SubscriptionEnd::Remote));
    assert!(session.ping().await.unwrap_err().is_closed());

    let anew = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    assert_eq!(
        grant(&mut second, "logging/setLevel").await["level"],
        "warning"
    );
    for uri in ["app://b", "app://c"] {
        assert_eq!(grant(&mut second, "resources/subscribe").await["uri"], uri);
    }
    let anew = anew.await.unwrap().unwrap();
    // The call that was in flight is not repeated.
    pings(&mut second, &anew).await;
    assert!(session.ping().await.unwrap_err().is_closed());
    let call = calling(&anew);
    let request = expect(&mut second, "tools/call").await;
    answer(&mut second, &request, done()).await;
    call.await.unwrap().unwrap();
    // Restored state is restored the next time, too.
    drop(second);
    anew.wait().await.unwrap();
    let again = reconnecting(&anew);
    let mut third = starts.recv().await.unwrap();
    opened(&mut third).await;
    assert_eq!(
        grant(&mut third, "logging/setLevel").await["level"],
        "warning"
    );
    for uri in ["app://b", "app://c"] {
        assert_eq!(grant(&mut third, "resources/subscribe").await["uri"], uri);
    }
    let again = again.await.unwrap().unwrap();
    pings(&mut third, &again).await;
}

#[tokio::test]
async fn refusal_by_new_server_does_not_prevent_reconnecting() {
    let (mut first, session, mut starts) = open().await;
    subscribe(&mut first, &session, "app://a").await;
    drop(first);
    let anew = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    initialize(&mut second).await;
    let request = expect(&mut second, "resources/subscribe").await;
    refuse(&mut second, &request, method_not_found()).await;
    pings(&mut second, &anew.await.unwrap().unwrap()).await;
}

#[tokio::test]
async fn concurrent_reconnects_share_one_session() {
    let (first, session, mut starts) = open().await;
    drop(first);
    let (one, other) = (reconnecting(&session), reconnecting(&session));
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    let (one, other) = (one.await.unwrap().unwrap(), other.await.unwrap().unwrap());
    pings(&mut second, &one).await;
    pings(&mut second, &other).await;
    let late = session.reconnect().await.unwrap();
    pings(&mut second, &late).await;
    assert!(starts.try_recv().is_err(), "it was started twice");
    // All handles are of one session, which ends with the last handle.
    drop((one, other));
    pings(&mut second, &late).await;
    drop(late);
    assert!(second.receive().await.is_err());
    let anew = reconnecting(&session);
    let mut third = starts.recv().await.unwrap();
    opened(&mut third).await;
    pings(&mut third, &anew.await.unwrap().unwrap()).await;
}

#[tokio::test]
async fn open_session_is_closed_before_reconnecting() {
    let (mut first, session, mut starts) = open().await;
    let anew = reconnecting(&session);
    assert!(first.receive().await.is_err());
    drop(first);
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    pings(&mut second, &anew.await.unwrap().unwrap()).await;
    assert!(session.ping().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn closing_session_is_recovered_by_another() {
    let (mut first, session, mut starts) = open().await;
    let call = calling(&session);
    let request = expect(&mut first, "tools/call").await;
    // Closing waits for the call.
    let mut closing = pin!(session.close());
    assert!(poll!(&mut closing).is_pending());
    let mut recovering = pin!(session.recover());
    assert!(poll!(&mut recovering).is_pending());
    let serving = async {
        answer(&mut first, &request, done()).await;
        call.await.unwrap().unwrap();
        drop(first);
        let mut second = starts.recv().await.unwrap();
        opened(&mut second).await;
        second
    };
    let (anew, mut second) = tokio::join!(recovering, serving);
    pings(&mut second, &anew.unwrap()).await;
}

#[tokio::test]
async fn failed_reconnect_can_be_retried() {
    let (first, session, mut starts) = open().await;
    drop(first);
    let failing = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    let request = expect(&mut second, "initialize").await;
    refuse(
        &mut second,
        &request,
        json!({"code": -32603, "message": "not now"}),
    )
    .await;
    let error = failing.await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR, "{error}");
    // A `reconnect` that is dropped halfway leaves nothing behind either.
    let dropped = reconnecting(&session);
    let mut third = starts.recv().await.unwrap();
    expect(&mut third, "initialize").await;
    dropped.abort();
    assert!(soon("end", third.receive()).await.is_err());
    let anew = reconnecting(&session);
    let mut fourth = starts.recv().await.unwrap();
    opened(&mut fourth).await;
    pings(&mut fourth, &anew.await.unwrap().unwrap()).await;
}

#[tokio::test]
async fn one_shot_transport_is_not_reconnected() {
    let (peer, session) = session(Revision::V2025_11_25).await;
    drop(peer);
    let error = session.reconnect().await.unwrap_err();
    assert!(!error.message().is_empty(), "{error:?}");
    assert!(session.ping().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn sessions_over_http_are_reopened_in_every_revision() {
    let endpoint = StreamableHttp::from(calculator());
    let serving = endpoint.serve("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", serving.local_addr());
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let client = client().revisions([revision]);
        let session = client.connect(Endpoint::new(&url)).await.unwrap();
        session.close().await.unwrap();
        let anew = session.reconnect().await.unwrap();
        assert_eq!(anew.revision(), revision);
        let sum = anew.call_tool("add", json!({"a": 1, "b": 2}));
        assert_eq!(sum.structured::<f64>().await.unwrap(), 3.0);
        anew.close().await.unwrap();
    }
    serving.close().await;
}

/// Handles of several sessions may be in use: the latest request counts, whichever handle made it.
#[tokio::test]
async fn old_handle_reconnects_with_the_latest_state() {
    let (mut first, session, mut starts) = open().await;
    subscribe(&mut first, &session, "app://a").await;
    drop(first);
    let later = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    grant(&mut second, "resources/subscribe").await;
    let later = later.await.unwrap().unwrap();
    let asked = tokio::spawn(later.unsubscribe("app://a").into_future());
    grant(&mut second, "resources/unsubscribe").await;
    asked.await.unwrap().unwrap();
    subscribe(&mut second, &later, "app://b").await;
    let leveled = later.clone();
    let leveled = tokio::spawn(async move { leveled.set_log_level(LoggingLevel::Error).await });
    grant(&mut second, "logging/setLevel").await;
    leveled.await.unwrap().unwrap();

    drop(second);
    let anew = reconnecting(&session);
    let mut third = starts.recv().await.unwrap();
    opened(&mut third).await;
    assert_eq!(
        grant(&mut third, "logging/setLevel").await["level"],
        "error"
    );
    let again = grant(&mut third, "resources/subscribe").await;
    assert_eq!(again["uri"], "app://b");
    pings(&mut third, &anew.await.unwrap().unwrap()).await;
}

/// At most 32 subscriptions are requested at the same time, since a server may bound its requests in flight.
#[tokio::test(start_paused = true)]
async fn subscriptions_are_renewed_in_limited_batches() {
    let (mut first, session, mut starts) = open().await;
    for index in 0..40 {
        subscribe(&mut first, &session, &format!("app://{index}")).await;
    }
    drop(first);
    let anew = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    few_at_a_time(&mut second, 40).await;
    let anew = anew.await.unwrap().unwrap();

    let watched = join_all((0..40).map(|index| anew.watch_resource(format!("app://{index}"))));
    let (watches, ()) = join(watched, async {
        // The first subscription is requested before the other watches are known.
        grant(&mut second, "resources/subscribe").await;
        few_at_a_time(&mut second, 39).await;
    })
    .await;
    assert!(watches.iter().all(Result::is_ok));
}

/// Grants `count` subscriptions, of which at most 32 are requested at the same time.
async fn few_at_a_time(peer: &mut ScriptedPeer, count: usize) {
    let mut asked = VecDeque::new();
    for _ in 0..32 {
        asked.push_back(expect(peer, "resources/subscribe").await);
    }
    let more = timeout(Duration::from_secs(1), peer.receive()).await;
    assert!(more.is_err(), "{more:?}");
    for index in 0..count {
        if let Some(request) = asked.pop_front() {
            answer(peer, &request, json!({})).await;
        }
        if index + 32 < count {
            asked.push_back(expect(peer, "resources/subscribe").await);
        }
    }
}

/// A server that does not answer delays the session by no more than one call.
#[tokio::test(start_paused = true)]
async fn server_silent_after_reconnecting_does_not_block() {
    let (mut first, session, mut starts) = open().await;
    for index in 0..40 {
        subscribe(&mut first, &session, &format!("app://{index}")).await;
    }
    let leveled = session.clone();
    let leveled = tokio::spawn(async move { leveled.set_log_level(LoggingLevel::Error).await });
    grant(&mut first, "logging/setLevel").await;
    leveled.await.unwrap().unwrap();
    drop(first);
    let anew = reconnecting(&session);
    let mut second = starts.recv().await.unwrap();
    opened(&mut second).await;
    expect(&mut second, "logging/setLevel").await;
    // The request for the level is not abandoned before the first subscriptions are requested.
    let mut last = expect(&mut second, "resources/subscribe").await;
    for _ in 1..32 {
        last = expect(&mut second, "resources/subscribe").await;
    }
    let anew = anew.await.unwrap().unwrap();
    // The other subscriptions are requested afterwards.
    let mut others = 0;
    while others < 8 {
        let message = soon("message", second.receive()).await.unwrap();
        others += usize::from(message["method"] == "resources/subscribe");
    }
    drop((last, anew));
}

#[tokio::test]
async fn cancelled_watch_is_not_renewed() {
    let (mut first, session, mut starts) = open().await;
    let watching = [0, 1].map(|_| {
        let session = session.clone();
        tokio::spawn(async move { session.watch_resource("app://a").await })
    });
    grant(&mut first, "resources/subscribe").await;
    let [one, other] = watching;
    let (one, other) = (one.await.unwrap().unwrap(), other.await.unwrap().unwrap());
    drop(first);
    session.wait().await.unwrap();

    drop(one);
    let second = reconnecting(&session);
    let mut peer = starts.recv().await.unwrap();
    opened(&mut peer).await;
    grant(&mut peer, "resources/subscribe").await;
    let second = second.await.unwrap().unwrap();
    drop(peer);
    second.wait().await.unwrap();

    drop(other);
    let third = reconnecting(&second);
    let mut peer = starts.recv().await.unwrap();
    opened(&mut peer).await;
    pings(&mut peer, &third.await.unwrap().unwrap()).await;
}

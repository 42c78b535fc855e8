//! Hooks of the server's author: permission to subscribe, and notice of the beginning and the end of subscriptions.

use crate::server::subscriptions::*;

/// A server that records the subscriptions to resources, and refuses those to `file:///no`.
fn noting() -> (Server, Calls) {
    let calls = Calls::default();
    let (begun, ended) = (Arc::clone(&calls), Arc::clone(&calls));
    let server = server().on_subscribe(
        move |_cx: RequestContext, uri: String| {
            let calls = Arc::clone(&begun);
            async move {
                if uri == "file:///no" {
                    return Err(Error::protocol(-32099, "not this one"));
                }
                calls.lock().unwrap().push(format!("+{uri}"));
                Ok(())
            }
        },
        move |_session: ServerSession, uri: String| {
            ended.lock().unwrap().push(format!("-{uri}"));
            async {}
        },
    );
    (server, calls)
}

#[tokio::test(start_paused = true)]
async fn each_granted_watch_ends_once() {
    for revision in Revision::ALL {
        for by_client in [true, false] {
            let (server, calls) = noting();
            let taken = || calls.lock().unwrap().split_off(0);
            let mut peer = open(&server, revision).await;
            watch(&mut peer, revision, 1, "file:///a").await;
            watch(&mut peer, revision, 2, "file:///b").await;
            assert_eq!(taken(), ["+file:///a", "+file:///b"], "{revision}");
            leave(&mut peer, revision, 1, "file:///a").await;
            settle().await;
            assert_eq!(taken(), ["-file:///a"], "{revision}");

            let session = server.sessions().next().unwrap();
            if by_client {
                peer.close().await.unwrap();
                session.wait().await.unwrap();
            } else {
                session.close().await.unwrap();
            }
            settle().await;
            assert_eq!(taken(), ["-file:///b"], "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_subscribing_twice_counts_once() {
    let (server, calls) = noting();
    let revision = Revision::LATEST_LEGACY;
    let mut peer = open(&server, revision).await;
    for id in 1..=2 {
        let answer = watch(&mut peer, revision, id, "file:///a").await;
        assert_eq!(answer["result"], json!({}));
    }
    server.resource_updated("file:///a");
    settle().await;
    assert_eq!(updates(&mut peer, revision).await, ["file:///a"]);
    for _ in 0..2 {
        leave(&mut peer, revision, 1, "file:///a").await;
    }
    assert_eq!(*calls.lock().unwrap(), ["+file:///a", "-file:///a"]);
}

#[tokio::test(start_paused = true)]
async fn refused_resource_is_not_watched() {
    let (server, calls) = noting();
    for revision in LEGACY {
        let mut peer = open(&server, revision).await;
        let answer = watch(&mut peer, revision, 1, "file:///no").await;
        assert_eq!(
            answer["error"],
            json!({"code": -32099, "message": "not this one"})
        );
        server.resource_updated("file:///no");
        settle().await;
        assert_eq!(updates(&mut peer, revision).await, [""; 0], "{revision}");
    }
    let mut peer = open(&server, Revision::LATEST).await;
    let uris = json!(["file:///a", "file:///no", "file:///b"]);
    let filter = json!({"notifications": {"resourceSubscriptions": uris}});
    let acknowledged = peer
        .ask(modern(1, "subscriptions/listen", filter))
        .await
        .unwrap();
    let agreed = json!({"resourceSubscriptions": ["file:///a", "file:///b"]});
    assert_eq!(acknowledged["params"]["notifications"], agreed);
    peer.close().await.unwrap();
    settle().await;
    let expected = ["+file:///a", "+file:///b", "-file:///a", "-file:///b"];
    assert_eq!(*calls.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn subscribing_and_unsubscribing_keep_their_order() {
    let gate = Arc::new(Notify::new());
    let calls = Calls::default();
    let (pass, begun, ended) = (Arc::clone(&gate), Arc::clone(&calls), Arc::clone(&calls));
    let server = server().on_subscribe(
        move |_cx: RequestContext, uri: String| {
            let (pass, calls) = (Arc::clone(&pass), Arc::clone(&begun));
            async move {
                pass.notified().await;
                calls.lock().unwrap().push(format!("+{uri}"));
                Ok(())
            }
        },
        move |_session: ServerSession, uri: String| {
            ended.lock().unwrap().push(format!("-{uri}"));
            async {}
        },
    );
    let mut peer = open(&server, Revision::LATEST_LEGACY).await;
    for id in 0..6 {
        let method = ["resources/subscribe", "resources/unsubscribe"][id % 2];
        let message = request(
            i64::try_from(id).unwrap(),
            method,
            json!({"uri": "file:///a"}),
        );
        peer.send(message).await.unwrap();
    }
    settle().await;
    assert!(calls.lock().unwrap().is_empty());
    for id in 0..6 {
        if id % 2 == 0 {
            gate.notify_one();
        }
        assert_eq!(peer.receive().await.unwrap()["id"], id);
    }
    assert_eq!(
        *calls.lock().unwrap(),
        ["+file:///a", "-file:///a"].repeat(3)
    );

    // If the request is cancelled while the hook decides, there is no subscription, and the hook for its end is not called.
    peer.send(request(
        7,
        "resources/subscribe",
        json!({"uri": "file:///a"}),
    ))
    .await
    .unwrap();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    peer.send(cancel).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    gate.notify_one();
    peer.close().await.unwrap();
    settle().await;
    assert_eq!(calls.lock().unwrap().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn panicking_hook_does_not_end_the_session() {
    let server = server().on_subscribe(
        |_cx: RequestContext, uri: String| async move {
            assert!(!uri.ends_with("panic"), "secret");
            Ok(())
        },
        |_session: ServerSession, _uri: String| async {
            assert!(std::hint::black_box(false), "secret");
        },
    );
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        let answer = watch(&mut peer, revision, 1, "file:///panic").await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        watch(&mut peer, revision, 2, "file:///a").await;
        server.resource_updated("file:///a");
        settle().await;
        assert_eq!(updates(&mut peer, revision).await, ["file:///a"]);
    }
}

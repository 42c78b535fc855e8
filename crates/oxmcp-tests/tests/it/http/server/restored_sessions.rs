//! Sessions that are restored from their records, and the obstacles to that.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use oxmcp::{
    Error, Limits, RequestContext, Resource, Server, ServerSession,
    http::StreamableHttp,
    middleware::{self, Next, Request},
};
use serde_json::json;
use tokio::{sync::Notify, task::yield_now, time::timeout};

use crate::http::mounts::{Target, mounts};
use crate::http::server::{
    legacy::endpoint,
    peer::{LEGACY, Session, builder, initialize, json, send},
    shared_stores::SharedSessions,
};
use crate::support::{calculator, request};

/// Yields, so that all other ready tasks run.
async fn turns() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// The status of the answer to a ping.
async fn ping(session: &Session<impl Target>) -> StatusCode {
    session.call(1, "ping", json!({})).await.status()
}

#[tokio::test]
async fn session_is_not_reported_gone_while_store_fails() {
    let sessions = SharedSessions::default();
    let node = || endpoint(&calculator()).session_store(sessions.clone());
    let moved = Session::open(&node()).await.at(&node());
    sessions.is_away.store(true, Ordering::Relaxed);
    for response in [
        moved.call(1, "ping", json!({})).await,
        moved.get().await,
        moved.delete().await,
    ] {
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        assert!(json(response).await["error"]["message"].is_string());
    }
    sessions.is_away.store(false, Ordering::Relaxed);
    assert_eq!(ping(&moved).await, StatusCode::OK);
}

#[tokio::test]
async fn session_is_not_reported_gone_at_quota() {
    let sessions = SharedSessions::default();
    let node = || {
        let limits = Limits::default().http(|http| http.max_sessions(1));
        endpoint(&calculator())
            .limits(limits)
            .session_store(sessions.clone())
    };
    let full = node();
    let there = Session::open(&full).await;
    let moved = Session::open(&node()).await.at(&full);
    assert_eq!(ping(&moved).await, StatusCode::SERVICE_UNAVAILABLE);
    there.delete().await;
    while ping(&moved).await != StatusCode::OK {
        yield_now().await;
    }
}

#[tokio::test]
async fn session_refused_by_this_node_is_not_restored() {
    let sessions = SharedSessions::default();
    let refuse = middleware::from_fn(|request: Request, next: Next| async move {
        let opens = request.method() == "initialize";
        let response = next.run(request).await?;
        if opens {
            return Err(Error::internal("not here"));
        }
        Ok(response)
    });
    let refusing = calculator().layer(refuse);
    let node = |server: &Server| endpoint(server).session_store(sessions.clone());
    let moved = Session::open(&node(&calculator())).await;
    assert_eq!(
        ping(&moved.at(&node(&refusing))).await,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn session_of_an_unserved_server_is_refused() {
    let sessions = SharedSessions::default();
    let node = endpoint(&calculator()).session_store(sessions.clone());
    let session = Session::open(&node).await;
    let nothing = StreamableHttp::new(|_| None::<Server>).session_store(sessions);
    assert_eq!(ping(&session.at(&nothing)).await, StatusCode::BAD_REQUEST);
}

// Attack: session hijacking.
#[tokio::test]
async fn store_is_queried_only_with_well_formed_ids() {
    for mount in mounts!() {
        let sessions = SharedSessions::default();
        let node = mount
            .serve(&endpoint(&calculator()).session_store(sessions.clone()))
            .await;
        let other = Session::open(&node).await;
        let id = other.id.clone();
        let wrong = [
            String::new(),
            "*".to_owned(),
            "../../etc/passwd".to_owned(),
            "a' OR ''='".to_owned(),
            id.to_uppercase(),
            format!("{id}0"),
            id.chars().skip(1).collect(),
            id.replace(|_| true, "g"),
        ];
        for id in wrong.into_iter().filter(|it| *it != id) {
            let endpoint = other.endpoint.clone();
            let session = Session { endpoint, id };
            assert_eq!(ping(&session).await, StatusCode::NOT_FOUND);
        }
        assert!(sessions.asked.lock().unwrap().is_empty());
        let unknown = Session {
            endpoint: node,
            id: "0123456789abcdef".repeat(2),
        };
        assert_eq!(ping(&unknown).await, StatusCode::NOT_FOUND);
        assert_eq!(*sessions.asked.lock().unwrap(), [unknown.id]);
    }
}

/// The URIs of the subscriptions that a server has accepted, and of those that have ended.
#[derive(Default)]
struct Watched {
    agreed: Mutex<Vec<String>>,
    ended: Mutex<Vec<String>>,
    /// Notified when a subscription waits for ever.
    waits: Notify,
}

/// A server that accepts `agreeing` subscriptions, and lets the next one wait for ever.
fn watching(agreeing: usize, watched: &Arc<Watched>) -> Server {
    let (begins, ends) = (Arc::clone(watched), Arc::clone(watched));
    let left = Arc::new(AtomicUsize::new(agreeing));
    calculator()
        .resource(Resource::text("test://a", "a", "text"))
        .resource(Resource::text("test://b", "b", "text"))
        .on_subscribe(
            move |_cx: RequestContext, uri: String| {
                let (watched, left) = (Arc::clone(&begins), Arc::clone(&left));
                async move {
                    if left.fetch_sub(1, Ordering::Relaxed) == 0 {
                        watched.waits.notify_one();
                        std::future::pending::<()>().await;
                    }
                    watched.agreed.lock().unwrap().push(uri);
                    Ok(())
                }
            },
            move |_session: ServerSession, uri: String| {
                ends.ended.lock().unwrap().push(uri);
                async {}
            },
        )
}

#[tokio::test]
async fn watches_of_unrestored_session_end() {
    let sessions = SharedSessions::default();
    let node = |server: &Server| endpoint(server).session_store(sessions.clone());
    let session = Session::open(&node(&watching(2, &Arc::default()))).await;
    for uri in ["test://a", "test://b"] {
        let subscribe = request(1, "resources/subscribe", json!({"uri": uri}));
        json(session.post(&subscribe).await).await;
    }
    let watched = Arc::<Watched>::default();
    let moved = session.at(&node(&watching(1, &watched)));
    tokio::select! {
        biased;
        status = ping(&moved) => panic!("{status}"),
        () = watched.waits.notified() => {}
    }
    // No request waits for the restoration any more.
    turns().await;
    let (agreed, ended) = (
        watched.agreed.lock().unwrap(),
        watched.ended.lock().unwrap(),
    );
    assert_eq!((agreed.len(), &*agreed), (1, &*ended));
}

#[tokio::test(start_paused = true)]
async fn initialize_is_cancelled_when_the_client_disconnects() {
    /// Notifies when its holder is dropped.
    struct Held(Arc<Notify>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }

    let (waits, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let notify = (Arc::clone(&waits), Arc::clone(&gone));
    let server = calculator().layer(middleware::from_fn(move |request: Request, next: Next| {
        let (waits, gone) = notify.clone();
        async move {
            let _held = Held(gone);
            waits.notify_one();
            std::future::pending::<()>().await;
            next.run(request).await
        }
    }));
    let endpoint = endpoint(&server);
    let open = initialize(LEGACY, json!({})).to_string();
    tokio::select! {
        biased;
        _ = send(&endpoint, builder("POST"), open) => panic!("it waits"),
        () = waits.notified() => {}
    }
    // A cancelled request has a grace period.
    let gone = timeout(Duration::from_secs(60), gone.notified()).await;
    assert!(gone.is_ok(), "it runs on");
}

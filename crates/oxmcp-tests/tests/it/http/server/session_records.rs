//! Records of sessions in a store.

use std::{
    future::pending,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use http::StatusCode;
use oxmcp::{
    Error, Limits, RequestContext, Resource, Result, Server, ServerSession,
    store::{CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::yield_now, time::sleep};

use crate::http::server::{
    legacy::{call_steps, endpoint, steps},
    peer::{Events, LEGACY, Session, builder, initialize, json, send},
    shared_stores::{Act, SharedSessions},
};
use crate::support::{calculator, idle, request};

/// Yields, so that all other ready tasks run.
async fn turns() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// A server whose subscriptions wait to be released, and are then accepted or refused.
fn slowly(release: &Arc<Notify>, agrees: bool) -> Server {
    let release = Arc::clone(release);
    calculator()
        .resource(Resource::text("test://a", "a", "text"))
        .on_subscribe(
            move |_cx: RequestContext, _uri: String| {
                let release = Arc::clone(&release);
                async move {
                    release.notified().await;
                    agrees
                        .then_some(())
                        .ok_or_else(|| Error::invalid_params("no"))
                }
            },
            |_session: ServerSession, _uri: String| async {},
        )
}

fn subscribe(id: i64) -> Value {
    request(id, "resources/subscribe", json!({"uri": "test://a"}))
}

fn set_level(id: i64, level: &str) -> Value {
    request(id, "logging/setLevel", json!({"level": level}))
}

/// The stored log level, and the number of stored subscriptions.
async fn kept(sessions: &SharedSessions, session: &Session) -> (Value, usize) {
    let record = sessions.load(&session.id).await.unwrap().unwrap().record;
    (json!(record.log_level), record.subscribed.len())
}

#[tokio::test]
async fn session_record_stores_a_bounded_initialize() {
    let (server, sessions) = (calculator(), SharedSessions::default());
    let first = endpoint(&server).session_store(sessions.clone());
    let mut opening = initialize(LEGACY, json!({"elicitation": {"url": {}}}));
    opening["params"]["clientInfo"]["icons"] = json!([{"src": "x".repeat(500_000)}]);
    let opened = send(&first, builder("POST"), opening.to_string()).await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap();
    let record = sessions.load(id).await.unwrap().unwrap().record;
    assert!(record.initialize.get().len() < 16 << 10);
    // The record suffices to restore the session.
    let session = Session {
        endpoint: endpoint(&server).session_store(sessions.clone()),
        id: id.to_owned(),
    };
    let answer = json(session.call(1, "ping", json!({})).await).await;
    assert_eq!(answer["result"], json!({}));
    let capabilities = |it: ServerSession| it.client_capabilities().unwrap().clone();
    let mut restored = server.sessions().map(capabilities);
    assert!(restored.all(|it| it.elicitation.unwrap().has_url()));
    assert_eq!(server.sessions().count(), 2);
}

#[tokio::test]
async fn requests_ending_after_delete_do_not_restore_session() {
    let (release, sessions) = (Arc::new(Notify::new()), SharedSessions::default());
    let server = slowly(&release, true);
    let endpoint = endpoint(&server).session_store(sessions.clone());
    let session = Session::open(&endpoint).await;
    let subscribe = subscribe(1);
    let ended = async {
        turns().await;
        assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
        release.notify_one();
    };
    let (answer, ()) = tokio::join!(session.post(&subscribe), ended);
    assert!(json(answer).await["result"].is_object());
    endpoint.close().await;
    assert!(sessions.load(&session.id).await.unwrap().is_none());
}

#[tokio::test]
async fn write_during_session_end_does_not_restore_it() {
    let sessions = SharedSessions::default();
    let server = calculator().logging();
    let session = Session::open(&endpoint(&server).session_store(sessions.clone())).await;
    sessions.pause.at(Act::Set);
    let late = async {
        sessions.pause.reached().await;
        let go = async {
            turns().await;
            sessions.pause.go();
        };
        let (ended, ()) = tokio::join!(session.delete(), go);
        assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    };
    let level = set_level(1, "debug");
    let (answer, ()) = tokio::join!(session.post(&level), late);
    assert_eq!(answer.status(), StatusCode::OK);
    turns().await;
    assert!(sessions.load(&session.id).await.unwrap().is_none());
}

#[tokio::test]
async fn changes_of_a_session_are_stored_in_order() {
    let sessions = SharedSessions::default();
    let server = calculator().logging();
    let session = Session::open(&endpoint(&server).session_store(sessions.clone())).await;
    sessions.pause.at(Act::Set);
    let (one, two) = (set_level(1, "debug"), set_level(2, "error"));
    let later = async {
        sessions.pause.reached().await;
        let go = async {
            turns().await;
            sessions.pause.go();
        };
        tokio::join!(session.post(&two), go);
    };
    tokio::join!(session.post(&one), later);
    assert_eq!(kept(&sessions, &session).await.0, "error");
}

#[tokio::test]
async fn session_id_collision_keeps_the_other_nodes_record() {
    let sessions = SharedSessions::default();
    let server = calculator().logging();
    let node = || {
        let endpoint = endpoint(&server).session_store(sessions.clone());
        endpoint.session_ids(|_| "same".to_owned())
    };
    let first = Session::open(&node()).await;
    first.post(&set_level(1, "error")).await;
    let second = Session::open(&node()).await;
    second.post(&set_level(1, "debug")).await;
    assert_eq!(kept(&sessions, &first).await.0, "error");
    assert_eq!(second.delete().await.status(), StatusCode::NO_CONTENT);
    assert_eq!(kept(&sessions, &first).await.0, "error");
}

#[tokio::test]
async fn session_changes_are_stored_after_client_disconnects() {
    let (release, sessions) = (Arc::new(Notify::new()), SharedSessions::default());
    let server = slowly(&release, true).logging();
    let session = Session::open(&endpoint(&server).session_store(sessions.clone())).await;
    let (level, subscribe) = (set_level(1, "debug"), subscribe(2));
    // The client goes away while the record is written,
    sessions.pause.at(Act::Set);
    tokio::select! {
        biased;
        _ = session.post(&level) => panic!("it is not kept yet"),
        () = sessions.pause.reached() => {}
    }
    sessions.pause.go();
    turns().await;
    assert_eq!(kept(&sessions, &session).await, (json!("debug"), 0));
    // and while the change is made.
    tokio::select! {
        biased;
        _ = session.post(&subscribe) => panic!("it is not released yet"),
        () = turns() => {}
    }
    release.notify_one();
    turns().await;
    assert_eq!(kept(&sessions, &session).await, (json!("debug"), 1));
}

#[tokio::test]
async fn changes_while_a_batch_is_streamed_are_stored() {
    let (release, sessions) = (Arc::new(Notify::new()), SharedSessions::default());
    let running = Arc::new(Notify::new());
    let server = slowly(&release, false).tool(steps(&running));
    let endpoint = endpoint(&server).session_store(sessions.clone());
    let session = Session::open_in(&endpoint, "2025-03-26", json!({})).await;
    let batch = json!([call_steps(1), subscribe(2)]);
    let mut events = Events::of(session.post(&batch).await);
    events.next().await.unwrap();
    assert_eq!(kept(&sessions, &session).await.1, 1, "until it is refused");
    release.notify_one();
    turns().await;
    running.notify_one();
    events.next().await.unwrap();
    running.notify_one();
    assert_eq!(events.rest().await.len(), 1);
    turns().await;
    assert_eq!(kept(&sessions, &session).await.1, 0);
}

#[tokio::test(start_paused = true)]
async fn requests_cancelled_by_shutdown_stay_in_the_record() {
    let (release, sessions) = (Arc::new(Notify::new()), SharedSessions::default());
    let server = slowly(&release, true).tool(steps(&Arc::default()));
    let endpoint = endpoint(&server).session_store(sessions.clone());
    let session = Session::open_in(&endpoint, "2025-03-26", json!({})).await;
    release.notify_one();
    json(session.post(&subscribe(1)).await).await;
    let mut events = Events::of(session.post(&json!([call_steps(2)])).await);
    events.next().await.unwrap();
    endpoint.close().await;
    events.rest().await;
    turns().await;
    assert_eq!(kept(&sessions, &session).await.1, 1);
}

#[tokio::test]
async fn session_keeps_its_age_at_another_node() {
    let sessions = SharedSessions::default();
    let server = calculator().logging().tool(idle("idle"));
    let node = || endpoint(&server).session_store(sessions.clone());
    let session = Session::open_in(&node(), LEGACY, json!({})).await;
    let opened = sessions.load(&session.id).await.unwrap().unwrap();
    let moved = session.at(&node());
    json(moved.post(&set_level(1, "debug")).await).await;
    let record = sessions.load(&session.id).await.unwrap().unwrap().record;
    assert_eq!(
        (json!(record.log_level), record.created),
        (json!("debug"), opened.record.created)
    );
}

#[tokio::test]
async fn panicking_store_delays_no_request() {
    struct Panics;

    impl SessionStore for Panics {
        async fn create(
            &self,
            _: &str,
            _: SessionRecord,
            _: Duration,
            _: usize,
        ) -> Result<CreateOutcome> {
            Ok(CreateOutcome::Created)
        }

        async fn load(&self, _: &str) -> Result<Option<StoredSession>> {
            Ok(None)
        }

        async fn set(&self, _: &str, _: SessionChange) -> Result<Option<u64>> {
            panic!("the store has a fault")
        }

        async fn touch(&self, _: &str, _: Duration) -> Result<Option<u64>> {
            panic!("the store has a fault")
        }

        async fn remove(&self, _: &str) -> Result<()> {
            Ok(())
        }
    }

    let session = Session::open(&endpoint(&calculator().logging()).session_store(Panics)).await;
    let answer = session.post(&set_level(1, "debug")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test(start_paused = true)]
async fn unresponsive_store_delays_requests_by_bounded_time() {
    struct Stuck;

    impl SessionStore for Stuck {
        async fn create(
            &self,
            _: &str,
            _: SessionRecord,
            _: Duration,
            _: usize,
        ) -> Result<CreateOutcome> {
            pending().await
        }

        async fn load(&self, _: &str) -> Result<Option<StoredSession>> {
            pending().await
        }

        async fn set(&self, _: &str, _: SessionChange) -> Result<Option<u64>> {
            pending().await
        }

        async fn touch(&self, _: &str, _: Duration) -> Result<Option<u64>> {
            pending().await
        }

        async fn remove(&self, _: &str) -> Result<()> {
            pending().await
        }
    }

    let server = calculator().logging();
    let endpoint = endpoint(&server).session_store(Stuck);
    let opening = initialize(LEGACY, json!({})).to_string();
    let refused = send(&endpoint, builder("POST"), opening).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let session = Session {
        endpoint: endpoint.clone(),
        id: "0".repeat(32),
    };
    let answer = session.post(&set_level(2, "debug")).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    endpoint.close().await;
    assert_eq!(server.sessions().count(), 0);
}

/// It would be unknown to all other nodes.
#[tokio::test]
async fn unstorable_session_is_refused() {
    let sessions = SharedSessions::default();
    let server = calculator();
    let endpoint = endpoint(&server).session_store(sessions.clone());
    sessions.is_away.store(true, Ordering::Relaxed);
    let opening = initialize(LEGACY, json!({})).to_string();
    let refused = send(&endpoint, builder("POST"), opening).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(!refused.headers().contains_key("mcp-session-id"));
    assert_eq!(server.sessions().count(), 0);
    sessions.is_away.store(false, Ordering::Relaxed);
    let opened = Session::open(&endpoint).await;
    assert!(sessions.load(&opened.id).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn setting_is_stored_once_store_is_available_again() {
    let sessions = SharedSessions::default();
    let server = calculator().logging();
    let endpoint = endpoint(&server).session_store(sessions.clone());
    let session = Session::open(&endpoint).await;
    sessions.is_away.store(true, Ordering::Relaxed);
    let answer = session.post(&set_level(1, "debug")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    sleep(Duration::from_secs(60)).await;
    sessions.is_away.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(10)).await;
    let record = sessions.load(&session.id).await.unwrap().unwrap().record;
    assert_eq!(json!(record.log_level), json!("debug"));
}

#[tokio::test]
async fn evicted_session_may_outlive_its_replacement() {
    let sessions = SharedSessions::default();
    let limits = Limits::default().http(|http| http.max_sessions(1));
    let endpoint = endpoint(&calculator()).session_store(sessions.clone());
    let endpoint = endpoint.limits(limits);
    sessions.pause.at(Act::Remove);
    let first = initialize(LEGACY, json!({})).to_string();
    let first = send(&endpoint, builder("POST"), first).await;
    assert_eq!(first.status(), StatusCode::OK);
    let second = Session::open(&endpoint).await;
    sessions.pause.reached().await;
    second.delete().await;
    turns().await;
    assert!(
        endpoint.close().now_or_never().is_none(),
        "it is waited for"
    );
    sessions.pause.go();
    endpoint.close().await;
}

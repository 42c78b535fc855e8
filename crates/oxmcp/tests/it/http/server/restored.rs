//! Sessions that are gone on with, and what may be in the way.

use std::sync::atomic::Ordering;

use http::StatusCode;
use oxmcp::{Limits, Server, http::StreamableHttp};
use serde_json::json;

use super::{
    legacy::endpoint,
    peer::{Session, json},
    stores::SharedSessions,
};
use crate::support::calculator;

/// What a ping is answered with.
async fn ping(session: &Session) -> StatusCode {
    session.call(1, "ping", json!({})).await.status()
}

#[tokio::test]
async fn a_session_is_not_told_to_be_gone_while_its_store_is_away() {
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
        assert!(json(response).await["error"]["message"].is_string());
    }
    sessions.is_away.store(false, Ordering::Relaxed);
    assert_eq!(ping(&moved).await, StatusCode::OK);
}

#[tokio::test]
async fn a_session_is_not_told_to_be_gone_where_there_is_no_room_for_it() {
    let sessions = SharedSessions::default();
    let node = || {
        let limits = Limits {
            max_http_sessions: 1,
            ..Limits::default()
        };
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
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_session_that_is_not_served_here_is_told_so() {
    let sessions = SharedSessions::default();
    let node = endpoint(&calculator()).session_store(sessions.clone());
    let session = Session::open(&node).await;
    let nothing = StreamableHttp::new(|_| None::<Server>).session_store(sessions);
    assert_eq!(ping(&session.at(&nothing)).await, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn attack_4_a_store_is_asked_for_nothing_but_ids_as_they_are_made() {
    let sessions = SharedSessions::default();
    let node = endpoint(&calculator()).session_store(sessions.clone());
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

//! Quota of sessions that all nodes share, counted by their store.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use oxmcp::{
    Limits, Principal, Result,
    http::StreamableHttp,
    store::{
        CreateOutcome, MemoryBus, MemorySessionStore, SessionChange, SessionRecord, SessionStore,
        StoredSession,
    },
};
use serde_json::json;
use tokio::time::advance;

use super::pair::turns;
use crate::http::server::{
    legacy::endpoint,
    peer::{LEGACY, builder, header, initialize, send},
    shared_stores::{Act, SharedSessions},
};
use crate::support::{calculator, request};

const MINUTE: Duration = Duration::from_secs(60);

/// A node. Among all nodes, a principal may have `max_per_owner` sessions.
fn node(store: impl SessionStore, max_per_owner: usize) -> StreamableHttp {
    let limits = Limits::default().http(|http| http.max_sessions_each(max_per_owner));
    endpoint(&calculator()).session_store(store).limits(limits)
}

/// Opens a session as Ann.
async fn open(node: &StreamableHttp) -> std::result::Result<String, StatusCode> {
    let opening = builder("POST").extension(Principal::new("ann"));
    let opened = send(node, opening, initialize(LEGACY, json!({})).to_string()).await;
    match opened.status() {
        StatusCode::OK => Ok(header(opened.headers(), "mcp-session-id").to_owned()),
        refused => Err(refused),
    }
}

/// Opens a session as Ann, and uses it.
async fn open_and_use(node: &StreamableHttp) -> std::result::Result<String, StatusCode> {
    let id = open(node).await?;
    assert_eq!(ask(node, &id, "POST").await, StatusCode::OK);
    turns().await;
    Ok(id)
}

async fn ask(node: &StreamableHttp, id: &str, method: &str) -> StatusCode {
    let asked = builder(method).header("mcp-session-id", id);
    let asked = asked.extension(Principal::new("ann"));
    let ping = request(1, "ping", json!({})).to_string();
    send(node, asked, ping).await.status()
}

const TOO_MANY: std::result::Result<String, StatusCode> = Err(StatusCode::TOO_MANY_REQUESTS);

#[tokio::test(start_paused = true)]
async fn principal_has_one_quota_among_all_nodes() {
    let (store, bus) = (
        Arc::new(MemorySessionStore::new()),
        Arc::new(MemoryBus::new()),
    );
    let new = || node(Arc::clone(&store), 2).bus(Arc::clone(&bus));
    let (one, other) = (new(), new());
    open_and_use(&one).await.unwrap();
    let ended = open_and_use(&other).await.unwrap();
    for node in [&one, &other] {
        assert_eq!(open(node).await, TOO_MANY);
    }
    let opening = builder("POST").extension(Principal::new("bob"));
    let of_bob = send(&one, opening, initialize(LEGACY, json!({})).to_string()).await;
    assert_eq!(of_bob.status(), StatusCode::OK);
    // A session that ends makes room on all nodes, on whichever node it is ended.
    assert_eq!(ask(&one, &ended, "DELETE").await, StatusCode::NO_CONTENT);
    turns().await;
    open_and_use(&other).await.unwrap();
    assert_eq!(open(&one).await, TOO_MANY);
}

#[tokio::test(start_paused = true)]
async fn sessions_of_killed_node_count_until_they_expire() {
    let store = Arc::new(MemorySessionStore::new());
    let (killed, other) = (node(Arc::clone(&store), 2), node(Arc::clone(&store), 2));
    open(&killed).await.unwrap();
    open_and_use(&killed).await.unwrap();
    // From here on the killed node gets no requests, and does nothing more.
    assert_eq!(open(&other).await, TOO_MANY);
    advance(MINUTE - Duration::from_millis(1)).await;
    assert_eq!(open(&other).await, TOO_MANY);
    advance(Duration::from_millis(1)).await;
    let own = open_and_use(&other).await.unwrap();
    assert_eq!(open(&other).await, TOO_MANY);
    let kept = Limits::default().http.session_idle * 2 / 64;
    for _ in 0..64 {
        advance(kept).await;
        assert_eq!(ask(&other, &own, "POST").await, StatusCode::OK);
        turns().await;
    }
    open_and_use(&other).await.unwrap();
    assert_eq!(open(&other).await, TOO_MANY);
}

#[tokio::test(start_paused = true)]
async fn unused_session_is_evicted_at_the_shared_quota() {
    let store = Arc::new(MemorySessionStore::new());
    let (one, other) = (node(Arc::clone(&store), 2), node(Arc::clone(&store), 2));
    let used = open_and_use(&other).await.unwrap();
    let mut last = open(&one).await.unwrap();
    for _ in 0..3 {
        let next = open(&one).await.unwrap();
        assert_eq!(ask(&one, &last, "POST").await, StatusCode::NOT_FOUND);
        last = next;
    }
    // The other node has no unused session.
    assert_eq!(open(&other).await, TOO_MANY);
    for id in [&used, &last] {
        assert_eq!(ask(&other, id, "POST").await, StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn locally_evicted_session_is_not_counted() {
    let store = SharedSessions::default();
    let node = node(store.clone(), 1);
    let mut last = open(&node).await.unwrap();
    for _ in 0..3 {
        // The next session opens however long the end of the last one takes.
        store.pause.at(Act::Remove);
        let next = open(&node).await.unwrap();
        assert!(store.load(&last).await.unwrap().is_none());
        store.pause.go();
        turns().await;
        last = next;
    }
    assert_eq!(ask(&node, &last, "POST").await, StatusCode::OK);
    assert_eq!(open(&node).await, TOO_MANY);
}

/// A session store that is full (`true`) or unavailable (`false`).
struct Full(bool);

impl SessionStore for Full {
    async fn create(
        &self,
        _: &str,
        _: SessionRecord,
        _: Duration,
        _: usize,
    ) -> Result<CreateOutcome> {
        match self.0 {
            true => Ok(CreateOutcome::Full),
            false => Err(oxmcp::Error::closed("the store is away")),
        }
    }

    async fn load(&self, _: &str) -> Result<Option<StoredSession>> {
        Ok(None)
    }

    async fn set(&self, _: &str, _: SessionChange) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn touch(&self, _: &str, _: Duration) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn remove(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn full_or_failing_store_refuses_new_sessions() {
    let full = node(Full(true), 2);
    assert_eq!(open(&full).await, Err(StatusCode::SERVICE_UNAVAILABLE));
    assert!(format!("{full:?}").contains("open: 0"), "{full:?}");
    let away = node(Full(false), 2);
    assert_eq!(open(&away).await, Err(StatusCode::SERVICE_UNAVAILABLE));
    assert!(format!("{away:?}").contains("open: 0"), "{away:?}");
}

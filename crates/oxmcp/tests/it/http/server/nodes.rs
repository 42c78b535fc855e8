//! Sessions that several nodes have in common.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use oxmcp::{
    Resource, Server,
    http::Principal,
    store::{
        EventStore, MemoryEventStore, MemorySessionStore, Replay, SessionRecord, SessionStore,
    },
};
use serde_json::json;
use tokio::sync::Notify;

use super::{
    legacy::{call_steps, endpoint, steps},
    peer::{Events, LEGACY, Session, builder, header, initialize, json, send},
};
use crate::support::{calculator, request};

#[tokio::test]
async fn a_session_goes_on_at_another_node() {
    let (events, sessions) = (Shared::default(), SharedSessions::default());
    let node = |server: &Server| {
        endpoint(server)
            .event_store(events.clone())
            .session_store(sessions.clone())
    };
    let release = Arc::new(Notify::new());
    let one = calculator().tool(steps(&release)).subscriptions();
    let one = one.resource(Resource::text("test://a", "a", "text"));
    let other = calculator().subscriptions();
    let other = other.resource(Resource::text("test://a", "a", "text"));
    let session = Session::open(&node(&one)).await;
    let params = json!({"uri": "test://a"});
    json(session.call(1, "resources/subscribe", params).await).await;
    let mut stream = Events::of(session.post(&call_steps(2)).await);
    stream.next().await.unwrap();
    let seen = stream.next().await.unwrap().id.unwrap();
    release.notify_one();
    stream.next().await.unwrap();

    let moved = Session {
        endpoint: node(&other),
        id: session.id.clone(),
    };
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let answer = json(moved.call(3, "tools/call", params).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    let mut told = Events::of(moved.get().await);
    other.resource_updated("test://a");
    let update = told.next().await.unwrap().data;
    assert_eq!(update["params"]["uri"], "test://a");
    // What was sent before is there, too.
    let resumed = Events::of(moved.resume(&seen).await).rest().await;
    assert_eq!(resumed[0].data["params"]["progress"], 2.0);
    // A session that was ended is not there any more.
    assert_eq!(moved.delete().await.status(), StatusCode::NO_CONTENT);
    let gone = moved.call(4, "ping", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn attack_4_nobody_else_goes_on_with_a_session_that_is_kept() {
    let sessions = SharedSessions::default();
    let one = endpoint(&calculator()).session_store(sessions.clone());
    let open = builder("POST").extension(Principal::new("ann"));
    let opened = send(&one, open, initialize(LEGACY, json!({})).to_string()).await;
    let id = header(opened.headers(), "mcp-session-id").to_owned();
    let other = endpoint(&calculator()).session_store(sessions);
    let status = async |principal: &str| {
        let builder = builder("POST").header("mcp-session-id", &id);
        let builder = builder.extension(Principal::new(principal));
        let ping = request(1, "ping", json!({}));
        send(&other, builder, ping.to_string()).await.status()
    };
    assert_eq!(status("bob").await, StatusCode::NOT_FOUND);
    assert_eq!(status("ann").await, StatusCode::OK);
}

/// Stores that two nodes have in common.
#[derive(Clone, Default)]
struct Shared(Arc<MemoryEventStore>);

impl EventStore for Shared {
    async fn append(&self, session: &str, stream: &str, data: Bytes) -> oxmcp::Result<u64> {
        self.0.append(session, stream, data).await
    }

    async fn after(
        &self,
        session: &str,
        stream: &str,
        index: u64,
        max: usize,
    ) -> oxmcp::Result<Replay> {
        self.0.after(session, stream, index, max).await
    }

    async fn end(&self, session: &str, stream: &str) -> oxmcp::Result<()> {
        self.0.end(session, stream).await
    }

    async fn forget(&self, session: &str) -> oxmcp::Result<()> {
        self.0.forget(session).await
    }
}

#[derive(Clone, Default)]
struct SharedSessions(Arc<MemorySessionStore>);

impl SessionStore for SharedSessions {
    async fn save(&self, id: &str, record: SessionRecord) -> oxmcp::Result<()> {
        self.0.save(id, record).await
    }

    async fn load(&self, id: &str) -> oxmcp::Result<Option<SessionRecord>> {
        self.0.load(id).await
    }

    async fn remove(&self, id: &str) -> oxmcp::Result<()> {
        self.0.remove(id).await
    }
}

//! Sessions that several nodes share.

use std::sync::Arc;

use http::StatusCode;
use oxmcp::{RequestContext, Resource, Server, Tool, ToolError, http::Principal};
use serde_json::json;
use tokio::sync::Notify;

use crate::http::mounts::mounts;
use crate::http::server::{
    legacy::{call_steps, endpoint, steps},
    peer::{Events, LEGACY, Session, builder, header, initialize, json, send},
    shared_stores::{SharedEvents, SharedSessions},
};
use crate::support::{calculator, request};

#[tokio::test]
async fn a_session_continues_at_another_node() {
    let (events, sessions) = (SharedEvents::default(), SharedSessions::default());
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

    let moved = session.at(&node(&other));
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let answer = json(moved.call(3, "tools/call", params).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    let mut told = moved.listen().await;
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
async fn attack_4_only_its_owner_restores_a_stored_session() {
    for mount in mounts!() {
        let sessions = SharedSessions::default();
        let one = mount
            .serve(&endpoint(&calculator()).session_store(sessions.clone()))
            .await;
        let open = builder("POST").extension(Principal::new("ann"));
        let opened = send(&one, open, initialize(LEGACY, json!({})).to_string()).await;
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        let other = mount
            .serve(&endpoint(&calculator()).session_store(sessions))
            .await;
        let status = async |principal: &str| {
            let builder = builder("POST").header("mcp-session-id", &id);
            let builder = builder.extension(Principal::new(principal));
            let ping = request(1, "ping", json!({}));
            send(&other, builder, ping.to_string()).await.status()
        };
        assert_eq!(status("bob").await, StatusCode::NOT_FOUND);
        assert_eq!(status("ann").await, StatusCode::OK);
    }
}

#[tokio::test]
async fn streams_of_two_nodes_are_never_the_same() {
    let (events, sessions) = (SharedEvents::default(), SharedSessions::default());
    let release = Arc::new(Notify::new());
    let node = || {
        endpoint(&calculator().tool(steps(&release)))
            .event_store(events.clone())
            .session_store(sessions.clone())
    };
    let one = Session::open(&node()).await;
    let mut streams = Vec::new();
    let mut firsts = Vec::new();
    for id in 0..3 {
        // The first is at the node that opened the session, the others are at nodes that go on with it.
        let at = if id == 0 {
            one.endpoint.clone()
        } else {
            node()
        };
        let session = one.at(&at);
        let mut stream = Events::of(session.post(&call_steps(id)).await);
        let first = stream.next().await.unwrap().id.unwrap();
        assert_eq!(first.split_once('_').unwrap().1, "1", "{first}");
        stream.next().await.unwrap();
        streams.push(stream);
        firsts.push((session, first));
    }
    for _ in 0..2 {
        for _ in &streams {
            release.notify_one();
            tokio::task::yield_now().await;
        }
    }
    for (id, (stream, (session, first))) in streams.into_iter().zip(&firsts).enumerate() {
        assert_eq!(stream.rest().await.last().unwrap().data["id"], id);
        let again = Events::of(session.resume(first).await).rest().await;
        assert_eq!(again.len(), 3, "two steps and the answer");
        assert_eq!(again[2].data["id"], id);
    }
}

#[tokio::test]
async fn attack_3_a_late_answer_to_one_node_answers_nothing_at_another() {
    for mount in mounts!() {
        #[derive(Debug, serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
        struct Name {
            name: String,
        }

        let sessions = SharedSessions::default();
        let node = async || {
            let tool = Tool::new("greet", "Greet", |cx: RequestContext| async move {
                let Name { name } = cx.ask("name", "Who are you?").await?;
                Ok::<_, ToolError>(format!("Hello, {name}!"))
            });
            mount
                .serve(&endpoint(&calculator().tool(tool)).session_store(sessions.clone()))
                .await
        };
        let params = json!({"name": "greet", "arguments": {}});
        let one = Session::open_in(&node().await, LEGACY, json!({"elicitation": {}})).await;
        let other = one.at(&node().await);
        let mut asked = Vec::new();
        let mut streams = Vec::new();
        for session in [&one, &other] {
            let mut events = Events::of(session.call(1, "tools/call", params.clone()).await);
            events.next().await.unwrap();
            asked.push(events.next().await.unwrap().data["id"].clone());
            streams.push(events);
        }
        for (id, name) in [(&asked[0], "Ann"), (&asked[1], "Bob")] {
            let number = id.as_u64().unwrap();
            assert!(number < 1 << 53, "JSON carries it as it is");
            let answer = json!({"jsonrpc": "2.0", "id": id,
            "result": {"action": "accept", "content": {"name": name}}});
            assert_eq!(other.post(&answer).await.status(), StatusCode::ACCEPTED);
        }
        let answer = streams[1].next().await.unwrap().data;
        assert_eq!(answer["result"]["content"][0]["text"], "Hello, Bob!");
    }
}

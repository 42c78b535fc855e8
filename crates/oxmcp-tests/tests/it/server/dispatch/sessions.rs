//! Many sessions of one server.

use oxmcp::{Client, RequestContext, Revision, Server, Tool, in_memory, testing};
use serde_json::json;

use crate::support::{LEGACY, calculator, idle, script};

#[tokio::test]
async fn server_holds_many_sessions() {
    let server = calculator();
    let mut sessions = Vec::new();
    for revision in Revision::ALL {
        sessions.push(testing::connect(&server).revision(revision).await.unwrap());
    }
    for (session, revision) in sessions.iter().zip(Revision::ALL) {
        assert_eq!(session.revision(), revision);
        let sum: f64 = session
            .call_tool("add", json!({"a": 1, "b": 2}))
            .structured()
            .await
            .unwrap();
        assert_eq!(sum, 3.0);
    }
    assert_eq!(server.sessions().count(), 5);
    for session in sessions {
        session.close().await.unwrap();
    }
    for session in server.sessions() {
        session.wait().await.unwrap();
    }
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test]
async fn session_knows_its_server_and_client() {
    for revision in LEGACY {
        let server = calculator();
        let (near, far) = in_memory();
        let session = server.connect(far).await.unwrap();
        assert_eq!(session.revision(), None);
        assert!(session.client_info().is_none() && session.client_capabilities().is_none());

        let client = Client::new("someone", "2.0")
            .revisions([revision])
            .connect(near)
            .await
            .unwrap();
        assert_eq!(session.revision(), Some(revision));
        assert_eq!(session.client_info().unwrap().name, "someone");
        assert!(session.client_capabilities().is_some());
        // The session's server is the same server, not a copy.
        session.server().add_tools([idle("more")]).unwrap();
        assert_eq!(client.tools().all().await.unwrap().len(), 2);
        assert_eq!(server.sessions().next().unwrap().revision(), Some(revision));
    }
}

#[tokio::test]
async fn clones_are_the_same_server() {
    let server = Server::new("one", "1.0.0");
    let clone = server.clone();
    clone.add_tools([idle("a")]).unwrap();
    let session = testing::connect(&server).await.unwrap();
    assert_eq!(session.tools().all().await.unwrap().len(), 1);
    assert_eq!(clone.sessions().count(), 1);
}

#[tokio::test]
async fn close_is_idempotent_and_wait_returns_for_all() {
    let server = calculator();
    let (near, far) = in_memory();
    let session = server.connect(far).await.unwrap();
    let client = Client::new("c", "1").connect(near).await.unwrap();
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.wait().await }
    });
    let (one, other) = tokio::join!(session.close(), session.close());
    one.unwrap();
    other.unwrap();
    session.close().await.unwrap();
    waiting.await.unwrap().unwrap();
    client.wait().await.unwrap();
    let error = client
        .call_tool("add", json!({"a": 1, "b": 2}))
        .await
        .unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test]
async fn ping_reaches_legacy_clients_only() {
    for revision in Revision::ALL {
        let server = calculator();
        let (near, far) = in_memory();
        let session = server.connect(far).await.unwrap();
        assert!(session.ping().await.unwrap_err().is_unsupported());
        let client = Client::new("c", "1")
            .revisions([revision])
            .connect(near)
            .await
            .unwrap();
        let pinged = session.ping().await;
        assert_eq!(pinged.is_ok(), !revision.is_modern(), "{revision}");
        drop(client);
    }
}

#[tokio::test]
async fn run_returns_when_the_client_disconnects() {
    let server = calculator();
    let (near, far) = in_memory();
    let running = tokio::spawn({
        let server = server.clone();
        async move { server.run(far).await }
    });
    let client = Client::new("c", "1").connect(near).await.unwrap();
    client.close().await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test]
async fn dropping_run_closes_the_session() {
    let server = calculator();
    let (near, far) = in_memory();
    let running = tokio::spawn({
        let server = server.clone();
        async move { server.run(far).await }
    });
    let client = Client::new("c", "1").connect(near).await.unwrap();
    running.abort();
    client.wait().await.unwrap();
}

#[tokio::test]
async fn session_outlives_its_handle_and_retains_its_server() {
    let (near, far) = in_memory();
    drop(calculator().connect(far).await.unwrap());
    let client = Client::new("c", "1").connect(near).await.unwrap();
    assert_eq!(client.tools().all().await.unwrap().len(), 1);
}

#[tokio::test]
async fn handlers_know_the_clients_identity_per_request() {
    let who = Tool::new("who", "", |cx: RequestContext| async move {
        let info = cx.peer_info().unwrap();
        format!("{} {} {}", info.name, info.version, cx.revision())
    });
    let server = Server::new("s", "1").tool(who);
    let mut peer = script(&server).await;
    peer.initialize(Revision::V2025_06_18).await.unwrap();
    for (name, id) in [("first", 1), ("second", 2), ("first", 3)] {
        let mut request = crate::support::modern(id, "tools/call", json!({"name": "who"}));
        request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = name.into();
        let answer = peer.ask(request).await.unwrap();
        assert_eq!(
            crate::support::text(&answer),
            format!("{name} 1.0.0 2026-07-28")
        );
    }
    let legacy = crate::support::request(4, "tools/call", json!({"name": "who"}));
    let answer = peer.ask(legacy).await.unwrap();
    assert_eq!(crate::support::text(&answer), "scripted 1.0.0 2025-06-18");
}

#[tokio::test]
async fn debug_output_is_short() {
    let server = Server::new("s", "1").tools((0..2000).map(|index| idle(&format!("tool{index}"))));
    let session = testing::connect(&server).await.unwrap();
    let near = server.sessions().next().unwrap();
    for text in [
        format!("{server:?}"),
        format!("{session:?}"),
        format!("{near:?}"),
        format!("{:?}", session.client()),
    ] {
        assert!(text.len() < 500, "{text}");
    }
}

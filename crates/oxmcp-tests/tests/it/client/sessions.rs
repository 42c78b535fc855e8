//! Many sessions of one client, and the notifications that servers send to them.

use std::sync::{Arc, Mutex};

use oxmcp::{
    Accept, ClientSession, RequestContext, Revision, Server, Tool, ToolError,
    protocol::{ElicitFormParams, Root},
    testing,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::client::{answer, client, connecting, expect, initialized, session};
use crate::support::{LEGACY, calculator, idle, notification, request};

#[tokio::test]
async fn client_holds_many_sessions() {
    let client = client();
    let mut sessions = Vec::new();
    for revision in Revision::ALL {
        let server = calculator();
        sessions.push(
            testing::connect(&server)
                .client(&client)
                .revision(revision)
                .await
                .unwrap(),
        );
    }
    assert_eq!(client.sessions().count(), 5);
    let revisions: Vec<_> = client
        .sessions()
        .map(|session| session.revision())
        .collect();
    assert_eq!(revisions, Revision::ALL);
    // The client itself is not pinned to a revision.
    assert_eq!(
        testing::connect(&calculator())
            .client(&client)
            .await
            .unwrap()
            .revision(),
        Revision::LATEST
    );
    let closed = sessions.remove(0);
    closed.close().await.unwrap();
    assert_eq!(client.sessions().count(), 4);
    drop(sessions);
    assert_eq!(client.sessions().count(), 0);
}

#[tokio::test]
async fn session_exposes_its_client() {
    let client = client();
    let session = testing::connect(&calculator())
        .client(&client)
        .await
        .unwrap();
    let same = session.client();
    assert_eq!(same.sessions().count(), 1);
    assert_eq!(
        client
            .sessions()
            .next()
            .unwrap()
            .server_info()
            .unwrap()
            .name,
        "calculator"
    );
}

#[tokio::test]
async fn client_for_one_server_has_its_label() {
    #[derive(serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
    struct Name {
        name: String,
    }
    let ask = |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Your name?").await?;
        Ok::<_, ToolError>(name)
    };
    let server = Server::new("bank", "1.0.0").tool(Tool::new("ask", "Asks", ask));
    let answer = |_: ElicitFormParams, cx: RequestContext| async move {
        let name = cx.server_label().unwrap_or_else(|| "nobody".into());
        Accept(Name { name })
    };
    let client = client().on_elicit(answer);
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        for (client, expected) in [
            (client.clone(), "nobody"),
            (client.for_server("home bank"), "home bank"),
        ] {
            let label = client.server_label().unwrap_or("nobody");
            assert_eq!(label, expected);
            let connecting = testing::connect(&server).client(&client);
            let session = connecting.revision(revision).await.unwrap();
            let name: String = session.call_tool("ask", ()).structured().await.unwrap();
            assert_eq!(name, expected, "{revision}");
        }
    }
}

#[tokio::test]
async fn client_for_one_server_is_another_client() {
    let client = client();
    let other = client.for_server("calculator");
    let session = testing::connect(&calculator())
        .client(&other)
        .await
        .unwrap();
    assert_eq!(client.sessions().count(), 0);
    assert_eq!(other.sessions().count(), 1);
    drop(session);
    // A mistake in the settings is one of both.
    let wrong = client
        .roots([Root::new("no file")])
        .for_server("calculator");
    let error = testing::connect(&calculator()).client(&wrong).await;
    assert!(error.unwrap_err().to_string().contains("file://"));
}

#[tokio::test]
async fn last_handle_closes_the_session() {
    let server = calculator();
    let session = testing::connect(&server).await.unwrap();
    let near = server.sessions().next().unwrap();
    let clone = session.clone();
    drop(session);
    // Handles that come and go change nothing.
    drop(clone.client().sessions().collect::<Vec<_>>());
    assert_eq!(clone.tools().all().await.unwrap().len(), 1);
    drop(clone);
    near.wait().await.unwrap();
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test]
async fn call_keeps_its_session_open() {
    let server = calculator();
    let call = testing::connect(&server)
        .await
        .unwrap()
        .call_tool("add", json!({"a": 1, "b": 2}));
    assert_eq!(call.structured::<f64>().await.unwrap(), 3.0);
    let mut tools = testing::connect(&server).await.unwrap().tools();
    assert_eq!(tools.next().await.unwrap().unwrap().name, "add");
}

#[tokio::test]
async fn close_is_idempotent_and_later_calls_fail() {
    for revision in Revision::ALL {
        let session = testing::connect(&calculator())
            .revision(revision)
            .await
            .unwrap();
        let (one, other) = tokio::join!(session.close(), session.close());
        one.unwrap();
        other.unwrap();
        session.close().await.unwrap();
        session.wait().await.unwrap();
        let error = session.ping().await.unwrap_err();
        assert!(error.is_closed(), "{error}");
    }
}

#[tokio::test]
async fn wait_returns_when_the_server_disconnects() {
    let (peer, session) = session(Revision::V2025_06_18).await;
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    tokio::task::yield_now().await;
    drop(peer);
    session.wait().await.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_closed(), "{error}");
}

#[tokio::test]
async fn change_handlers_are_called_in_order() {
    for revision in Revision::ALL {
        let (told, mut heard) = mpsc::channel(16);
        let tell = move |what: &'static str| {
            let told = told.clone();
            move |session: ClientSession| {
                let told = told.clone();
                async move { told.send((what, session.revision())).await.unwrap() }
            }
        };
        let client = client()
            .revisions(crate::client::asking(revision))
            .on_tools_changed(tell("tools"))
            .on_prompts_changed(tell("prompts"))
            .on_resources_changed(tell("resources"));
        let (mut peer, connecting) = connecting(client).await;
        let request = peer.receive().await.unwrap();
        let result = if revision.is_modern() {
            crate::client::discovered(&["2026-07-28"])
        } else {
            initialized(revision.as_str())
        };
        answer(&mut peer, &request, result).await;
        let session = connecting.await.unwrap().unwrap();
        for what in ["prompts", "tools", "unknown", "resources", "tools"] {
            peer.send(notification(&format!("notifications/{what}/list_changed")))
                .await
                .unwrap();
        }
        for what in ["prompts", "tools", "resources", "tools"] {
            assert_eq!(heard.recv().await.unwrap(), (what, revision));
        }
        drop(session);
    }
}

#[tokio::test]
async fn change_right_after_the_handshake_is_not_missed() {
    let (told, mut heard) = mpsc::channel(1);
    let client = client().revisions(LEGACY).on_tools_changed(move |session| {
        let told = told.clone();
        async move { told.send(session.revision()).await.unwrap() }
    });
    let (mut peer, connecting) = connecting(client).await;
    let request = expect(&mut peer, "initialize").await;
    answer(&mut peer, &request, initialized("2025-03-26")).await;
    expect(&mut peer, "notifications/initialized").await;
    peer.send(notification("notifications/tools/list_changed"))
        .await
        .unwrap();
    let session = connecting.await.unwrap().unwrap();
    assert_eq!(heard.recv().await.unwrap(), Revision::V2025_03_26);
    drop(session);
}

#[tokio::test]
async fn handler_may_use_the_session_it_receives() {
    let (told, mut heard) = mpsc::channel(1);
    let client = client().on_tools_changed(move |session: ClientSession| {
        let told = told.clone();
        async move {
            let count = session.tools().all().await.unwrap().len();
            told.send(count).await.unwrap();
        }
    });
    let server = calculator();
    let session = testing::connect(&server)
        .client(&client)
        .revision(Revision::V2025_11_25)
        .await
        .unwrap();
    // After the ping, the server knows that the client is ready.
    session.ping().await.unwrap();
    server.add_tools([idle("more")]).unwrap();
    assert_eq!(heard.recv().await.unwrap(), 2);
}

#[tokio::test]
async fn panicking_change_handler_does_not_end_the_session() {
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let (told, mut heard) = mpsc::channel(1);
    let client = client()
        .revisions([Revision::V2025_11_25])
        .on_tools_changed(move |_| {
            *counted.lock().unwrap() += 1;
            assert!(std::hint::black_box(false), "before its future");
            async {}
        })
        .on_prompts_changed(move |_| {
            let told = told.clone();
            async move { told.send(()).await.unwrap() }
        });
    let (mut peer, connecting) = connecting(client).await;
    let request = expect(&mut peer, "initialize").await;
    answer(&mut peer, &request, initialized("2025-11-25")).await;
    let session = connecting.await.unwrap().unwrap();
    peer.send(notification("notifications/tools/list_changed"))
        .await
        .unwrap();
    peer.send(notification("notifications/prompts/list_changed"))
        .await
        .unwrap();
    heard.recv().await.unwrap();
    assert_eq!(*calls.lock().unwrap(), 1);
    drop(session);
}

#[tokio::test]
async fn legacy_server_requests_except_ping_are_refused() {
    for revision in LEGACY {
        let (mut peer, session) = session(revision).await;
        let pong = peer.ask(request(1, "ping", json!({}))).await.unwrap();
        assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        for method in [
            "roots/list",
            "sampling/createMessage",
            "elicitation/create",
            "what/ever",
        ] {
            let refused = peer.ask(request(2, method, json!({}))).await.unwrap();
            assert_eq!(refused["error"]["code"], -32601, "{method}");
        }
        drop(session);
    }
}

#[tokio::test]
async fn requests_from_modern_servers_get_no_response() {
    let (mut peer, session) = session(Revision::LATEST).await;
    peer.send(request(1, "ping", json!({}))).await.unwrap();
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    answer(
        &mut peer,
        &request,
        json!({"resultType": "complete", "content": []}),
    )
    .await;
    call.await.unwrap().unwrap();
}

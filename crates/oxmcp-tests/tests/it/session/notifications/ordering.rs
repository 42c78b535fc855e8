//! Ordering between notifications, requests and answers.

use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    time::Duration,
};

use oxmcp::{
    Client, Revision, Server, ServerSession, Tool,
    middleware::{self, Next, Request},
    testing::ScriptedPeer,
};
use serde_json::json;

use crate::session::*;

#[tokio::test(start_paused = true)]
async fn slow_tool_delays_no_other_tool_or_ping() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    for _ in 0..4 {
        peer.send(call("slow", "slow", json!({"ms": 1000})))
            .await
            .unwrap();
        peer.send(ping("ping")).await.unwrap();
        peer.send(call("fast", "fast", json!({}))).await.unwrap();
        let mut order = Vec::new();
        for _ in 0..3 {
            order.push(peer.receive().await.unwrap()["id"].clone());
        }
        assert_eq!(order.pop().unwrap(), "slow");
    }
}

/// A tool that blocks its thread until the test releases it, before its first await or after it.
fn blocking(early: bool) -> (Server, mpsc::Sender<()>) {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let wait = move || {
        // The handler is slow even if the test is fast.
        std::thread::sleep(Duration::from_millis(1));
        // If the test does not release it, the test fails rather than hangs.
        let _ = held.lock().unwrap().recv_timeout(Duration::from_secs(60));
    };
    let tool = Tool::new("block", "Blocks its thread", move || {
        let wait = wait.clone();
        if early {
            wait();
        }
        async move {
            if !early {
                wait();
            }
            "blocked"
        }
    });
    (server().tool(tool), release)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn blocking_tool_delays_no_other_connection() {
    for early in [false, true] {
        let (server, release) = blocking(early);
        let mut peer = client_of(&server, Revision::V2025_11_25).await;
        for round in 0..5 {
            peer.send(call("block", "block", json!({}))).await.unwrap();
            let answer = peer.ask(ping("ping")).await.unwrap();
            assert_eq!(answer["id"], "ping", "round {round}, early: {early}");
            let answer = peer.ask(call("fast", "fast", json!({}))).await.unwrap();
            assert_eq!(text(&answer), "fast", "round {round}, early: {early}");
            release.send(()).unwrap();
            assert_eq!(text(&peer.receive().await.unwrap()), "blocked");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_to_handlers_calls_bypass_queued_requests() {
    let session: Arc<OnceLock<ServerSession>> = Arc::default();
    let own = Arc::clone(&session);
    let asks = Tool::new("asks", "Asks back", move || {
        let own = Arc::clone(&own);
        async move {
            own.get().unwrap().ping().await?;
            Ok::<_, oxmcp::ToolError>("asked")
        }
    });
    let (mut peer, transport) = ScriptedPeer::new().await;
    let opened = server().tool(asks).connect(transport).await.unwrap();
    session.set(opened).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for _ in 0..4 {
        peer.send(call("stuck", "slow", json!({"ms": 3_000})))
            .await
            .unwrap();
        peer.send(call("asks", "asks", json!({}))).await.unwrap();
        let asked = peer.receive().await.unwrap();
        assert_eq!(asked["method"], "ping");
        peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
            .await
            .unwrap();
        assert_eq!(text(&peer.receive().await.unwrap()), "asked");
        assert_eq!(text(&peer.receive().await.unwrap()), "slow");
    }
}

#[tokio::test(start_paused = true)]
async fn handler_messages_are_written_before_its_response() {
    let mut peer = client_of(&server(), Revision::V2025_11_25).await;
    let params = json!({"name": "stream", "arguments": {"n": 2}, "_meta": {"progressToken": "t"}});
    let before = peer.transcript().lines().count();
    // The first rounds run on a task, the later ones in the reader: the messages on the wire are the same.
    for round in 0..4 {
        peer.send(request(round, "tools/call", params.clone()))
            .await
            .unwrap();
        for _ in 0..3 {
            peer.receive().await.unwrap();
        }
    }
    let rounds: Vec<_> = peer.transcript().lines().skip(before).collect();
    let first = rounds[..4].join("\n");
    insta::assert_snapshot!(first, @r#"
    -> {"id":0,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"progressToken":"t"},"arguments":{"n":2},"name":"stream"}}
    <- {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2}}
    <- {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":2,"total":2}}
    <- {"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"done"}]}}
    "#);
    for (round, lines) in rounds.chunks(4).enumerate() {
        let expected = first.replace("\"id\":0", &format!("\"id\":{round}"));
        assert_eq!(lines.join("\n"), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_right_after_initialize_find_the_session_open() {
    let plain = server();
    let seen = server().layer(middleware::from_fn(
        |request: Request, next: Next| async move { next.run(request).await },
    ));
    for server in [plain, seen] {
        let (mut peer, transport) = ScriptedPeer::new().await;
        server.connect(transport).await.unwrap();
        let initialize = request(
            1,
            "initialize",
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
            }),
        );
        let lines = [
            initialize.to_string(),
            notification("notifications/initialized", json!({})).to_string(),
            request(2, "tools/list", json!({})).to_string(),
        ];
        peer.send_line(lines.join("\n")).await.unwrap();
        assert_eq!(
            peer.receive().await.unwrap()["result"]["protocolVersion"],
            "2025-06-18"
        );
        assert!(peer.receive().await.unwrap()["result"]["tools"].is_array());
    }
}

#[tokio::test(start_paused = true)]
async fn notification_handlers_run_in_order_without_delaying_responses() {
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let handler = |name: &'static str| {
        let log = Arc::clone(&log);
        move |_session: ClientSession| {
            let log = Arc::clone(&log);
            async move {
                log.lock().unwrap().push(format!("{name} begins"));
                sleep(Duration::from_secs(1)).await;
                log.lock().unwrap().push(format!("{name} ends"));
            }
        }
    };
    let client = Client::new("test", "1.0.0")
        .on_tools_changed(handler("tools"))
        .on_prompts_changed(handler("prompts"))
        .on_resources_changed(handler("resources"));
    let (session, mut peer) = server_of(client).await;
    for list in ["tools", "prompts", "resources", "tools"] {
        peer.send(notification(
            &format!("notifications/{list}/list_changed"),
            json!({}),
        ))
        .await
        .unwrap();
    }
    let pinging = tokio::spawn({
        let session = session.clone();
        let log = Arc::clone(&log);
        async move {
            session.ping().await.unwrap();
            log.lock().unwrap().push("answered".to_owned());
        }
    });
    let asked = peer.receive().await.unwrap();
    peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}))
        .await
        .unwrap();
    pinging.await.unwrap();
    assert_alive(&mut peer).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        *log.lock().unwrap(),
        [
            "tools begins",
            "answered",
            "tools ends",
            "prompts begins",
            "prompts ends",
            "resources begins",
            "resources ends",
            "tools begins",
            "tools ends",
        ]
    );
    drop(session);
}

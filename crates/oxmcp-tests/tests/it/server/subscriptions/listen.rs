//! `subscriptions/listen` of modern clients.

use std::time::Duration;

use oxmcp::{
    Limits, Server,
    middleware::{self, Next, Request},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::support::{calculator, idle, modern, notification, request, script};

const CHANGED: &str = "notifications/tools/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
fn listen(id: i64, filter: Value) -> Value {
    modern(id, "subscriptions/listen", json!({"notifications": filter}))
}

fn tools() -> Value {
    json!({"toolsListChanged": true})
}

fn cancel(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

/// The id of the subscription that the message belongs to.
fn subscription(message: &Value) -> &Value {
    let pointer = "/params/_meta/io.modelcontextprotocol~1subscriptionId";
    message
        .pointer(pointer)
        .unwrap_or_else(|| panic!("{message} belongs to nothing"))
}

/// Subscribes, and waits for the acknowledgement.
async fn subscribe(peer: &mut ScriptedPeer, id: i64, filter: Value) -> Value {
    let acknowledged = peer.ask(listen(id, filter)).await.unwrap();
    assert_eq!(acknowledged["method"], ACKNOWLEDGED, "{acknowledged}");
    assert_eq!(*subscription(&acknowledged), id);
    acknowledged["params"]["notifications"].clone()
}

/// All messages that arrive before the answer to a discovery.
async fn heard(peer: &mut ScriptedPeer) -> Vec<Value> {
    peer.send(modern(4711, "server/discover", json!({})))
        .await
        .unwrap();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 4711 {
            return heard;
        }
        heard.push(message);
    }
}

/// Lets all pending work run.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(11)).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_delivers_its_first_and_last_message() {
    let server = calculator();
    let mut peer = script(&server).await;
    let filter = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["file:///x"]});
    let mut message = listen(1, filter);
    // The version is spelled out, so that a new revision does not change the snapshot.
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    peer.ask(message).await.unwrap();
    server.add_tools([idle("more")]).unwrap();
    peer.receive().await.unwrap();
    peer.close().await.unwrap();
    peer.receive().await.unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
    insta::assert_snapshot!(peer.transcript(), @r#"
    -> {"id":1,"jsonrpc":"2.0","method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"notifications":{"promptsListChanged":true,"resourceSubscriptions":["file:///x"],"toolsListChanged":true}}}
    <- {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    <- {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}
    <- {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"calculator","version":"1.0.0"},"io.modelcontextprotocol/subscriptionId":1}}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn changes_within_ten_milliseconds_are_coalesced() {
    let server = calculator();
    let mut peer = script(&server).await;
    assert_eq!(subscribe(&mut peer, 1, tools()).await, tools());

    let start = Instant::now();
    for index in 0..50 {
        server.add_tools([idle(&format!("tool{index}"))]).unwrap();
    }
    server.remove_tools(["tool7"]);
    assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    settle().await;
    assert_eq!(heard(&mut peer).await, Vec::<Value>::new());

    server.remove_tools(["tool8"]);
    assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
}

#[tokio::test(start_paused = true)]
async fn filter_is_narrowed_to_declared_and_requested_kinds() {
    let everything = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["file:///x"],
        "com.example/more": {"a": 1},
    });
    let nothing = json!({});
    let cases = [
        (calculator(), everything.clone(), tools()),
        (
            calculator(),
            json!({"promptsListChanged": true}),
            nothing.clone(),
        ),
        (
            calculator(),
            json!({"toolsListChanged": false}),
            nothing.clone(),
        ),
        (calculator(), nothing.clone(), nothing.clone()),
        (Server::new("empty", "1.0.0"), everything, nothing.clone()),
    ];
    for (server, asked, honoured) in cases {
        let mut peer = script(&server).await;
        assert_eq!(subscribe(&mut peer, 1, asked).await, honoured);
        server.add_tools([idle("more")]).unwrap();
        settle().await;
        let told = usize::from(honoured != nothing);
        assert_eq!(heard(&mut peer).await.len(), told, "{honoured}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_subscriptions_share_one_pipe() {
    let server = calculator();
    let mut peer = script(&server).await;
    for id in 1..=3 {
        subscribe(&mut peer, id, tools()).await;
    }
    let mut named = listen(0, tools());
    named["id"] = json!("by name");
    let acknowledged = peer.ask(named).await.unwrap();
    assert_eq!(*subscription(&acknowledged), "by name");
    peer.send(cancel(&json!(2))).await.unwrap();
    heard(&mut peer).await;

    server.add_tools([idle("more")]).unwrap();
    settle().await;
    let mut told: Vec<_> = heard(&mut peer)
        .await
        .iter()
        .map(|it| subscription(it).to_string())
        .collect();
    told.sort();
    assert_eq!(told, [r#""by name""#, "1", "3"]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_subscription_ends_without_an_answer() {
    let server = calculator();
    let mut peer = script(&server).await;
    subscribe(&mut peer, 1, tools()).await;
    peer.send(cancel(&json!(1))).await.unwrap();
    server.add_tools([idle("more")]).unwrap();
    settle().await;
    assert_eq!(heard(&mut peer).await, Vec::<Value>::new());
    // The id is free again, and so is the place of the subscription.
    assert_eq!(subscribe(&mut peer, 1, tools()).await, tools());
    peer.send(cancel(&json!(1))).await.unwrap();
    peer.close().await.unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn changes_during_the_acknowledgement_are_notified() {
    let server = calculator();
    let mut peer = script(&server).await;
    // The change is pending when the subscription is opened, and notified after it.
    server.add_tools([idle("more")]).unwrap();
    subscribe(&mut peer, 1, tools()).await;
    assert_eq!(peer.receive().await.unwrap()["method"], CHANGED);
}

#[tokio::test(start_paused = true)]
async fn open_subscription_ends_with_session_without_delay() {
    for from_server in [false, true] {
        let server = calculator();
        let mut peer = script(&server).await;
        subscribe(&mut peer, 7, tools()).await;
        subscribe(&mut peer, 8, tools()).await;
        let start = Instant::now();
        let session = server.sessions().next().unwrap();
        if from_server {
            session.close().await.unwrap();
        } else {
            peer.close().await.unwrap();
            session.wait().await.unwrap();
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        let mut ids = Vec::new();
        while let Ok(end) = peer.receive().await {
            assert_eq!(end["result"]["resultType"], "complete", "{end}");
            let meta = &end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            assert_eq!(*meta, end["id"]);
            ids.push(end["id"].as_i64().unwrap());
        }
        ids.sort_unstable();
        assert_eq!(ids, [7, 8]);
    }
}

#[tokio::test(start_paused = true)]
async fn subscription_ends_while_other_requests_may_finish() {
    let server = calculator().tool(oxmcp::Tool::new("slow", "Take a second", || async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        "done"
    }));
    let mut peer = script(&server).await;
    subscribe(&mut peer, 1, tools()).await;
    peer.send(modern(2, "tools/call", json!({"name": "slow"})))
        .await
        .unwrap();
    peer.close().await.unwrap();
    assert_eq!(peer.receive().await.unwrap()["id"], 1);
    let done = peer.receive().await.unwrap();
    assert_eq!(done["result"]["content"][0]["text"], "done", "{done}");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_bounded_and_leave_room_for_calls() {
    let limits = Limits::default().max_subscriptions(2).max_in_flight(1);
    let server =
        calculator()
            .limits(limits)
            .tool(oxmcp::Tool::new("never", "Never end", || async {
                std::future::pending::<()>().await;
            }));
    let mut peer = script(&server).await;
    subscribe(&mut peer, 1, tools()).await;
    subscribe(&mut peer, 2, tools()).await;
    let refused = peer.ask(listen(3, tools())).await.unwrap();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("the limit is 2"),
        "{refused}"
    );
    // Exactly one call may run.
    peer.send(modern(4, "tools/call", json!({"name": "never"})))
        .await
        .unwrap();
    let refused = peer
        .ask(modern(5, "tools/call", json!({"name": "never"})))
        .await
        .unwrap();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("in flight"),
        "{refused}"
    );
    peer.send(cancel(&json!(4))).await.unwrap();
    settle().await;
    advance(Duration::from_secs(2)).await;

    peer.send(cancel(&json!(1))).await.unwrap();
    heard(&mut peer).await;
    subscribe(&mut peer, 6, tools()).await;
}

#[tokio::test(start_paused = true)]
async fn stalled_client_uses_bounded_memory_without_delaying_others() {
    const CHANGES: usize = 2000;
    let limits = Limits::default().max_unsent_bytes(1024);
    let server = calculator().limits(limits);
    let mut slow = script(&server).await;
    let mut quick = script(&server).await;
    subscribe(&mut slow, 1, tools()).await;
    subscribe(&mut quick, 1, tools()).await;
    for _ in 0..CHANGES {
        server.add_tools([idle("more")]).unwrap();
        assert_eq!(quick.receive().await.unwrap()["method"], CHANGED);
    }
    let told = heard(&mut slow).await.len();
    assert!((1..CHANGES / 2).contains(&told), "{told}");
}

#[tokio::test(start_paused = true)]
async fn nonsensical_subscription_is_refused() {
    let server = calculator().strict();
    let mut peer = script(&server).await;
    subscribe(&mut peer, 1, tools()).await;
    let cases = [
        (listen(1, tools()), -32600),
        (modern(2, "subscriptions/listen", json!({})), -32602),
        (listen(2, json!({"toolsListChanged": "yes"})), -32602),
        (
            listen(2, json!({"resourceSubscriptions": "file:///x"})),
            -32602,
        ),
    ];
    for (message, code) in cases {
        let answer = peer.ask(message).await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    // The open subscription is not affected.
    server.add_tools([idle("more")]).unwrap();
    assert_eq!(*subscription(&peer.receive().await.unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn legacy_session_and_subscriptions_can_share_a_pipe() {
    let server = calculator();
    let mut peer = script(&server).await;
    peer.initialize(oxmcp::Revision::V2025_03_26).await.unwrap();
    let params = json!({"notifications": {"toolsListChanged": true}});
    let refused = peer
        .ask(request(1, "subscriptions/listen", params))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32601);
    let refused = peer.ask(json!([listen(2, tools())])).await.unwrap();
    assert_eq!(refused[0]["error"]["code"], -32600, "{refused}");

    subscribe(&mut peer, 3, tools()).await;
    server.add_tools([idle("more")]).unwrap();
    let (one, other) = (peer.receive().await.unwrap(), peer.receive().await.unwrap());
    assert_eq!(
        (&one["method"], &other["method"]),
        (&json!(CHANGED), &json!(CHANGED))
    );
    let of_session = [&one, &other]
        .into_iter()
        .filter(|it| it["params"] == json!({}));
    assert_eq!(of_session.count(), 1, "{one} {other}");
    peer.send(notification("notifications/unheard_of"))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn subscription_passes_through_middleware() {
    let server = calculator()
        .layer(middleware::from_fn(
            |request: Request, next: Next| async move { next.run(request).await },
        ))
        .outgoing_layer(middleware::from_fn(
            |mut request: Request, next: Next| async move {
                let mut params: Value = request.params()?;
                params["seen"] = json!(request.method());
                request.set_params(&params)?;
                next.run(request).await
            },
        ));
    let mut peer = script(&server).await;
    let acknowledged = peer.ask(listen(1, tools())).await.unwrap();
    assert_eq!(acknowledged["params"]["seen"], ACKNOWLEDGED);
    server.add_tools([idle("more")]).unwrap();
    let told = peer.receive().await.unwrap();
    assert_eq!(told["params"]["seen"], CHANGED);
    peer.send(cancel(&json!(1))).await.unwrap();
    peer.close().await.unwrap();
    assert!(peer.receive().await.unwrap_err().is_closed());
}

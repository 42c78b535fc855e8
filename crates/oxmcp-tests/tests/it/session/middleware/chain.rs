//! A chain of middleware, in both directions and on both sides.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::BoxFuture;
use oxmcp::{
    Client, Error, ErrorCode, Revision,
    middleware::{self, Next, Request, Response},
    protocol::CallToolResult,
    testing::connect,
};
use serde_json::{Value, json};
use tower::{limit::ConcurrencyLimitLayer, timeout::TimeoutLayer, util::MapResponseLayer};

use crate::session::*;

type Log = Arc<Mutex<Vec<String>>>;

/// A middleware that records the messages.
fn notes(
    log: &Log,
    name: &'static str,
) -> impl Fn(Request, Next) -> BoxFuture<'static, oxmcp::Result<Response>> + Clone + use<> {
    let log = Arc::clone(log);
    move |request: Request, next: Next| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            let method = request.method().to_owned();
            let kind = if request.is_notification() { "!" } else { "?" };
            log.lock().unwrap().push(format!("{name}>{method}{kind}"));
            let response = next.run(request).await;
            let end = if response.is_ok() { "ok" } else { "failed" };
            log.lock().unwrap().push(format!("{name}<{method} {end}"));
            response
        })
    }
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn first_middleware_is_outermost_in_both_directions() {
    let log = Log::default();
    let layer = |name| middleware::from_fn(notes(&log, name));
    let server = server()
        .layer(layer("s1"))
        .layer(layer("s2"))
        .outgoing_layer(layer("so"));
    let client = Client::new("test", "1.0.0")
        .outgoing_layer(layer("c1"))
        .outgoing_layer(layer("c2"))
        .layer(layer("ci"));
    let session = connect(&server)
        .client(&client.revisions([Revision::V2025_11_25]))
        .await
        .unwrap();
    sleep(Duration::from_millis(1)).await;
    taken(&log);
    session.call_tool("fast", json!({})).await.unwrap();
    assert_eq!(
        taken(&log),
        [
            "c1>tools/call?",
            "c2>tools/call?",
            "s1>tools/call?",
            "s2>tools/call?",
            "s2<tools/call ok",
            "s1<tools/call ok",
            "c2<tools/call ok",
            "c1<tools/call ok",
        ]
    );
    server.sessions().next().unwrap().ping().await.unwrap();
    assert_eq!(
        taken(&log),
        ["so>ping?", "ci>ping?", "ci<ping ok", "so<ping ok"]
    );
    session.call_tool("nosuch", json!({})).await.unwrap_err();
    assert_eq!(taken(&log).last().unwrap(), "c1<tools/call failed");
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_notifications_in_both_directions() {
    let log = Log::default();
    let layer = |name| middleware::from_fn(notes(&log, name));
    let server = server().layer(layer("si")).outgoing_layer(layer("so"));
    let client = Client::new("test", "1.0.0")
        .layer(layer("ci"))
        .outgoing_layer(layer("co"));
    let session = connect(&server)
        .client(&client.revisions([Revision::V2025_11_25]))
        .await
        .unwrap();
    sleep(Duration::from_millis(1)).await;
    let opening = taken(&log);
    for line in [
        "co>notifications/initialized!",
        "si>notifications/initialized!",
    ] {
        assert!(opening.iter().any(|it| it == line), "{opening:?}");
    }
    server.remove_tools(["slow"]);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        taken(&log),
        [
            "so>notifications/tools/list_changed!",
            "so<notifications/tools/list_changed ok",
            "ci>notifications/tools/list_changed!",
            "ci<notifications/tools/list_changed ok",
        ]
    );
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn middleware_sees_unknown_methods_and_the_context() {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let server = server().layer(middleware::from_fn(move |request: Request, next: Next| {
        let cx = request.context().unwrap();
        let who = cx.peer_info().map(|info| info.name.clone());
        seen.lock()
            .unwrap()
            .push(format!("{} {:?} {}", request.method(), who, cx.revision()));
        async move { next.run(request).await }
    }));
    let mut peer = client_of(&server, Revision::V2025_06_18).await;
    let answer = peer.ask(request(1, "no/such", json!({}))).await.unwrap();
    assert_eq!(answer["error"]["code"], -32601);
    assert_eq!(
        taken(&log).last().unwrap(),
        "no/such Some(\"scripted\") 2025-06-18"
    );
}

#[tokio::test(start_paused = true)]
async fn middleware_can_change_answer_and_refuse_requests() {
    async fn layer(mut request: Request, next: Next) -> oxmcp::Result<Response> {
        if request.method() != "tools/call" {
            return next.run(request).await;
        }
        let mut params: Value = request.params()?;
        match params["name"].as_str() {
            Some("changed") => {
                params["name"] = json!("echo");
                params["arguments"] = json!({"text": "changed"});
                request.set_params(&params)?;
                let mut result: CallToolResult = next.run(request).await?.result()?;
                result.content.push("and more".into());
                Response::new(&result)
            }
            Some("own") => Response::new(&CallToolResult::text("my own")),
            Some("refused") => {
                Err(Error::protocol(ErrorCode::from(-32099), "no")
                    .with_data(json!({"why": "because"})))
            }
            _ => next.run(request).await,
        }
    }
    for outgoing in [false, true] {
        let (mut server, mut client) = (server(), Client::new("test", "1.0.0"));
        if outgoing {
            client = client.outgoing_layer(middleware::from_fn(layer));
        } else {
            server = server.layer(middleware::from_fn(layer));
        }
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = client.clone().revisions([revision]);
            let session = connect(&server).client(&client).await.unwrap();
            let text = async |tool: &'static str| {
                let result = session.call_tool(tool, json!({})).await.unwrap();
                let texts = result.content.iter().filter_map(|block| block.as_text());
                texts.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(text("changed").await, "changed and more");
            assert_eq!(text("own").await, "my own");
            assert_eq!(text("fast").await, "fast");
            let error = session.call_tool("refused", json!({})).await.unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                (ErrorCode::from(-32099), "no")
            );
            assert_eq!(error.data().unwrap().get(), r#"{"why":"because"}"#);
            session.close().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tower_layers_work_as_middleware() {
    let server = server()
        .layer(TimeoutLayer::new(Duration::from_secs(2)))
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(MapResponseLayer::new(|response: Response| response));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for _ in 0..4 {
        let answer = peer.ask(call(1, "stuck", json!({}))).await.unwrap();
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        // Calls run one at a time: the second waits for the first.
        peer.send(call(1, "slow", json!({"ms": 1_000})))
            .await
            .unwrap();
        peer.send(call(2, "fast", json!({}))).await.unwrap();
        assert_eq!(text(&peer.receive().await.unwrap()), "slow");
        assert_eq!(text(&peer.receive().await.unwrap()), "fast");
    }
}

#[tokio::test(start_paused = true)]
async fn tower_layers_work_for_outgoing_messages() {
    let client =
        Client::new("test", "1.0.0").outgoing_layer(TimeoutLayer::new(Duration::from_secs(2)));
    let (session, mut peer) = server_of(client).await;
    let error = session.call_tool("slow", json!({})).await.unwrap_err();
    assert!(error.message().contains("timed out"), "{error}");
    // The layer dropped the call inside it, which cancels the call on the wire.
    let asked = peer.receive().await.unwrap();
    assert_cancels(&peer.receive().await.unwrap(), &asked);
}

#[tokio::test(start_paused = true)]
async fn slow_middleware_delays_only_its_own_request() {
    let server = server().layer(middleware::from_fn(
        |request: Request, next: Next| async move {
            if request.method() == "tools/call" {
                sleep(Duration::from_secs(1)).await;
            }
            next.run(request).await
        },
    ));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    for _ in 0..4 {
        peer.send(call(1, "fast", json!({}))).await.unwrap();
        assert_alive(&mut peer).await;
        assert_eq!(text(&peer.receive().await.unwrap()), "fast");
    }
}

#[tokio::test]
async fn requests_after_initialize_wait_for_slow_middleware() {
    let server = server().layer(middleware::from_fn(
        |request: Request, next: Next| async move {
            tokio::task::yield_now().await;
            next.run(request).await
        },
    ));
    let (mut peer, transport) = ScriptedPeer::new().await;
    server.connect(transport).await.unwrap();
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "pipelined", "version": "1"},
    });
    peer.send(request(1, "initialize", hello)).await.unwrap();
    peer.send(notification("notifications/initialized", json!({})))
        .await
        .unwrap();
    peer.send(request(2, "tools/list", json!({})))
        .await
        .unwrap();
    assert_eq!(
        peer.receive().await.unwrap()["result"]["protocolVersion"],
        "2025-11-25"
    );
    assert!(peer.receive().await.unwrap()["result"]["tools"].is_array());
}

#[tokio::test(start_paused = true)]
async fn closure_forwards_the_request_unchanged() {
    let server = server().layer(middleware::from_fn(|request, next| next.run(request)));
    let mut peer = client_of(&server, Revision::V2025_11_25).await;
    let answer = peer.ask(call(1, "fast", json!({}))).await.unwrap();
    assert_eq!(text(&answer), "fast");
}

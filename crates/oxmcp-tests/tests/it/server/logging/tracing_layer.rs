//! The `tracing` layer: events within the span of a request become its log messages.

use std::sync::{Arc, Mutex};

use oxmcp::{
    JsonSchema, Limits, RequestContext, Revision, Server, Tool,
    logging::{self, LogOptions},
    middleware::{self, Next, Request},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::{Instrument, info_span, subscriber::DefaultGuard};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::{Context, SubscriberExt},
    registry,
};

use crate::{
    child,
    support::{modern, request, script, subscribe},
};

const MESSAGE: &str = "notifications/message";

/// Sends events of this thread to clients until the guard is dropped.
fn listen(layer: logging::LogLayer) -> DefaultGuard {
    subscribe(registry().with(layer))
}

fn server(tool: Tool) -> Server {
    Server::new("s", "1.0.0").logging().tool(tool)
}

fn talks() -> Tool {
    Tool::new("talk", "Log by tracing", || async {
        tracing::info!(
            file = 3,
            gone = true,
            share = 0.5,
            name = "a",
            "reading {}",
            "b"
        );
        tracing::error!(target: "disk", error = %"full", odd = ?[1], nan = f64::NAN);
        "done"
    })
}

async fn client(server: &Server, revision: Revision) -> ScriptedPeer {
    let mut peer = script(server).await;
    if !revision.is_modern() {
        peer.initialize(revision).await.unwrap();
    }
    peer
}

fn call(revision: Revision, id: i64, name: &str, level: Option<&str>) -> Value {
    let params = json!({"name": name});
    if !revision.is_modern() {
        return request(id, "tools/call", params);
    }
    let mut call = modern(id, "tools/call", params);
    if let Some(level) = level {
        call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
    }
    call
}

/// Sends a call, and returns the params of the log messages before its answer.
async fn heard(peer: &mut ScriptedPeer, call: Value) -> Vec<Value> {
    let id = call["id"].clone();
    peer.send(call).await.unwrap();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == id {
            assert!(message["error"].is_null(), "{message}");
            return heard;
        }
        assert_eq!(message["method"], MESSAGE, "{message}");
        heard.push(message["params"].clone());
    }
}

#[tokio::test]
async fn tracing_event_becomes_a_message_of_its_request() {
    let _guard = listen(logging::layer());
    let pass = middleware::from_fn(|request: Request, next: Next| next_run(request, next));
    for server in [
        server(talks()),
        server(talks()).layer(pass),
        server(talks().spawned()),
    ] {
        for revision in Revision::ALL {
            let mut peer = client(&server, revision).await;
            let heard = heard(&mut peer, call(revision, 1, "talk", Some("debug"))).await;
            assert_eq!(
                heard,
                [
                    json!({"level": "info", "logger": "it::server::logging::tracing_layer", "data": {
                        "msg": "reading b", "file": 3, "gone": true, "share": 0.5, "name": "a",
                    }}),
                    json!({"level": "error", "logger": "disk", "data": {
                        "msg": "", "error": "full", "odd": "[1]", "nan": "NaN",
                    }}),
                ],
                "{revision}"
            );
        }
    }
}

async fn next_run(request: Request, next: Next) -> oxmcp::Result<middleware::Response> {
    next.run(request).await
}

#[tokio::test]
async fn only_levels_that_the_client_wants_are_sent() {
    let _guard = listen(logging::layer().logger("mine"));
    let mut peer = client(&server(talks()), Revision::LATEST).await;
    let warnings = heard(
        &mut peer,
        call(Revision::LATEST, 1, "talk", Some("warning")),
    )
    .await;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0]["logger"], "mine");
    let nothing = heard(&mut peer, call(Revision::LATEST, 2, "talk", None)).await;
    assert_eq!(nothing, Vec::<Value>::new());
    let undeclared = Server::new("s", "1.0.0").tool(talks());
    let mut peer = client(&undeclared, Revision::V2025_11_25).await;
    let nothing = heard(&mut peer, call(Revision::V2025_11_25, 1, "talk", None)).await;
    assert_eq!(nothing, Vec::<Value>::new());
}

/// A layer that records the levels of the events that its filter lets pass.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Vec<tracing::Level>>>);

impl<S: tracing::Subscriber> Layer<S> for Keeps {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }
}

/// Only the global subscriber sees events that are emitted within events, so this test runs in a process of its own.
#[tokio::test]
async fn other_layers_see_only_their_filtered_events() {
    const CHILD: &str = "OXMCP_TEST_LOG_LAYER";
    if child::role(CHILD).is_none() {
        let name = "server::logging::tracing_layer::other_layers_see_only_their_filtered_events";
        let output = child::command(name, CHILD, "layers").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let (errors, own) = (Keeps::default(), Keeps::default());
    let of_this_crate = Targets::new().with_target("oxmcp", tracing::Level::TRACE);
    let subscriber = registry()
        .with(logging::layer().with_filter(LevelFilter::INFO))
        .with(errors.clone().with_filter(LevelFilter::ERROR))
        .with(own.clone().with_filter(of_this_crate));
    tracing::subscriber::set_global_default(subscriber).unwrap();
    for server in [server(talks()), Server::new("s", "1.0.0").tool(talks())] {
        let mut peer = client(&server, Revision::LATEST).await;
        heard(&mut peer, call(Revision::LATEST, 1, "talk", Some("debug"))).await;
    }
    assert_eq!(*errors.0.lock().unwrap(), [tracing::Level::ERROR; 2]);
    let own = own.0.lock().unwrap();
    assert!(!own.contains(&tracing::Level::ERROR), "{own:?}");
}

#[tokio::test]
async fn each_client_receives_only_its_own_requests_logs() {
    let _guard = listen(logging::layer());
    let tool = Tool::new(
        "who",
        "Say who calls",
        move |cx: RequestContext| async move {
            let id = cx.request_id().map(ToString::to_string);
            tokio::task::yield_now().await;
            async { tracing::warn!(id, "within a span of the handler's own") }
                .instrument(info_span!("own"))
                .await;
            "done"
        },
    );
    let server = server(tool);
    let revision = Revision::V2025_06_18;
    let mut first = client(&server, revision).await;
    let mut second = client(&server, revision).await;
    let (a, b) = tokio::join!(
        heard(&mut first, call(revision, 1, "who", None)),
        heard(&mut second, call(revision, 2, "who", None)),
    );
    assert_eq!((a.len(), b.len()), (1, 1));
    assert_eq!(
        (&a[0]["data"]["id"], &b[0]["data"]["id"]),
        (&json!("1"), &json!("2"))
    );
    // Events outside of requests are not sent.
    tracing::error!("in nobody's request");
    let again = heard(&mut first, call(revision, 3, "who", None)).await;
    assert_eq!(again.len(), 1);
}

#[tokio::test]
async fn events_of_the_crate_itself_are_not_sent() {
    let _guard = listen(logging::layer());
    let tool = Tool::new(
        "own",
        "Make the crate log",
        |cx: RequestContext| async move {
            // The crate warns about data that cannot be serialized as JSON.
            cx.log(
                oxmcp::protocol::LoggingLevel::Error,
                std::collections::BTreeMap::from([([1], 2)]),
            )
            .await;
            tracing::warn!(target: "oxmcp", "as the crate's own");
            tracing::warn!(target: "oxmcp_of_others", "not the crate's");
            "done"
        },
    );
    let mut peer = client(&server(tool), Revision::V2025_11_25).await;
    let heard = heard(&mut peer, call(Revision::V2025_11_25, 1, "own", None)).await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["logger"], "oxmcp_of_others");
}

#[derive(Debug, serde::Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn logging_during_formatting_is_sent_once() {
    struct Logs;
    impl std::fmt::Debug for Logs {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            tracing::error!("while it is shown");
            f.write_str("shown")
        }
    }
    struct Panics;
    impl std::fmt::Debug for Panics {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("not to be shown")
        }
    }
    let _guard = listen(logging::layer());
    let revision = Revision::V2025_11_25;
    let odd = Tool::new("odd", "Log oddly", |_: Nothing| async {
        tracing::error!(value = ?Logs, "odd");
        "done"
    });
    let bad = Tool::new("bad", "Panic while it logs", |_: Nothing| async {
        tracing::error!(value = ?Panics, "bad");
    });
    let mut peer = client(&server(odd).tool(bad), revision).await;
    let call = |id, name| request(id, "tools/call", json!({"name": name, "arguments": {}}));
    let failed = peer.ask(call(1, "bad")).await.unwrap();
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    let heard = heard(&mut peer, call(2, "odd")).await;
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["data"], json!({"msg": "odd", "value": "shown"}));
}

#[tokio::test(start_paused = true)]
async fn logging_never_waits_and_dropped_messages_are_counted() {
    let _guard = listen(logging::layer());
    let limits = Limits::default().max_unsent_bytes(1_000);
    let flood = || {
        Tool::new("flood", "Log a lot", || async {
            for index in 0..1_000 {
                tracing::info!(index);
            }
            "done"
        })
    };
    // Messages are dropped for lack of space, and for exceeding the rate.
    let slow = server(flood()).limits(limits);
    let hasty = server(flood()).logging_with(LogOptions::default().rate(1, 10));
    for server in [slow, hasty] {
        let mut peer = client(&server, Revision::V2025_11_25).await;
        let first = heard(&mut peer, call(Revision::V2025_11_25, 1, "flood", None)).await;
        assert!((1..100).contains(&first.len()), "{}", first.len());
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        let second = heard(&mut peer, call(Revision::V2025_11_25, 2, "flood", None)).await;
        let dropped = json!(1_000 - first.len());
        assert_eq!(second[0]["data"]["dropped"], dropped);
        assert_eq!(second[0]["level"], "warning");
    }
}

fn late(go: &'static Notify) -> Tool {
    Tool::new("late", "Log late", move || async move {
        let logs = async {
            go.notified().await;
            tracing::error!("late");
        };
        tokio::spawn(logs.in_current_span());
        "done"
    })
}

#[tokio::test]
async fn only_legacy_sessions_receive_late_logs() {
    let _guard = listen(logging::layer());
    let go: &'static Notify = Box::leak(Box::default());
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let mut peer = client(&server(late(go)), revision).await;
        let before = heard(&mut peer, call(revision, 1, "late", Some("debug"))).await;
        assert_eq!(before, Vec::<Value>::new());
        go.notify_one();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let silent = modern(2, "server/discover", json!({}));
        let late = peer.ask(silent).await.unwrap();
        assert_eq!(late["method"] == MESSAGE, !revision.is_modern(), "{late}");
    }
}

#[tokio::test]
async fn layers_own_filter_is_respected() {
    let layer = logging::layer().with_filter(LevelFilter::INFO);
    let _guard = subscribe(registry().with(layer));
    let tool = Tool::new("talk", "Log by tracing", || async {
        tracing::debug!("not this");
        tracing::info!("this");
        "done"
    });
    let mut peer = client(&server(tool), Revision::LATEST).await;
    let heard = heard(&mut peer, call(Revision::LATEST, 1, "talk", Some("debug"))).await;
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0]["data"], json!({"msg": "this"}));
}

#[tokio::test]
async fn event_fields_set_the_level_and_logger() {
    let tool = || {
        Tool::new("talk", "", || async {
            tracing::error!(level = "emergency", logger = "reactor", "it melts");
            tracing::info!(level = "notice", "it is warm");
            tracing::info!(level = "loud", logger = 3, "no such level");
            tracing::info!(level = 7, "no name");
            tracing::debug!(level = "alert", "rods are stuck");
        })
    };
    for named in [false, true] {
        let layer = logging::layer();
        let _guard = listen(if named { layer.logger("all") } else { layer });
        let server = server(tool());
        let mut peer = client(&server, Revision::LATEST).await;
        let heard = heard(&mut peer, call(Revision::LATEST, 1, "talk", Some("notice"))).await;
        let other = if named {
            "all"
        } else {
            "it::server::logging::tracing_layer"
        };
        assert_eq!(
            heard,
            [
                json!({"level": "emergency", "logger": "reactor", "data": {"msg": "it melts"}}),
                json!({"level": "notice", "logger": other, "data": {"msg": "it is warm"}}),
                json!({"level": "alert", "logger": other, "data": {"msg": "rods are stuck"}}),
            ]
        );
    }
    let _guard = listen(logging::layer());
    let server = server(tool());
    let mut peer = client(&server, Revision::LATEST).await;
    let heard = heard(&mut peer, call(Revision::LATEST, 1, "talk", Some("info"))).await;
    assert_eq!(
        heard[2]["data"],
        json!({"msg": "no such level", "level": "loud", "logger": 3})
    );
    assert_eq!(heard[3]["data"], json!({"msg": "no name", "level": 7}));
}

#[tokio::test]
async fn field_called_msg_is_preserved() {
    let _guard = listen(logging::layer());
    let server = server(Tool::new("talk", "", || async {
        tracing::info!(msg = "mine", "the event's");
    }));
    let mut peer = client(&server, Revision::LATEST).await;
    let heard = heard(&mut peer, call(Revision::LATEST, 1, "talk", Some("info"))).await;
    assert_eq!(
        heard[0]["data"],
        json!({"msg": "mine", "message": "the event's"})
    );
}

//! Log messages: levels, recipients, order and rate, within requests and outside of them.

use std::time::Duration;

use oxmcp::{
    JsonSchema, Limits, RequestContext, Result, Revision, Server, Tool,
    logging::LogOptions,
    middleware::{self, Next, Request},
    protocol::{LoggingLevel, LoggingMessageParams},
    testing::ScriptedPeer,
};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::support::{LEGACY, answer, modern, request, script, text};

pub(crate) const MESSAGE: &str = "notifications/message";

const LEVELS: [LoggingLevel; 8] = [
    LoggingLevel::Debug,
    LoggingLevel::Info,
    LoggingLevel::Notice,
    LoggingLevel::Warning,
    LoggingLevel::Error,
    LoggingLevel::Critical,
    LoggingLevel::Alert,
    LoggingLevel::Emergency,
];

/// A server whose tool logs a message of each level.
pub(crate) fn chatty() -> Server {
    let tool = Tool::new("chat", "Log a lot", |cx: RequestContext| async move {
        for level in LEVELS {
            let data = json!({"msg": level.as_str()});
            cx.log(level, data).logger("chat").await;
        }
        "done"
    });
    Server::new("chatty", "1.0.0").tool(tool)
}

#[expect(clippy::needless_pass_by_value, reason = "it reads better in a call")]
pub(crate) fn call(
    id: i64,
    name: &str,
    arguments: Value,
    revision: Revision,
    level: Option<&str>,
) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    if !revision.is_modern() {
        return request(id, "tools/call", params);
    }
    let mut call = modern(id, "tools/call", params);
    if let Some(level) = level {
        call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
    }
    call
}

/// Sends a call, and returns the log messages before its answer.
pub(crate) async fn heard(peer: &mut ScriptedPeer, call: Value) -> Vec<Value> {
    let id = call["id"].clone();
    peer.send(call).await.unwrap();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == id {
            assert_eq!(text(&message), "done");
            return heard;
        }
        assert_eq!(message["method"], MESSAGE, "{message}");
        heard.push(message["params"].clone());
    }
}

fn levels(heard: &[Value]) -> Vec<&str> {
    let levels = heard.iter().map(|params| params["level"].as_str());
    levels.map(Option::unwrap).collect()
}

fn all_from(level: LoggingLevel) -> Vec<&'static str> {
    let levels = LEVELS.into_iter().filter(|it| *it >= level);
    levels.map(LoggingLevel::as_str).collect()
}

/// A client that has opened a session, if the revision has sessions.
pub(crate) async fn client(server: &Server, revision: Revision) -> ScriptedPeer {
    let mut peer = script(server).await;
    if !revision.is_modern() {
        peer.initialize(revision).await.unwrap();
    }
    peer
}

#[tokio::test]
async fn log_message_has_the_specified_wire_format() {
    let mut peer = client(&chatty().logging(), Revision::V2025_11_25).await;
    let heard = heard(
        &mut peer,
        call(1, "chat", json!({}), Revision::V2025_11_25, None),
    )
    .await;
    insta::assert_snapshot!(heard[0], @r#"{"data":{"msg":"info"},"level":"info","logger":"chat"}"#);
    // A string is valid data, too, and the logger is optional.
    let tool = Tool::new("say", "Say a word", |cx: RequestContext| async move {
        cx.log(LoggingLevel::Info, "a word").await;
        "done"
    });
    let server = Server::new("s", "1").logging().tool(tool);
    let mut peer = client(&server, Revision::V2024_11_05).await;
    let first = peer
        .ask(call(1, "say", json!({}), Revision::V2024_11_05, None))
        .await
        .unwrap();
    insta::assert_snapshot!(first, @r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"a word","level":"info"}}"#);
}

#[tokio::test]
async fn legacy_session_level_starts_at_info() {
    for revision in LEGACY {
        let mut peer = client(&chatty().logging(), revision).await;
        let chat = || call(1, "chat", json!({}), revision, None);
        let first = heard(&mut peer, chat()).await;
        assert_eq!(levels(&first), all_from(LoggingLevel::Info), "{revision}");
        for level in LEVELS {
            let set = request(2, "logging/setLevel", json!({"level": level.as_str()}));
            let answered = peer.ask(set).await.unwrap();
            assert_eq!(answered["result"], json!({}));
            let heard = heard(&mut peer, chat()).await;
            assert_eq!(levels(&heard), all_from(level), "{revision}");
        }
    }
}

#[tokio::test]
async fn server_chooses_the_default_level() {
    let options = LogOptions::default().default_level(LoggingLevel::Critical);
    let mut peer = client(&chatty().logging_with(options), Revision::V2025_06_18).await;
    let chat = call(1, "chat", json!({}), Revision::V2025_06_18, None);
    let heard = heard(&mut peer, chat).await;
    assert_eq!(levels(&heard), all_from(LoggingLevel::Critical));
}

#[tokio::test]
async fn modern_request_sets_its_own_level_or_none() {
    let mut peer = script(&chatty().logging()).await;
    for level in LEVELS {
        let chat = call(1, "chat", json!({}), Revision::LATEST, Some(level.as_str()));
        assert_eq!(levels(&heard(&mut peer, chat).await), all_from(level));
        let silent = call(2, "chat", json!({}), Revision::LATEST, None);
        assert_eq!(heard(&mut peer, silent).await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn levels_follow_their_era_on_one_pipe() {
    let revision = Revision::V2025_11_25;
    let mut peer = client(&chatty().logging(), revision).await;
    // A level in the `_meta` of a legacy request is ignored.
    let mut odd = call(1, "chat", json!({}), revision, None);
    odd["params"]["_meta"] = json!({"io.modelcontextprotocol/logLevel": "emergency"});
    let first = heard(&mut peer, odd).await;
    assert_eq!(levels(&first), all_from(LoggingLevel::Info));
    // The session's level does not apply to a modern request.
    let silent = call(2, "chat", json!({}), Revision::LATEST, None);
    assert_eq!(heard(&mut peer, silent).await, Vec::<Value>::new());
    let alert = call(3, "chat", json!({}), Revision::LATEST, Some("alert"));
    let second = heard(&mut peer, alert).await;
    assert_eq!(levels(&second), ["alert", "emergency"]);
}

#[tokio::test]
async fn unknown_level_is_refused() {
    let server = chatty().logging();
    for revision in Revision::ALL {
        let mut peer = client(&server, revision).await;
        let refused = if revision.is_modern() {
            peer.ask(call(1, "chat", json!({}), revision, Some("loud")))
                .await
        } else {
            peer.ask(request(1, "logging/setLevel", json!({"level": "loud"})))
                .await
        };
        let refused = refused.unwrap();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("loud")
        );
    }
}

#[tokio::test]
async fn logging_has_to_be_declared() {
    for revision in Revision::ALL {
        let capabilities = async |server: &Server| {
            let session = oxmcp::testing::connect(server)
                .revision(revision)
                .await
                .unwrap();
            session.server_capabilities().logging.clone()
        };
        assert_eq!(
            capabilities(&chatty().logging()).await,
            Some(Default::default())
        );
        assert_eq!(capabilities(&chatty()).await, None);

        // Without logging nothing is sent, and the level cannot be set.
        let mut peer = client(&chatty(), revision).await;
        let chat = call(1, "chat", json!({}), revision, Some("debug"));
        assert_eq!(
            heard(&mut peer, chat).await,
            Vec::<Value>::new(),
            "{revision}"
        );
        let set = answer(
            &chatty(),
            revision,
            "logging/setLevel",
            json!({"level": "info"}),
        )
        .await;
        assert_eq!(set["error"]["code"], -32601, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn level_applies_before_the_next_request() {
    let pass = middleware::from_fn(|request: Request, next: Next| async move {
        if request.method() == "logging/setLevel" {
            sleep(Duration::from_secs(1)).await;
        }
        next.run(request).await
    });
    let revision = Revision::V2025_11_25;
    for server in [chatty().logging(), chatty().logging().layer(pass)] {
        let mut peer = client(&server, revision).await;
        // Calls run concurrently with later messages, so no message follows the call here.
        let lines = [
            request(1, "logging/setLevel", json!({"level": "alert"})),
            call(2, "chat", json!({}), revision, None),
        ];
        let lines = lines.map(|line| line.to_string());
        peer.send_line(lines.join("\n")).await.unwrap();
        assert_eq!(peer.receive().await.unwrap()["id"], 1);
        for level in ["alert", "emergency"] {
            let message = peer.receive().await.unwrap();
            assert_eq!(message["params"]["level"], level, "{message}");
        }
        assert_eq!(peer.receive().await.unwrap()["id"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_after_the_answer() {
    let late = Tool::new("late", "Log late", |cx: RequestContext| async move {
        cx.log(LoggingLevel::Alert, "in time").await;
        let after = cx.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            after.log(LoggingLevel::Alert, "too late").await;
        });
        "done"
    });
    let server = Server::new("late", "1.0.0").logging().tool(late);
    for revision in Revision::ALL {
        let mut peer = client(&server, revision).await;
        for id in 1..=3 {
            let in_time = heard(
                &mut peer,
                call(id, "late", json!({}), revision, Some("debug")),
            )
            .await;
            assert_eq!(in_time.len(), 1, "{revision}");
            advance(Duration::from_secs(2)).await;
        }
    }
}

#[tokio::test]
async fn middleware_sees_log_messages_and_can_drop_them() {
    let hide = middleware::from_fn(|mut request: Request, next: Next| async move {
        if request.method() == MESSAGE {
            assert!(request.is_notification() && request.context().is_none());
            request.set_params(&json!({"level": "info", "data": "hidden"}))?;
        }
        next.run(request).await
    });
    let server = chatty().logging().outgoing_layer(hide);
    for revision in Revision::ALL {
        let mut peer = client(&server, revision).await;
        let heard = heard(
            &mut peer,
            call(1, "chat", json!({}), revision, Some("emergency")),
        )
        .await;
        assert!(!heard.is_empty());
        assert!(
            heard.iter().all(|params| params["data"] == "hidden"),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn handler_can_check_whether_logs_are_received() {
    let tool = Tool::new("ask", "Ask who hears", |cx: RequestContext| async move {
        let heard = LEVELS.into_iter().filter(|level| cx.wants_log(*level));
        heard
            .map(LoggingLevel::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    });
    let server = Server::new("s", "1").logging().tool(tool);
    let mut peer = script(&server).await;
    let silent = peer
        .ask(call(1, "ask", json!({}), Revision::LATEST, None))
        .await
        .unwrap();
    assert_eq!(text(&silent), "");
    let alert = call(2, "ask", json!({}), Revision::LATEST, Some("alert"));
    assert_eq!(text(&peer.ask(alert).await.unwrap()), "alert emergency");
}

#[derive(serde::Deserialize, JsonSchema)]
struct Count {
    n: u32,
}

/// A server whose tool logs `n` messages.
fn flood(options: LogOptions) -> Server {
    let tool = Tool::new(
        "flood",
        "Log n times",
        |cx: RequestContext, Count { n }| async move {
            for index in 0..n {
                cx.log(LoggingLevel::Error, index).await;
            }
            "done"
        },
    );
    Server::new("flood", "1.0.0")
        .logging_with(options)
        .tool(tool)
}

#[tokio::test(start_paused = true)]
async fn log_messages_are_rate_limited_per_session() {
    for revision in Revision::ALL {
        let mut peer = client(&flood(LogOptions::default().rate(2, 5)), revision).await;
        let mut flood = async |n: u32| {
            let call = call(1, "flood", json!({"n": n}), revision, Some("debug"));
            let heard = heard(&mut peer, call).await;
            heard
                .into_iter()
                .map(|params| params["data"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(flood(20).await, [0, 1, 2, 3, 4], "{revision}");
        assert_eq!(flood(1).await, Vec::<Value>::new());
        advance(Duration::from_secs(1)).await;
        let told = json!({"msg": "log messages dropped: rate limit exceeded", "dropped": 16});
        assert_eq!(flood(3).await, [told, json!(0), json!(1)]);
        advance(Duration::from_secs(3600)).await;
        let again = flood(20).await;
        assert_eq!((again[0]["dropped"].clone(), again.len()), (json!(1), 6));
    }
}

#[tokio::test(start_paused = true)]
async fn unlimited_logs_all_reach_a_slow_reader() {
    let limits = Limits::default().max_unsent_bytes(2_000);
    let server = flood(LogOptions::default().rate(0, 0)).limits(limits);
    let mut peer = client(&server, Revision::V2025_11_25).await;
    let call = call(1, "flood", json!({"n": 5_000}), Revision::V2025_11_25, None);
    peer.send(call).await.unwrap();
    for index in 0..5_000 {
        if index % 1_000 == 0 {
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(peer.receive().await.unwrap()["params"]["data"], index);
    }
    assert_eq!(text(&peer.receive().await.unwrap()), "done");
}

#[tokio::test]
async fn session_can_log_outside_any_request() -> Result<()> {
    let say = |level| {
        LoggingMessageParams::new(level, &"hello")
            .unwrap()
            .with_logger("doors")
    };
    for revision in LEGACY {
        let server = chatty().logging();
        let mut peer = client(&server, revision).await;
        let session = server.sessions().next().unwrap();
        session.log(say(LoggingLevel::Debug)).await?;
        session.log(say(LoggingLevel::Notice)).await?;
        let heard = peer.receive().await?;
        assert_eq!(heard["method"], MESSAGE);
        assert_eq!(
            heard["params"],
            json!({"level": "notice", "logger": "doors", "data": "hello"})
        );
    }

    let server = chatty().logging();
    let _peer = script(&server).await;
    let session = server.sessions().next().unwrap();
    let modern = session.log(say(LoggingLevel::Alert)).await.unwrap_err();
    assert!(
        modern.is_unsupported() && modern.message().contains("RequestContext::log"),
        "{modern}"
    );

    let server = chatty();
    let _peer = client(&server, Revision::V2025_11_25).await;
    let session = server.sessions().next().unwrap();
    let undeclared = session.log(say(LoggingLevel::Alert)).await.unwrap_err();
    assert!(
        undeclared.message().contains("`Server::logging`"),
        "{undeclared}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn custom_logger_and_log_interval_are_respected() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        for second in 0..20 {
            cx.log(LoggingLevel::Info, second).await;
            sleep(Duration::from_secs(1)).await;
        }
        cx.log(LoggingLevel::Error, "own").logger("mine").await;
    });
    let options = LogOptions::default()
        .every(Duration::from_secs(5), 2)
        .logger("library");
    let server = Server::new("s", "1").logging_with(options).tool(tool);
    let mut peer = script(&server).await;
    peer.send(call(1, "t", json!({}), Revision::LATEST, Some("info")))
        .await
        .unwrap();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == 1 {
            break;
        }
        heard.push(message["params"].clone());
    }
    let said: Vec<_> = heard.iter().filter_map(|it| it["data"].as_u64()).collect();
    assert_eq!(said, [0, 1, 5, 10, 15]);
    let loggers: Vec<_> = heard
        .iter()
        .map(|it| it["logger"].as_str().unwrap())
        .collect();
    assert_eq!(loggers.last(), Some(&"mine"));
    assert!(
        loggers.iter().rev().skip(1).all(|it| *it == "library"),
        "{loggers:?}"
    );
}

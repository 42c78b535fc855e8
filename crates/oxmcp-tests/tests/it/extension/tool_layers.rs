//! Layers of tools: other results, and calls that continue after they were answered.

use std::sync::{Arc, Mutex};

use oxmcp::{
    CancellationToken, JsonSchema, RequestContext, Revision, Tool, ToolCall, ToolResponse,
    protocol::{CallToolResult, InputRequest, LoggingLevel, Meta},
    traits::{DetachedAnswer, DetachedProgress, DetachedWork},
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use crate::extension::*;
use crate::support::{modern, script};

#[derive(serde::Deserialize, JsonSchema)]
struct Confirm {
    sure: bool,
}

/// The progress and the questions of detached work, in order. Each question is accepted.
struct Work(mpsc::Sender<String>);

impl DetachedWork for Work {
    fn progress(&self, report: DetachedProgress) {
        let message = report.message.unwrap_or_default();
        self.0
            .try_send(format!("{} {message}", report.done))
            .unwrap();
    }

    fn ask(&self, key: String, question: InputRequest) -> DetachedAnswer {
        self.0
            .try_send(format!("{key} {}", question.method()))
            .unwrap();
        let answer = json!({"action": "accept", "content": {"sure": true}});
        Box::pin(async move { Ok(RawValue::from_string(answer.to_string()).unwrap()) })
    }
}

/// A layer that answers "later", and reports the call's progress, questions and result from then on.
fn detaching(
    said: mpsc::Sender<String>,
    cancel: CancellationToken,
) -> impl Fn(ToolCall) -> std::pin::Pin<Box<dyn Future<Output = oxmcp::Result<ToolResponse>> + Send>>
+ Send
+ Sync {
    move |call| {
        let (said, cancel) = (said.clone(), cancel.clone());
        Box::pin(async move {
            let mut call = call.detachable();
            tokio::select! {
                biased;
                done = call.run() => return done,
                () = tokio::task::yield_now() => {}
            }
            match call.detach(Arc::new(Work(said.clone())), cancel) {
                Ok(rest) => {
                    tokio::spawn(async move {
                        let ended = match rest.await {
                            Ok(response) => response.result().unwrap().to_text(),
                            Err(error) => error.to_string(),
                        };
                        said.try_send(ended).unwrap();
                    });
                    Ok(CallToolResult::text("later").into())
                }
                Err(mut call) => call.run().await,
            }
        })
    }
}

fn declaring(id: i64, params: Value) -> Value {
    let mut call = modern(id, "tools/call", params);
    call["params"]["_meta"][Meta::CLIENT_CAPABILITIES] =
        json!({"extensions": {ID: {}}, "elicitation": {}});
    call
}

#[tokio::test]
async fn layer_answers_with_declared_extension_result() {
    let ticket = |call: ToolCall| async move {
        ToolResponse::from_extension(call.context(), "ticket", json!({"number": 7}))
    };
    let unknown = |call: ToolCall| async move {
        ToolResponse::from_extension(call.context(), "receipt", json!({"number": 7}))
    };
    let tool = |name: &str| Tool::new(name, "A tool", || async { "done" });
    let server = server(clock().result_type("ticket"))
        .tool(tool("t").layer(ticket))
        .tool(tool("u").layer(unknown));
    let mut peer = script(&server).await;
    let answer = peer.ask(declaring(1, json!({"name": "t"}))).await.unwrap();
    let result = &answer["result"];
    assert_eq!(result["resultType"], "ticket", "{answer}");
    assert_eq!(result["number"], 7);
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "clock"
    );
    let refused = peer
        .ask(modern(2, "tools/call", json!({"name": "t"})))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"]["extensions"],
        json!({ID: {}})
    );
    let misuse = peer.ask(declaring(3, json!({"name": "u"}))).await.unwrap();
    assert!(
        misuse["error"]["message"]
            .as_str()
            .unwrap()
            .contains("receipt"),
        "{misuse}"
    );
    // Older revisions have no result types.
    let session = connect(&server, &client(clock()), Revision::LATEST_LEGACY).await;
    let refused = session.call_tool("t", ()).await.unwrap_err();
    assert!(refused.message().contains("2026-07-28"), "{refused}");
}

#[tokio::test]
async fn detachable_call_respects_its_requested_log_level() {
    let attached = |call: ToolCall| async move {
        let mut call = call.detachable();
        call.run().await
    };
    let tool = Tool::new("t", "Tells", |cx: RequestContext| async move {
        let _ = cx.log(LoggingLevel::Error, "heard").await;
    });
    let server = Server::new("s", "1").tool(tool.layer(attached)).logging();
    let mut peer = script(&server).await;
    let mut call = modern(1, "tools/call", json!({"name": "t"}));
    call["params"]["_meta"][Meta::LOG_LEVEL] = json!("error");
    peer.send(call).await.unwrap();
    let message = peer.receive().await.unwrap();
    assert_eq!(message["params"]["data"], "heard", "{message}");
}

#[tokio::test]
async fn tool_layers_nest_in_order_of_addition() {
    let seen: Arc<Mutex<Vec<&str>>> = Arc::default();
    let noting = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move |call: ToolCall| {
            assert_eq!((call.tool(), call.arguments()), ("t", r#"{"hours":3}"#));
            seen.lock().unwrap().push(name);
            call.run()
        }
    };
    let tool = Tool::dynamic(
        "t",
        "A tool",
        json!({"type": "object"}),
        |_cx, _arguments| async { Ok(CallToolResult::text("done")) },
    );
    let tool = tool.layer(noting("outer")).layer(noting("inner"));
    let tool = tool.entry(|entry| entry.title = Some("Set".to_owned()));
    let server = Server::new("s", "1").tool(tool);
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    let result = session.call_tool("t", json!({"hours": 3})).await.unwrap();
    assert_eq!(result.to_text(), "done");
    assert_eq!(*seen.lock().unwrap(), ["outer", "inner"]);
    let tools = session.tools().all().await.unwrap();
    assert_eq!(tools[0].title.as_deref(), Some("Set"));
}

#[test]
fn tool_is_refused_without_its_extension() {
    let tool = || Tool::new("t", "A tool", || async {}).requires(ID);
    let error = Server::new("s", "1").tool(tool()).check().unwrap_err();
    let message = error.message();
    assert!(
        message.contains("\"t\"") && message.contains(ID),
        "{message}"
    );
    Server::new("s", "1")
        .tool(tool())
        .extension(clock())
        .check()
        .unwrap();
    let named = Tool::new("t", "A tool", || async {}).entry(|entry| entry.name = "a b".into());
    assert!(Server::new("s", "1").tool(named).check().is_err());
}

#[tokio::test]
async fn tool_is_visible_only_if_all_layers_agree() {
    let tool = Tool::new("t", "A tool", || async {})
        .visible_to(|_| false)
        .visible_to(|_| true);
    let server = Server::new("s", "1").tool(tool);
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    assert!(session.tools().all().await.unwrap().is_empty());
}

#[tokio::test]
async fn tool_layers_find_the_extension_state() {
    let layer = |call: ToolCall| async move {
        let cx = call.context();
        cx.expect_extension(ID)?;
        let shared = cx.extension_state::<Mutex<u32>>(ID).unwrap();
        *shared.lock().unwrap() += 1;
        assert!(cx.extension_state::<u32>(ID).is_none());
        call.run().await
    };
    let shared = Arc::new(Mutex::new(0_u32));
    let server = server(clock().state(Arc::clone(&shared)))
        .tool(Tool::new("t", "A tool", || async { "done" }).layer(layer));
    assert!(server.extension_state::<Mutex<u32>>(ID).is_some());
    let mut peer = script(&server).await;
    peer.ask(declaring(1, json!({"name": "t"}))).await.unwrap();
    let refused = peer
        .ask(modern(2, "tools/call", json!({"name": "t"})))
        .await
        .unwrap();
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(*shared.lock().unwrap(), 1);
}

#[tokio::test]
async fn detached_call_redirects_messages_and_questions() {
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let (said, mut heard) = mpsc::channel(16);
        let (go, going) = tokio::sync::watch::channel(false);
        let tool = Tool::new("t", "A tool", move |cx: RequestContext| {
            let mut going = going.clone();
            async move {
                cx.progress(1).message("attached").await;
                going.wait_for(|go| *go).await.unwrap();
                assert!(cx.wants_progress());
                cx.progress(2).message("detached").await;
                let Confirm { sure } = cx.ask("sure", "Go on?").await?;
                Ok::<_, oxmcp::Error>(format!("sure: {sure}"))
            }
        });
        let server =
            Server::new("s", "1").tool(tool.layer(detaching(said, CancellationToken::new())));
        // The client has a handler for questions, which is never called.
        let asked = client(clock()).on_elicit(async |_: oxmcp::protocol::ElicitFormParams| {
            oxmcp::protocol::ElicitResult::new(oxmcp::protocol::ElicitAction::Decline)
        });
        let session = connect(&server, &asked, revision).await;
        let reported: Arc<Mutex<Vec<f64>>> = Arc::default();
        let reports = Arc::clone(&reported);
        let call = session
            .call_tool("t", ())
            .on_progress(move |it| reports.lock().unwrap().push(it.progress));
        assert_eq!(call.await.unwrap().to_text(), "later", "{revision}");
        go.send(true).unwrap();
        assert_eq!(heard.recv().await.unwrap(), "2 detached");
        assert_eq!(heard.recv().await.unwrap(), "sure elicitation/create");
        assert_eq!(heard.recv().await.unwrap(), "sure: true");
        assert_eq!(*reported.lock().unwrap(), [1.0], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn detached_call_is_cancelled_only_by_its_token() {
    let (said, mut heard) = mpsc::channel(16);
    let deaf = Tool::new("deaf", "A tool", std::future::pending::<String>);
    let heeds = Tool::new("heeds", "A tool", |cx: RequestContext| async move {
        cx.cancelled().await;
        "cancelled"
    });
    let cancel = CancellationToken::new();
    let server = Server::new("s", "1")
        .tool(deaf.layer(detaching(said.clone(), cancel.clone())))
        .tool(heeds.layer(detaching(said, cancel.clone())));
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST).await;
    for tool in ["deaf", "heeds"] {
        assert_eq!(
            session.call_tool(tool, ()).await.unwrap().to_text(),
            "later"
        );
    }
    session.close().await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(heard.is_empty());
    cancel.cancel();
    assert_eq!(heard.recv().await.unwrap(), "cancelled");
    assert_eq!(heard.recv().await.unwrap(), "the call was cancelled");
}

#[tokio::test]
async fn call_that_asked_its_client_is_not_detached() {
    let (said, mut heard) = mpsc::channel(16);
    let tool = Tool::new("t", "A tool", async |cx: RequestContext| {
        let asked = cx.ask("sure", "Go on?").await;
        // Long enough for the layer to try to detach the call.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let Confirm { sure } = asked?;
        Ok::<_, oxmcp::Error>(format!("sure: {sure}"))
    });
    let server = server(clock()).tool(tool.layer(detaching(said, CancellationToken::new())));
    let mut peer = script(&server).await;
    let asked = peer.ask(declaring(1, json!({"name": "t"}))).await.unwrap();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answers = json!({"sure": {"action": "accept", "content": {"sure": true}}});
    let state = asked["result"]["requestState"].clone();
    let again = json!({"name": "t", "requestState": state, "inputResponses": answers});
    let answer = peer.ask(declaring(2, again)).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "later", "{answer}");
    assert_eq!(heard.recv().await.unwrap(), "sure: true");
}

#[tokio::test]
async fn attached_call_is_cancelled_with_its_request() {
    let (said, mut heard) = mpsc::channel(16);
    let tool = Tool::new("t", "A tool", move |cx: RequestContext| {
        let said = said.clone();
        async move {
            said.try_send("begun").unwrap();
            cx.cancelled().await;
            said.try_send("cancelled").unwrap();
        }
    });
    let tool = tool.layer(|call| async move { call.detachable().run().await });
    let server = Server::new("s", "1").tool(tool);
    let session = connect(&server, &Client::new("c", "1"), Revision::LATEST_LEGACY).await;
    let mut call = Box::pin(IntoFuture::into_future(session.call_tool("t", ())));
    tokio::select! {
        _ = &mut call => unreachable!(),
        begun = heard.recv() => assert_eq!(begun, Some("begun")),
    }
    drop(call);
    assert_eq!(heard.recv().await.unwrap(), "cancelled");
}

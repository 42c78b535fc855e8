//! Calls of tools: their options, answers and errors.

use std::time::Duration;

use oxmcp::{
    CancellationToken, Client, ErrorCode, Extension, JsonSchema, RequestContext, Revision, Server,
    Tool, middleware,
    protocol::{CallToolParams, method},
    testing,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::client::{answer, client, expect, session, session_of};
use crate::support::{calculator, notification};

#[tokio::test(start_paused = true)]
async fn timed_out_call_is_cancelled_on_the_wire() {
    for revision in Revision::ALL {
        let (mut peer, session) = session(revision).await;
        let start = Instant::now();
        let call = tokio::spawn(
            session
                .call_tool("t", ())
                .timeout(Duration::from_secs(3))
                .into_future(),
        );
        let request = expect(&mut peer, "tools/call").await;
        let error = call.await.unwrap().unwrap_err();
        assert!(
            error.is_timeout() && error.message().contains("3s"),
            "{error}"
        );
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        let cancelled = expect(&mut peer, "notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn client_timeout_applies_to_its_calls() {
    let (_peer, session) = session(Revision::V2025_06_18).await;
    for seconds in [60, 900] {
        let client = session.client().timeout(Duration::from_secs(seconds));
        let start = Instant::now();
        assert!(session.call_tool("t", ()).await.unwrap_err().is_timeout());
        assert_eq!(start.elapsed(), Duration::from_secs(seconds));
        drop(client);
    }
}

#[tokio::test]
async fn timeout_beyond_clock_range_is_clamped() {
    let session = testing::connect(&calculator()).await.unwrap();
    let call = || session.call_tool("add", json!({"a": 1, "b": 2}));
    for call in [
        call().timeout(Duration::MAX),
        call().max_total(Duration::MAX),
        call().timeout(Duration::MAX).max_total(Duration::MAX),
    ] {
        assert_eq!(call.structured::<f64>().await.unwrap(), 3.0);
    }
    let client = Client::new("patient", "1")
        .timeout(Duration::MAX)
        .probe_timeout(Duration::MAX);
    let session = testing::connect(&calculator())
        .client(&client)
        .await
        .unwrap();
    session.ping().await.unwrap();
}

#[tokio::test]
async fn token_cancels_the_call() {
    for revision in Revision::ALL {
        let (mut peer, session) = session(revision).await;
        let token = CancellationToken::new();
        let call = tokio::spawn(
            session
                .call_tool("t", ())
                .cancel_with(token.clone())
                .into_future(),
        );
        let request = expect(&mut peer, "tools/call").await;
        token.cancel();
        assert!(call.await.unwrap().unwrap_err().is_cancelled());
        let cancelled = expect(&mut peer, "notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        // A call whose token is already cancelled is not made.
        let error = session
            .call_tool("t", ())
            .cancel_with(token)
            .await
            .unwrap_err();
        assert!(error.is_cancelled());
        drop(session.call_tool("next", ()).into_future());
        let call = tokio::spawn(session.call_tool("last", ()).into_future());
        assert_eq!(
            expect(&mut peer, "tools/call").await["params"]["name"],
            "last"
        );
        call.abort();
    }
}

#[tokio::test]
async fn progress_arrives_in_order_before_the_answer() {
    #[derive(serde::Deserialize, JsonSchema)]
    struct Copy {
        files: u32,
    }
    let copy = Tool::new(
        "copy",
        "",
        |cx: RequestContext, Copy { files }: Copy| async move {
            for file in 1..=files {
                cx.progress(file).total(files).await;
            }
            format!("{}", cx.wants_progress())
        },
    );
    let server = Server::new("s", "1").tool(copy);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let (told, mut heard) = mpsc::channel(100);
        let call = session.call_tool("copy", json!({"files": 50}));
        let result = call
            .on_progress(move |p| told.try_send(p.progress).unwrap())
            .await
            .unwrap();
        assert_eq!(result.content[0].as_text(), Some("true"));
        for file in 1..=50 {
            assert_eq!(heard.try_recv().unwrap(), f64::from(file), "{revision}");
        }
        assert!(heard.try_recv().is_err());
        let silent = session
            .call_tool("copy", json!({"files": 5}))
            .await
            .unwrap();
        assert_eq!(silent.content[0].as_text(), Some("false"));
    }
}

#[tokio::test]
async fn call_and_params_meta_reach_the_handler() {
    let tool = Tool::new("t", "", |cx: RequestContext| async move {
        let meta = cx.meta();
        let text = |key: &str| meta.get(key).map(Value::to_string).unwrap_or_default();
        format!("{} {}", text("com.example/a"), text("com.example/b"))
    });
    let server = Server::new("s", "1").tool(tool);
    for revision in Revision::ALL {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let mut params = CallToolParams::new("t");
        params.meta.insert("com.example/a", 1);
        params.meta.insert("com.example/b", 1);
        let result = session
            .request::<method::CallTool>(params)
            .meta("com.example/b", json!([2]))
            .await
            .unwrap();
        assert_eq!(result.content[0].as_text(), Some("1 [2]"), "{revision}");
    }
}

#[tokio::test]
async fn reserved_meta_keys_cannot_be_set_by_caller() {
    let (_peer, modern) = session(Revision::LATEST).await;
    for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
        let error = modern
            .call_tool("t", ())
            .meta(format!("io.modelcontextprotocol/{key}"), "x")
            .await
            .unwrap_err();
        assert!(error.message().contains(key), "{error}");
    }
    for revision in Revision::ALL {
        let (_peer, session) = session(revision).await;
        let error = session
            .call_tool("t", ())
            .meta("progressToken", 1)
            .on_progress(|_| {})
            .await
            .unwrap_err();
        assert!(error.message().contains("progressToken"), "{error}");
    }
}

#[tokio::test]
async fn unserializable_arguments_are_reported_and_never_sent() {
    let (_peer, session) = session(Revision::LATEST).await;
    let arguments = std::collections::HashMap::from([((1, 2), 3)]);
    let error = session.call_tool("t", arguments).await.unwrap_err();
    assert!(
        error
            .message()
            .contains("could not serialize the arguments"),
        "{error}"
    );
    let error = session.call_tool("t", vec![1, 2]).await.unwrap_err();
    assert!(error.message().contains("expected an object"), "{error}");
}

#[tokio::test]
async fn nothing_is_sent_before_the_call_is_awaited() {
    let (mut peer, session) = session(Revision::V2025_06_18).await;
    drop(session.call_tool("dropped", ()));
    let call = tokio::spawn(session.call_tool("made", ()).into_future());
    assert_eq!(
        expect(&mut peer, "tools/call").await["params"]["name"],
        "made"
    );
    call.abort();
}

#[tokio::test]
async fn unknown_result_type_is_an_error() {
    for (kind, named) in [
        (json!("task"), "\"task\""),
        (json!("task"), "io.modelcontextprotocol/tasks"),
        (json!("riddle"), "unknown result type \"riddle\""),
        (json!("r".repeat(1_000)), "rrr\""),
        (json!("input_required"), "input"),
    ] {
        let (mut peer, session) = session(Revision::LATEST).await;
        let call = tokio::spawn(session.call_tool("t", ()).into_future());
        let request = expect(&mut peer, "tools/call").await;
        answer(
            &mut peer,
            &request,
            json!({"resultType": kind, "content": []}),
        )
        .await;
        let error = call.await.unwrap().unwrap_err();
        assert!(error.message().contains(named), "{error}");
    }
    // Legacy servers have no result types.
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    answer(
        &mut peer,
        &request,
        json!({"resultType": "task", "content": []}),
    )
    .await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn result_type_mismatch_error_explains_it() {
    for revision in Revision::ALL {
        let (mut peer, session, _) = session_of(client().strict(), revision).await;
        for result in [json!({"content": 7}), json!([]), json!("text")] {
            let call = tokio::spawn(session.call_tool("t", ()).into_future());
            let request = expect(&mut peer, "tools/call").await;
            answer(&mut peer, &request, result.clone()).await;
            let error = call.await.unwrap().unwrap_err();
            assert!(
                error.message().contains("tools/call"),
                "{revision} {result}: {error}"
            );
            assert_eq!(error.code(), ErrorCode::INTERNAL_ERROR);
        }
    }
}

#[tokio::test]
async fn clones_share_one_session() {
    let (mut peer, session) = session(Revision::V2025_06_18).await;
    let one = tokio::spawn(session.clone().call_tool("one", ()).into_future());
    let first = expect(&mut peer, "tools/call").await;
    let other = tokio::spawn(session.call_tool("other", ()).into_future());
    let second = expect(&mut peer, "tools/call").await;
    assert_ne!(first["id"], second["id"]);
    // The answers come in the opposite order.
    answer(
        &mut peer,
        &second,
        json!({"content": [{"type": "text", "text": "other"}]}),
    )
    .await;
    answer(
        &mut peer,
        &first,
        json!({"content": [{"type": "text", "text": "one"}]}),
    )
    .await;
    assert_eq!(
        other.await.unwrap().unwrap().content[0].as_text(),
        Some("other")
    );
    assert_eq!(
        one.await.unwrap().unwrap().content[0].as_text(),
        Some("one")
    );
}

#[tokio::test(start_paused = true)]
async fn zero_keep_alive_disables_pings() {
    let client = Client::new("c", "1")
        .keep_alive(Duration::ZERO)
        .revisions([Revision::V2025_06_18]);
    let server = calculator().keep_alive(Duration::ZERO);
    let session = testing::connect(&server).client(&client).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    session.ping().await.unwrap();
}

#[tokio::test]
async fn outgoing_middleware_may_change_calls() {
    let client = Client::new("c", "1").outgoing_layer(middleware::from_fn(
        |mut request: middleware::Request, next: middleware::Next| async move {
            if request.method() == "tools/call" {
                request.set_params(&json!({"name": "add", "arguments": {"a": 20, "b": 22}}))?;
            }
            next.run(request).await
        },
    ));
    for revision in Revision::ALL {
        let session = testing::connect(&calculator())
            .client(&client)
            .revision(revision)
            .await
            .unwrap();
        assert_eq!(
            session
                .call_tool("other", ())
                .structured::<f64>()
                .await
                .unwrap(),
            42.0
        );
    }
}

#[tokio::test]
async fn notifications_of_unknown_methods_are_ignored() {
    let (mut peer, session) = session(Revision::LATEST).await;
    for method in [
        "notifications/what",
        "notifications/progress",
        "notifications/cancelled",
        "notifications/message",
    ] {
        peer.send(notification(method)).await.unwrap();
    }
    let call = tokio::spawn(session.call_tool("t", ()).into_future());
    let request = expect(&mut peer, "tools/call").await;
    answer(&mut peer, &request, json!({"content": []})).await;
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn metadata_keys_follow_the_rules() {
    let own = "io.modelcontextprotocol/mine";
    let extension = Extension::new("io.modelcontextprotocol/vendor").meta_key(own);
    for revision in Revision::ALL {
        for outgoing in [false, true] {
            let mut client = Client::new("c", "1").extension(extension.clone());
            if outgoing {
                client =
                    client.outgoing_layer(middleware::from_fn(|request, next| next.run(request)));
            }
            let session = testing::connect(&calculator())
                .client(&client)
                .revision(revision)
                .await
                .unwrap();
            let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
            for (key, value, told) in [
                ("zone", "a", None),
                ("com.example/zone", "a", None),
                (own, "a", None),
                ("traceparent", parent, None),
                ("baggage", "a=b", None),
                (
                    "io.modelcontextprotocol/zone",
                    "a",
                    Some("reserved `_meta` key"),
                ),
                ("com.mcp.example/zone", "a", Some("reserved `_meta` key")),
                ("2com/zone", "a", Some("invalid `_meta` key")),
                ("two words", "a", Some("invalid `_meta` key")),
                ("traceparent", "00-1-2-3", Some("invalid W3C `traceparent`")),
            ] {
                let call = session
                    .call_tool("add", json!({"a": 1, "b": 2}))
                    .meta(key, value);
                let error = call.await.err();
                let message = error.as_ref().map(|error| error.message());
                match told {
                    None => assert_eq!(message, None, "{key}"),
                    Some(told) => assert!(message.unwrap().contains(told), "{key}: {message:?}"),
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_carries_a_reason() {
    let (mut peer, session) = session(Revision::V2025_11_25).await;
    let token = CancellationToken::new();
    let calls = [
        session.call_tool("t", ()).timeout(Duration::from_secs(1)),
        session.call_tool("t", ()).cancel_with(token.clone()),
        session.call_tool("t", ()),
    ];
    for (index, call) in calls.into_iter().enumerate() {
        let call = tokio::spawn(call.into_future());
        expect(&mut peer, "tools/call").await;
        let reason = match index {
            0 => "timed out",
            1 => {
                token.cancel();
                "the caller cancelled"
            }
            _ => {
                call.abort();
                "stopped waiting"
            }
        };
        let cancelled = expect(&mut peer, "notifications/cancelled").await;
        let said = cancelled["params"]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{said}");
    }
}

//! The session's methods: one for every request of the specification.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
};

use oxmcp::{
    Call, ClientSession, Revision,
    protocol::{
        CompleteParams, CompletionReference, LoggingLevel, Method, PaginatedParams,
        SubscriptionFilter, method,
    },
};
use serde_json::{Value, json};

use crate::client::{expect, session};

type Made = Pin<Box<dyn Future<Output = oxmcp::Result<()>> + Send>>;

fn made<M: Method>(call: Call<M>) -> Made {
    Box::pin(async move { call.into_future().await.map(drop) })
}

fn own<F: Future<Output = oxmcp::Result<T>> + Send + 'static, T>(future: F) -> Made {
    Box::pin(async move { future.await.map(drop) })
}

/// The calls of the session, each with the method that is sent and its params without `_meta`.
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn calls(session: &ClientSession) -> Vec<(Made, &'static str, Value)> {
    let s = session.clone();
    let listening = session.clone();
    let pages = PaginatedParams::default;
    let completion = CompleteParams::new(CompletionReference::prompt("p"), "a", "b");
    vec![
        (
            made(session.call_tool("t", json!({"a": 1}))),
            "tools/call",
            json!({"name": "t", "arguments": {"a": 1}}),
        ),
        (
            made(session.call_tool("t", ())),
            "tools/call",
            json!({"name": "t"}),
        ),
        (made(session.list_tools(pages())), "tools/list", json!({})),
        (
            made(session.list_tools(PaginatedParams::at("x"))),
            "tools/list",
            json!({"cursor": "x"}),
        ),
        (own(session.tools().all()), "tools/list", json!({})),
        (
            made(session.get_prompt("p", [("a", "b")])),
            "prompts/get",
            json!({"name": "p", "arguments": {"a": "b"}}),
        ),
        (
            made(session.get_prompt("p", ())),
            "prompts/get",
            json!({"name": "p"}),
        ),
        (
            made(session.list_prompts(pages())),
            "prompts/list",
            json!({}),
        ),
        (own(session.prompts().all()), "prompts/list", json!({})),
        (
            made(session.read_resource("file:///x")),
            "resources/read",
            json!({"uri": "file:///x"}),
        ),
        (
            made(session.list_resources(pages())),
            "resources/list",
            json!({}),
        ),
        (own(session.resources().all()), "resources/list", json!({})),
        (
            made(session.list_resource_templates(pages())),
            "resources/templates/list",
            json!({}),
        ),
        (
            own(session.resource_templates().all()),
            "resources/templates/list",
            json!({}),
        ),
        (
            made(session.subscribe("file:///x")),
            "resources/subscribe",
            json!({"uri": "file:///x"}),
        ),
        (
            made(session.unsubscribe("file:///x")),
            "resources/unsubscribe",
            json!({"uri": "file:///x"}),
        ),
        (
            made(session.set_level(LoggingLevel::Warning)),
            "logging/setLevel",
            json!({"level": "warning"}),
        ),
        (
            made(session.complete(completion)),
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}}),
        ),
        (
            made(session.get_task("7")),
            "tasks/get",
            json!({"taskId": "7"}),
        ),
        (
            made(session.get_task_payload("7")),
            "tasks/result",
            json!({"taskId": "7"}),
        ),
        (
            made(session.cancel_task("7")),
            "tasks/cancel",
            json!({"taskId": "7"}),
        ),
        (made(session.list_tasks(pages())), "tasks/list", json!({})),
        (own(session.tasks().all()), "tasks/list", json!({})),
        (
            own(async move { listening.listen(SubscriptionFilter::default()).await }),
            "subscriptions/listen",
            json!({"notifications": {}}),
        ),
        (
            own(async move { s.discover().await }),
            "server/discover",
            json!({}),
        ),
        (
            made(session.request::<method::Ping>(oxmcp::protocol::EmptyParams::default())),
            "ping",
            json!({}),
        ),
    ]
}

#[tokio::test]
async fn methods_are_sent_only_in_revisions_with_them() {
    for revision in Revision::ALL {
        let (mut peer, session) = session(revision).await;
        for (call, name, params) in calls(&session) {
            if !method::is_in(method::REQUESTS_TO_SERVER, name, revision) {
                let error = call.await.unwrap_err();
                assert!(error.is_unsupported(), "{name} in {revision}: {error}");
                assert!(
                    error.message().contains(name) && error.message().contains(revision.as_str()),
                    "{error}"
                );
                continue;
            }
            let call = tokio::spawn(call);
            // If a refused request had been sent earlier, it would arrive first.
            let mut request = expect(&mut peer, name).await;
            let sent = request["params"].as_object_mut().unwrap();
            assert_eq!(
                sent.remove("_meta").is_some(),
                revision.is_modern(),
                "{name}"
            );
            assert_eq!(request["params"], params, "{name}");
            crate::client::refuse(
                &mut peer,
                &request,
                json!({"code": -32099, "message": "enough"}),
            )
            .await;
            assert_eq!(call.await.unwrap().unwrap_err().message(), "enough");
        }
    }
}

#[tokio::test]
async fn every_method_in_the_table_is_tested() {
    let (_peer, session) = session(Revision::LATEST).await;
    let calls = calls(&session);
    // `initialize` is sent when the session is opened.
    let elsewhere = ["initialize"];
    for row in method::REQUESTS_TO_SERVER {
        let is_called = calls.iter().any(|(_, name, _)| *name == row.name);
        assert!(is_called || elsewhere.contains(&row.name), "{}", row.name);
    }
}

#[tokio::test]
async fn ping_falls_back_to_discovery() {
    for revision in Revision::ALL {
        let (mut peer, session) = session(revision).await;
        let ping = tokio::spawn(async move { session.ping().await });
        let method = if revision.is_modern() {
            "server/discover"
        } else {
            "ping"
        };
        let request = expect(&mut peer, method).await;
        let result = if revision.is_modern() {
            crate::client::discovered(&["2026-07-28"])
        } else {
            json!({})
        };
        crate::client::answer(&mut peer, &request, result).await;
        ping.await.unwrap().unwrap();
    }
}

//! Modern requests, each of which is answered on its own.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{StatusCode, Version};
use http_body::Frame;
use http_body_util::StreamBody;
use oxmcp::{
    ErrorCode, Limits, Principal, RequestContext, Resource, Server, ServerSession, Tool, ToolError,
    http::StreamableHttp,
};
use serde_json::json;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use tower::ServiceExt;

use crate::http::server::peer::{
    Events, Session, builder, call_modern, header, initialize, json, modern_builder, send,
};
use crate::support::{calculator, modern, request};

fn endpoint(server: &Server) -> StreamableHttp {
    StreamableHttp::from(server.clone())
}

/// A tool that reports progress, then waits to be released.
fn slow(release: &Arc<Notify>) -> Tool {
    let release = Arc::clone(release);
    Tool::new("slow", "Take a while", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            cx.progress(1).total(2).await;
            release.notified().await;
            "done"
        }
    })
}

#[tokio::test]
async fn call_is_answered_as_json() {
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let response = call_modern(&endpoint(&calculator()), "tools/call", params).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answer = json(response).await;
    assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[tokio::test]
async fn handler_gets_a_task_only_on_shared_connections() {
    let tool = |name: &str| {
        Tool::new(name, "Say whether it has a task", || async {
            tokio::task::try_id().is_some().to_string()
        })
    };
    let server = calculator()
        .tool(tool("any"))
        .tool(tool("spawned").spawned());
    let endpoint = endpoint(&server);
    for (name, version, has_task) in [
        ("any", Version::HTTP_11, "false"),
        ("any", Version::HTTP_2, "true"),
        ("spawned", Version::HTTP_11, "true"),
    ] {
        let message = modern(1, "tools/call", json!({"name": name, "arguments": {}}));
        let request = modern_builder(&message).version(version);
        let answer = json(send(&endpoint, request, message.to_string()).await).await;
        assert_eq!(
            answer["result"]["content"][0]["text"], has_task,
            "{name} over {version:?}"
        );
    }
}

#[tokio::test]
async fn notification_before_the_answer_makes_a_stream() {
    let release = Arc::new(Notify::new());
    let endpoint = endpoint(&calculator().tool(slow(&release)));
    let mut message = modern(7, "tools/call", json!({"name": "slow", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!("p");
    let response = send(&endpoint, modern_builder(&message), message.to_string()).await;
    assert_eq!(
        header(response.headers(), "cache-control"),
        "no-cache, no-transform"
    );
    let mut events = Events::of(response);
    let first = events.next().await.unwrap();
    assert_eq!(first.data["method"], "notifications/progress");
    assert_eq!(first.id, None, "there is nothing to resume");
    release.notify_one();
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["id"], 7);
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn disconnecting_client_cancels_its_request() {
    let (seen, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let notify = (Arc::clone(&seen), Arc::clone(&stopped));
    let tool = Tool::new("wait", "Wait for ever", move |cx: RequestContext| {
        let (seen, stopped) = notify.clone();
        async move {
            seen.notify_one();
            cx.cancelled().await;
            stopped.notify_one();
        }
    });
    let endpoint = endpoint(&calculator().tool(tool));
    let params = json!({"name": "wait", "arguments": {}});
    tokio::select! {
        _ = call_modern(&endpoint, "tools/call", params) => panic!("it is never answered"),
        () = seen.notified() => {}
    }
    stopped.notified().await;
}

#[tokio::test]
async fn listen_is_acknowledged_and_notified_across_connections() {
    let server = calculator();
    let endpoint = endpoint(&server);
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut events = Events::of(call_modern(&endpoint, "subscriptions/listen", params).await);
    let first = events.next().await.unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let _ = server.clone().tool(crate::support::idle("another"));
    let changed = events.next().await.unwrap().data;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    let meta = &changed["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 1);
}

#[tokio::test]
async fn subscription_memory_counts_toward_the_endpoint_budget() {
    const LENGTH: usize = 100_000;
    let limits = Limits::default().http(|http| http.max_bytes(10 * LENGTH));
    let endpoint = endpoint(&calculator()).limits(limits);
    let mut message = modern(1, "subscriptions/listen", json!({"notifications": {}}));
    message["params"]["_meta"]["com.example/long"] = json!("x".repeat(LENGTH));
    let listen = || send(&endpoint, modern_builder(&message), message.to_string());
    let kind = |response: &http::Response<_>| response.headers()["content-type"].clone();
    let mut open = Vec::new();
    let refused = loop {
        let response = listen().await;
        if kind(&response) != "text/event-stream" {
            break response;
        }
        open.push(response);
        assert!(open.len() < 10, "more than there is room for");
    };
    // There is room for the body of the request, but not for the body and the subscription.
    assert!(open.len() > 7, "{}", open.len());
    assert_eq!(json(refused).await["error"]["code"], -32603);
    open.clear();
    while kind(&listen().await) != "text/event-stream" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn closing_endpoint_ends_subscriptions_with_their_result() {
    let endpoint = endpoint(&calculator());
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut events = Events::of(call_modern(&endpoint, "subscriptions/listen", params).await);
    events.next().await.unwrap();
    let (rest, ()) = tokio::join!(events.rest(), endpoint.close());
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].data["result"]["resultType"], "complete");
    let served = call_modern(&endpoint, "tools/list", json!({})).await;
    assert_eq!(served.status(), StatusCode::OK);
    assert_eq!(served.headers()["connection"], "close");
}

#[tokio::test(start_paused = true)]
async fn closing_endpoint_cancels_stuck_requests_in_time() {
    let stopped = Arc::new(Notify::new());
    let stops = Arc::clone(&stopped);
    let stuck = Tool::new("stuck", "Wait for the end", move |cx: RequestContext| {
        let stops = Arc::clone(&stops);
        async move {
            cx.cancelled().await;
            stops.notify_one();
        }
    });
    let limits = Limits::default().drain(Duration::from_secs(3));
    let endpoint = endpoint(&calculator().tool(stuck).tool(slow(&Arc::default()))).limits(limits);
    let call = |name: &str| {
        call_modern(
            &endpoint,
            "tools/call",
            json!({"name": name, "arguments": {}}),
        )
    };
    // A call whose stream has begun, and a call that has sent nothing yet.
    let begun = Events::of(call("slow").await);
    let start = Instant::now();
    let close = async {
        tokio::task::yield_now().await;
        endpoint.close().await;
    };
    let (cut, rest, ()) = tokio::join!(call("stuck"), begun.rest(), close);
    let cut = json(cut).await;
    for answer in [&cut, &rest[0].data] {
        assert_eq!(answer["id"], 1);
        assert_eq!(answer["error"]["data"]["reason"], "closing", "{answer}");
    }
    assert_eq!(rest.len(), 1);
    stopped.notified().await;
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn body_arriving_while_endpoint_closes_is_served() {
    let endpoint = endpoint(&calculator());
    let message = modern(1, "tools/list", json!({}));
    let text = message.to_string();
    let late = async move {
        sleep(Duration::from_secs(5)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from(text)))
    };
    let body = StreamBody::new(futures_util::stream::once(Box::pin(late)));
    let request = modern_builder(&message).body(body).unwrap();
    let (response, ()) = tokio::join!(endpoint.clone().oneshot(request), endpoint.close());
    assert_eq!(response.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn only_undispatched_requests_have_an_error_status() {
    let refuse = |code: ErrorCode| {
        move || async move { Err::<String, _>(ToolError::from(oxmcp::Error::protocol(code, "no"))) }
    };
    let server = calculator()
        .tool(Tool::new(
            "unknown",
            "Say -32601",
            refuse(ErrorCode::METHOD_NOT_FOUND),
        ))
        .tool(Tool::new(
            "capability",
            "Say -32021",
            refuse(ErrorCode::MISSING_CLIENT_CAPABILITY),
        ));
    let endpoint = endpoint(&server);
    let status = async |method: &str, name: &str| {
        let params = json!({"name": name, "arguments": {}});
        call_modern(&endpoint, method, params).await.status()
    };
    assert_eq!(status("tools/call", "unknown").await, StatusCode::OK);
    assert_eq!(
        status("tools/call", "capability").await,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(status("tools/call", "nothing").await, StatusCode::OK);
    assert_eq!(
        status("prompts/get", "nothing").await,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn handlers_see_the_request_and_middleware_extensions() {
    let tool = Tool::new("whoami", "Say who calls", |cx: RequestContext| async move {
        let request = cx.http_request().unwrap();
        let principal = request.extensions.get::<Principal>().unwrap();
        format!("{} at {}", principal.as_str(), request.uri)
    });
    let endpoint = endpoint(&calculator().tool(tool));
    let message = modern(1, "tools/call", json!({"name": "whoami", "arguments": {}}));
    let builder = modern_builder(&message).extension(Principal::new("ann"));
    let answer = json(send(&endpoint, builder, message.to_string()).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ann at /mcp");
}

#[tokio::test]
async fn subscription_hook_sees_the_request() {
    let server = calculator()
        .resource(Resource::text("app://status", "status", "fine"))
        .on_subscribe(
            |cx: RequestContext, _uri: String| async move {
                let request = cx.http_request().unwrap();
                assert_eq!(request.headers["x-tenant"], "acme");
                assert_eq!(request.uri, "/mcp");
                assert_eq!(
                    request.extensions.get::<Principal>().unwrap().as_str(),
                    "ann"
                );
                Ok(())
            },
            |_session: ServerSession, _uri: String| async {},
        );
    let params = json!({"notifications": {"resourceSubscriptions": ["app://status"]}});
    let message = modern(1, "subscriptions/listen", params);
    let builder = modern_builder(&message)
        .header("x-tenant", "acme")
        .extension(Principal::new("ann"));
    let mut events = Events::of(send(&endpoint(&server), builder, message.to_string()).await);
    let agreed = events.next().await.unwrap().data;
    let agreed = &agreed["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*agreed, json!(["app://status"]));
}

#[tokio::test]
async fn callback_chooses_the_server_by_request() {
    let endpoint = StreamableHttp::new(|request| {
        let tenant = request.headers.get("x-tenant")?.to_str().ok()?;
        Some(Server::new(tenant, "1").tool(crate::support::add()))
    });
    let message = modern(1, "server/discover", json!({}));
    let builder = modern_builder(&message).header("x-tenant", "acme");
    let answer = json(send(&endpoint, builder, message.to_string()).await).await;
    let info = &answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "acme");
    let refused = send(&endpoint, modern_builder(&message), message.to_string()).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn panicking_callback_fails_only_its_request() {
    let endpoint = StreamableHttp::new(|request| -> Server {
        panic!("there is no server for {}", request.uri);
    });
    let refused = call_modern(&endpoint, "tools/list", json!({})).await;
    assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let refused = json(refused).await.to_string();
    assert!(!refused.contains("/mcp"), "{refused}");
    let refused = send(&endpoint, builder("GET"), "").await;
    assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
}

/// A request builder that accepts these media types only.
fn accepting(mut builder: http::request::Builder, accept: Option<&str>) -> http::request::Builder {
    let headers = builder.headers_mut().unwrap();
    headers.remove("accept");
    if let Some(accept) = accept {
        headers.insert("accept", accept.parse().unwrap());
    }
    builder
}

#[tokio::test]
async fn answers_have_the_form_that_the_client_accepts() {
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    let noisy = Tool::new(
        "noisy",
        "Report progress",
        |cx: RequestContext| async move {
            cx.progress(1).total(2).await;
            "done"
        },
    );
    let server = calculator().tool(noisy);
    let mut message = modern(7, "tools/call", json!({"name": "noisy", "arguments": {}}));
    message["params"]["_meta"]["progressToken"] = json!("p");
    let quiet = modern(
        7,
        "tools/call",
        json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
    );
    for (accept, of_noisy, of_quiet) in [
        (Some(JSON), JSON, JSON),
        (Some("application/*"), JSON, JSON),
        (Some(EVENTS), EVENTS, EVENTS),
        (Some("*/*"), EVENTS, JSON),
        (None, EVENTS, JSON),
        (Some(""), EVENTS, JSON),
    ] {
        let endpoint = endpoint(&server);
        for (message, form) in [(&message, of_noisy), (&quiet, of_quiet)] {
            let builder = accepting(modern_builder(message), accept);
            let response = send(&endpoint, builder, message.to_string()).await;
            assert_eq!(response.status(), StatusCode::OK, "{accept:?}");
            assert_eq!(
                header(response.headers(), "content-type"),
                form,
                "{accept:?}"
            );
            let answer = match form {
                JSON => json(response).await,
                _ => Events::of(response).rest().await.pop().unwrap().data,
            };
            assert_eq!(answer["id"], 7, "{accept:?}: {answer}");
            assert!(
                answer["result"]["content"].is_array(),
                "{accept:?}: {answer}"
            );
        }
        // A legacy session, too.
        let opening = initialize("2025-11-25", json!({}));
        let builder = accepting(builder("POST"), accept);
        let opened = send(&endpoint, builder, opening.to_string()).await;
        assert_eq!(opened.status(), StatusCode::OK, "{accept:?}");
        assert_eq!(
            header(opened.headers(), "content-type"),
            of_quiet,
            "{accept:?}"
        );
        let session = Session::open(&endpoint).await;
        let call = request(
            7,
            "tools/call",
            json!({"name": "add", "arguments": {"a": 1, "b": 2}}),
        );
        let builder = accepting(session.builder("POST"), accept);
        let response = send(&endpoint, builder, call.to_string()).await;
        assert_eq!(
            header(response.headers(), "content-type"),
            of_quiet,
            "{accept:?}"
        );
    }
    let refused = async |server: &Server, accept| {
        let builder = accepting(modern_builder(&quiet), accept);
        let response = send(&endpoint(server), builder, quiet.to_string()).await;
        response.status() == StatusCode::NOT_ACCEPTABLE
    };
    let strict = calculator().strict();
    for accept in [Some(JSON), Some(EVENTS), None] {
        assert!(refused(&strict, accept).await, "{accept:?}");
        assert!(!refused(&server, accept).await, "{accept:?}");
    }
    for accept in ["text/html", "image/*", "application/json;q=0"] {
        assert!(refused(&server, Some(accept)).await, "{accept}");
    }
    assert!(!refused(&strict, Some("*/*")).await);
}

//! Legacy sessions, which `initialize` opens.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use oxmcp::{
    Error, Limits, Principal, RequestContext, Resource, Result, Server, Tool,
    http::StreamableHttp,
    middleware::{self, Next, Request},
    protocol::LoggingLevel,
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::http::mounts::mounts;
use crate::http::server::peer::{
    Event, Events, LEGACY, Session, builder, header, initialize, json, send,
};
use crate::support::{calculator, idle, request};

pub(crate) fn endpoint(server: &Server) -> StreamableHttp {
    StreamableHttp::from(server.clone())
}

#[tokio::test]
async fn initialize_answered_by_middleware_opens_no_session() {
    async fn instead(request: Request, next: Next) -> Result<middleware::Response> {
        match request.method() {
            "initialize" => middleware::Response::new(&json!({"instead": true})),
            _ => next.run(request).await,
        }
    }
    async fn afterwards(request: Request, next: Next) -> Result<middleware::Response> {
        next.run(request).await?;
        Err(Error::internal("not today"))
    }
    let opening = initialize(LEGACY, json!({})).to_string();
    for (server, expected) in [
        (calculator().layer(middleware::from_fn(instead)), "instead"),
        (
            calculator().layer(middleware::from_fn(afterwards)),
            "not today",
        ),
    ] {
        let response = send(&endpoint(&server), builder("POST"), opening.clone()).await;
        assert!(!response.headers().contains_key("mcp-session-id"));
        let answer = json(response).await.to_string();
        assert!(answer.contains(expected), "{answer}");
    }
}

/// Some clients keep the header of a session that has ended.
#[tokio::test]
async fn initialize_ignores_a_stale_session_id() {
    let server = calculator();
    let endpoint = endpoint(&server);
    let ended = Session::open(&endpoint).await;
    ended.delete().await;
    let unknown = "0".repeat(32);
    for stale in [&*ended.id, &unknown, "undefined", "null", ""] {
        let opening = initialize(LEGACY, json!({})).to_string();
        let posted = builder("POST").header("mcp-session-id", stale);
        let response = send(&endpoint, posted, opening).await;
        assert_eq!(response.status(), StatusCode::OK, "{stale}");
        let id = header(response.headers(), "mcp-session-id");
        assert_ne!(id, stale);
        // Other requests of the old session still learn that it has ended.
        let ping = request(1, "ping", json!({})).to_string();
        let posted = builder("POST").header("mcp-session-id", stale);
        let response = send(&endpoint, posted, ping).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{stale}");
    }
    // In an open session it is the second one.
    let open = Session::open(&endpoint).await;
    let answer = json(open.post(&initialize(LEGACY, json!({}))).await).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
}

#[tokio::test]
async fn body_may_begin_with_one_byte_order_mark() {
    let endpoint = endpoint(&calculator());
    let opening = initialize(LEGACY, json!({}));
    let response = send(&endpoint, builder("POST"), format!("\u{feff}{opening}")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let session = Session::open(&endpoint).await;
    let ping = request(1, "ping", json!({}));
    let marked = format!("\u{feff}{ping}");
    let answer = send(&endpoint, session.builder("POST"), marked).await;
    assert_eq!(json(answer).await["result"], json!({}));
    let marked = format!("\u{feff}\u{feff}{ping}");
    let answer = send(&endpoint, session.builder("POST"), marked).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let old = Session::open_in(&endpoint, "2025-03-26", json!({})).await;
    let marked = format!("\u{feff}[{ping}]");
    let answer = send(
        &endpoint,
        builder("POST").header("mcp-session-id", &old.id),
        marked,
    )
    .await;
    assert_eq!(json(answer).await[0]["result"], json!({}));
    let message = crate::support::modern(1, "tools/list", json!({}));
    let marked = format!("\u{feff}{message}");
    let answer = send(
        &endpoint,
        crate::http::server::peer::modern_builder(&message),
        marked,
    )
    .await;
    assert!(json(answer).await["result"]["tools"].is_array());
}

#[tokio::test]
async fn empty_cursor_lists_the_first_page() {
    let server = calculator().tools(["b", "c"].map(idle)).page_size(1);
    let session = Session::open(&endpoint(&server)).await;
    let first = json(session.call(1, "tools/list", json!({})).await).await;
    let again = json(session.call(1, "tools/list", json!({"cursor": ""})).await).await;
    assert_eq!(first, again);
    assert_eq!(first["result"]["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn handler_of_vanished_client_waits_for_no_reader() {
    let (gone, done) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let (is_gone, is_done) = (Arc::clone(&gone), Arc::clone(&done));
    let chatty = Tool::new("chatty", "Reports", move |cx: RequestContext| {
        let (is_gone, is_done) = (Arc::clone(&is_gone), Arc::clone(&is_done));
        async move {
            is_gone.notified().await;
            for part in 1..=100 {
                cx.progress(part).message("x".repeat(1_000)).await;
            }
            is_done.notify_one();
        }
    });
    let limits = Limits::default().max_unsent_bytes(2_000);
    let server = Server::new("chatty", "1.0.0").tool(chatty).limits(limits);
    let session = Session::open(&endpoint(&server)).await;
    let params = json!({"name": "chatty", "_meta": {"progressToken": 1}});
    let call = session.call(1, "tools/call", params);
    let answered = timeout(Duration::from_secs(1), call).await;
    assert!(answered.is_err(), "it has not begun");
    gone.notify_one();
    let finished = timeout(Duration::from_secs(60), done.notified()).await;
    finished.expect("nothing holds it up");
}

#[tokio::test(start_paused = true)]
async fn running_call_may_finish_after_session_delete() {
    let slow = || async {
        sleep(Duration::from_secs(1)).await;
        "done"
    };
    let server = Server::new("slow", "1.0.0").tool(Tool::new("slow", "Take a second", slow));
    let session = Session::open(&endpoint(&server)).await;
    let call = session.call(1, "tools/call", json!({"name": "slow"}));
    let (answer, deleted) = tokio::join!(call, session.delete());
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    let answer = json(answer).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    // Nothing else is waited for.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn session_opened_while_endpoint_closes_ends_with_it() {
    let slowly = async |request: Request, next: Next| {
        sleep(Duration::from_secs(1)).await;
        next.run(request).await
    };
    let server = calculator().layer(middleware::from_fn(slowly));
    let endpoint = endpoint(&server);
    let opening = initialize(LEGACY, json!({})).to_string();
    let opening = send(&endpoint, builder("POST"), opening);
    let closing = async {
        sleep(Duration::from_millis(500)).await;
        endpoint.close().await;
    };
    let (_answer, ()) = tokio::join!(opening, closing);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn handler_outliving_its_call_ignores_stream_backpressure() {
    let done = Arc::new(Notify::new());
    let late = Arc::clone(&done);
    let chatty = move |cx: RequestContext| {
        let late = Arc::clone(&late);
        async move {
            let _ = cx.log(LoggingLevel::Info, "now").await;
            tokio::spawn(async move {
                let text = "x".repeat(1 << 10);
                for _ in 0..10 {
                    let _ = cx.log(LoggingLevel::Info, &text).await;
                    sleep(Duration::from_secs(1)).await;
                }
                late.notify_one();
            });
        }
    };
    let server = Server::new("chatty", "1.0.0")
        .logging()
        .limits(Limits::default().max_unsent_bytes(1 << 12))
        .tool(Tool::new("chatty", "Log on", chatty));
    let session = Session::open(&endpoint(&server)).await;
    let call = session.call(1, "tools/call", json!({"name": "chatty"}));
    let events = Events::of(call.await).rest().await;
    assert_eq!(events.last().unwrap().data["id"], 1);
    let limit = Duration::from_secs(60);
    assert!(timeout(limit, done.notified()).await.is_ok());
}

/// A tool that reports progress, and waits to be released.
pub(crate) fn steps(release: &Arc<Notify>) -> Tool {
    let release = Arc::clone(release);
    Tool::new("steps", "Report and wait", move |cx: RequestContext| {
        let release = Arc::clone(&release);
        async move {
            for step in 1..=2 {
                cx.progress(step).await;
                release.notified().await;
            }
            "done"
        }
    })
}

pub(crate) fn call_steps(id: i64) -> Value {
    let params = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "t"}});
    request(id, "tools/call", params)
}

#[tokio::test]
async fn session_answers_calls_and_ends_with_delete() {
    let server = calculator();
    let session = Session::open(&endpoint(&server)).await;
    assert_eq!(session.id.len(), 32, "128 bits");
    assert_eq!(server.sessions().count(), 1);
    let params = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let answer = json(session.call(1, "tools/call", params).await).await;
    assert_eq!(answer["result"]["content"][0]["text"], "3.0");
    assert_eq!(session.delete().await.status(), StatusCode::NO_CONTENT);
    let gone = session.call(2, "ping", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    assert_eq!(json(gone).await["id"], 2);
    session.endpoint.close().await;
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test]
async fn missing_session_error_mentions_initialize() {
    let endpoint = endpoint(&calculator());
    let message = request(3, "tools/list", json!({}));
    let response = send(&endpoint, builder("POST"), message.to_string()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let answer = json(response).await;
    assert_eq!(answer["id"], 3);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("initialize")
    );
}

#[tokio::test]
async fn request_messages_are_on_its_stream_with_ids() {
    let release = Arc::new(Notify::new());
    let session = Session::open(&endpoint(&calculator().tool(steps(&release)))).await;
    let mut events = Events::of(session.post(&call_steps(5)).await);
    let first = events.next().await.unwrap();
    assert_eq!(
        (first.id.as_deref(), first.data),
        (Some("r0_1"), Value::Null)
    );
    let second = events.next().await.unwrap();
    assert_eq!(second.data["params"]["progress"], 1.0);
    release.notify_one();
    assert_eq!(events.next().await.unwrap().data["params"]["progress"], 2.0);
    release.notify_one();
    let rest = events.rest().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].id.as_deref(), Some("r0_4"));
    assert_eq!(rest[0].data["id"], 5);
}

#[tokio::test]
async fn broken_stream_resumes_where_it_broke() {
    let release = Arc::new(Notify::new());
    let session = Session::open(&endpoint(&calculator().tool(steps(&release)))).await;
    let mut events = Events::of(session.post(&call_steps(5)).await);
    events.next().await.unwrap();
    let seen = events.next().await.unwrap().id.unwrap();
    drop(events);
    release.notify_one();
    let mut resumed = Events::of(session.resume(&seen).await);
    let next = resumed.next().await.unwrap();
    assert_eq!(next.data["params"]["progress"], 2.0);
    release.notify_one();
    let rest: Vec<Event> = resumed.rest().await;
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "done");
    // The stream has ended, but can still be replayed.
    let again = Events::of(session.resume(&seen).await).rest().await;
    assert_eq!(again.len(), 2);
    assert_eq!(again[1].data["id"], 5);
}

// Attack: session hijacking.
#[tokio::test]
async fn foreign_event_id_resumes_nothing() {
    for mount in mounts!() {
        let release = Arc::new(Notify::new());
        let endpoint = mount
            .serve(&endpoint(&calculator().tool(steps(&release))))
            .await;
        let (one, other) = (
            Session::open(&endpoint).await,
            Session::open(&endpoint).await,
        );
        let mut events = Events::of(one.post(&call_steps(5)).await);
        let seen = events.next().await.unwrap().id.unwrap();
        assert_eq!(other.resume(&seen).await.status(), StatusCode::BAD_REQUEST);
        assert_eq!(one.resume("r7_1").await.status(), StatusCode::BAD_REQUEST);
        assert_eq!(
            one.resume("nonsense").await.status(),
            StatusCode::BAD_REQUEST
        );
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn session_is_found_only_by_its_owner() {
    for mount in mounts!() {
        let endpoint = mount.serve(&endpoint(&calculator())).await;
        let open = builder("POST").extension(Principal::new("ann"));
        let opened = send(&endpoint, open, initialize(LEGACY, json!({})).to_string()).await;
        let id = header(opened.headers(), "mcp-session-id").to_owned();
        let status = async |principal: Option<&str>, method: &str| {
            let mut builder = builder(method).header("mcp-session-id", &id);
            if let Some(principal) = principal {
                builder = builder.extension(Principal::new(principal));
            }
            let ping = request(1, "ping", json!({}));
            send(&endpoint, builder, ping.to_string()).await.status()
        };
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(status(Some("bob"), method).await, StatusCode::NOT_FOUND);
            assert_eq!(status(None, method).await, StatusCode::NOT_FOUND);
        }
        assert_eq!(status(Some("ann"), "POST").await, StatusCode::OK);
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn second_get_does_not_steal_the_stream() {
    for mount in mounts!() {
        let server = calculator();
        let session = Session::open(&mount.serve(&endpoint(&server)).await).await;
        let mut events = session.listen().await;
        assert_eq!(session.get().await.status(), StatusCode::CONFLICT);
        let _ = server.clone().tool(idle("another"));
        let told = events.next().await.unwrap();
        assert_eq!(told.data["method"], "notifications/tools/list_changed");
        drop(events);
        // The place is free as soon as the stream's task has noticed the drop.
        let last = told.id.unwrap();
        while session.resume(&last).await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn disconnecting_client_cancels_nothing() {
    let release = Arc::new(Notify::new());
    let done = Arc::new(Notify::new());
    let notify = (Arc::clone(&release), Arc::clone(&done));
    let tool = Tool::new("work", "Work", move |cx: RequestContext| {
        let (release, done) = notify.clone();
        async move {
            cx.progress(1).await;
            release.notified().await;
            assert!(!cx.is_cancelled());
            done.notify_one();
        }
    });
    let session = Session::open(&endpoint(&calculator().tool(tool))).await;
    let params = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": 1}});
    drop(session.call(1, "tools/call", params).await);
    release.notify_one();
    done.notified().await;
}

#[tokio::test]
async fn stream_closed_by_its_handler_is_resumed_later() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let tool = Tool::new("poll", "Answer later", move |cx: RequestContext| {
        let release = Arc::clone(&held);
        async move {
            cx.close_stream(Duration::from_millis(500));
            release.notified().await;
            "late"
        }
    });
    let session = Session::open(&endpoint(&calculator().tool(tool))).await;
    let params = json!({"name": "poll", "arguments": {}});
    let events = Events::of(session.call(1, "tools/call", params).await)
        .rest()
        .await;
    let last = events.last().unwrap();
    assert_eq!((last.retry, &last.data), (Some(500), &Value::Null));
    assert_eq!(
        events[0].id.as_deref(),
        Some("r0_1"),
        "it begins with an id"
    );
    release.notify_one();
    let rest = Events::of(session.resume(last.id.as_deref().unwrap()).await);
    let rest = rest.rest().await;
    assert_eq!(rest[0].data["result"]["content"][0]["text"], "late");
}

#[tokio::test]
async fn server_asks_on_the_calls_stream() {
    #[derive(Debug, serde::Deserialize, serde::Serialize, oxmcp::JsonSchema)]
    struct Name {
        name: String,
    }

    let tool = Tool::new("greet", "Greet", |cx: RequestContext| async move {
        let Name { name } = cx.ask("name", "Who are you?").await?;
        Ok::<_, oxmcp::ToolError>(format!("Hello, {name}!"))
    });
    let endpoint = endpoint(&calculator().tool(tool));
    let session = Session::open_in(&endpoint, LEGACY, json!({"elicitation": {}})).await;
    let params = json!({"name": "greet", "arguments": {}});
    let mut events = Events::of(session.call(1, "tools/call", params).await);
    events.next().await.unwrap();
    let question = events.next().await.unwrap().data;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"name": "Ann"}}});
    assert_eq!(session.post(&answer).await.status(), StatusCode::ACCEPTED);
    let answer = events.next().await.unwrap().data;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ann!");
}

#[tokio::test]
async fn batch_is_answered_as_a_whole() {
    let session = Session::open_in(&endpoint(&calculator()), "2025-03-26", json!({})).await;
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]);
    let answer = json(session.post(&batch).await).await;
    assert_eq!(answer.as_array().unwrap().len(), 2);
    let batch = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    assert_eq!(session.post(&batch).await.status(), StatusCode::ACCEPTED);
}

#[tokio::test(start_paused = true)]
async fn idle_session_expires_unless_a_stream_is_open() {
    let server = calculator();
    let limits = Limits::default().http(|http| http.session_idle(Duration::from_secs(60)));
    let endpoint = endpoint(&server).limits(limits);
    let session = Session::open(&endpoint).await;
    let events = Events::of(session.get().await);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(server.sessions().count(), 1);
    drop(events);
    sleep(Duration::from_secs(121)).await;
    assert_eq!(server.sessions().count(), 0);
    let gone = session.call(1, "ping", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn each_session_expires_by_its_own_idle_time() {
    let server = calculator();
    let limits = Limits::default().http(|http| http.session_idle(Duration::from_secs(64)));
    let endpoint = endpoint(&server).limits(limits);
    let pass = async |seconds| sleep(Duration::from_secs(seconds)).await;
    let there = async |session: &Session| {
        let answer = session.call(1, "ping", json!({})).await;
        answer.status() == StatusCode::OK
    };
    // In the second round the sweeper of the first still runs, and in the third no sweeper runs any more.
    for rest in [0, 200, 0] {
        let first = Session::open(&endpoint).await;
        pass(30).await;
        let second = Session::open(&endpoint).await;
        pass(33).await;
        assert_eq!(server.sessions().count(), 2);
        pass(3).await;
        assert!(!there(&first).await && there(&second).await);
        pass(63).await;
        assert_eq!(server.sessions().count(), 1, "it was used meanwhile");
        pass(3).await;
        assert_eq!(server.sessions().count(), 0);
        pass(rest).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_closed_by_its_handler_ends() {
    let tool = Tool::new("bye", "End the session", |cx: RequestContext| async move {
        let _ = cx.server_session().unwrap().close().await;
        "bye"
    });
    let server = calculator().tool(tool);
    let session = Session::open(&endpoint(&server)).await;
    let params = json!({"name": "bye", "arguments": {}});
    drop(session.call(1, "tools/call", params).await);
    // Closing waits for the handler, which waits for it, until the drain is over.
    while server.sessions().count() > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    let gone = session.call(2, "ping", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn legacy_sessions_are_limited() {
    let limits = Limits::default().http(|http| http.max_sessions(1));
    let endpoint = endpoint(&calculator()).limits(limits);
    let session = Session::open(&endpoint).await;
    let open = async || {
        let initialize = initialize(LEGACY, json!({}));
        send(&endpoint, builder("POST"), initialize.to_string())
            .await
            .status()
    };
    assert_eq!(open().await, StatusCode::SERVICE_UNAVAILABLE);
    session.delete().await;
    while open().await != StatusCode::OK {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn closing_endpoint_ends_sessions_after_running_requests() {
    let release = Arc::new(Notify::new());
    let server = calculator().tool(steps(&release));
    let session = Session::open(&endpoint(&server)).await;
    let mut events = Events::of(session.post(&call_steps(5)).await);
    events.next().await.unwrap();
    events.next().await.unwrap();
    let stream = session.listen().await;
    release.notify_one();
    let finish = async {
        events.next().await.unwrap();
        release.notify_one();
        events.rest().await
    };
    let (answered, rest, ()) = tokio::join!(finish, stream.rest(), session.endpoint.close());
    assert_eq!(answered[0].data["id"], 5);
    assert!(rest.is_empty());
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test]
async fn session_watches_count_toward_the_endpoint_budget() {
    const LENGTH: usize = 100_000;
    let limits = Limits::default().http(|http| http.max_bytes(10 * LENGTH));
    let server = Server::new("files", "1.0.0").resource(Resource::text("file:///a", "a", ""));
    let endpoint = endpoint(&server.subscriptions()).limits(limits);
    let uri = format!("file:///{}", "x".repeat(LENGTH));
    let mut watching = Vec::new();
    let (session, answer) = loop {
        let session = Session::open(&endpoint).await;
        let params = json!({"uri": uri});
        let answer = json(session.call(1, "resources/subscribe", params).await).await;
        if answer["result"].is_null() {
            break (session, answer);
        }
        watching.push(session);
        assert!(watching.len() < 10, "more than there is room for");
    };
    // There is room for the body of the request, but not for the body and the stored URI.
    assert!(watching.len() > 7, "{}", watching.len());
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let params = json!({"uri": uri});
    let ended = watching[0].call(2, "resources/unsubscribe", params.clone());
    assert!(json(ended.await).await["result"].is_object());
    let answer = json(session.call(2, "resources/subscribe", params).await).await;
    assert!(answer["result"].is_object(), "{answer}");
}

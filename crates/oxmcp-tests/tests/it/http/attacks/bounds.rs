//! Resource exhaustion: memory that one side makes the other keep. The bounds of answers, stores and connections are tested
//! next to them.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http_body_util::StreamBody;
use hyper::body::Frame;
use oxmcp::{Limits, Principal, RequestContext, Server, Tool, http::StreamableHttp};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

use crate::{
    http::mounts::{Target, mounts},
    http::server::peer::{
        Events, LEGACY, Session, builder, call_modern, header, initialize, json, modern_builder,
        send,
    },
    support::{calculator, modern, request},
};

/// A time limit beyond all expected waits, so that a missing event does not hang a test.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// As many bytes as clients put into a frame of HTTP/2: with thousands of tiny frames, the connection is closed instead.
const PART: &[u8] = &[b' '; 10_000];

fn limited(limits: Limits) -> StreamableHttp {
    StreamableHttp::from(calculator().limits(limits.clone())).limits(limits)
}

// Attack: resource exhaustion.
#[tokio::test]
async fn oversized_body_is_refused_before_it_fully_arrives() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(
                Limits::default().http(|http| http.max_body_bytes(1000)),
            ))
            .await;
        let session = Session::open(&endpoint).await;
        let message = modern(1, "tools/list", json!({}));
        let ping = request(1, "ping", json!({}));
        let kinds = || {
            [
                (modern_builder(&message), &message),
                (session.builder("POST"), &ping),
            ]
        };
        for (builder, message) in kinds() {
            let fits = format!("{:1000}", message.to_string());
            let status = send(&endpoint, builder, fits).await.status();
            assert_eq!(status, StatusCode::OK);
        }
        for (builder, message) in kinds() {
            let longer = format!("{:1001}", message.to_string());
            let refused = send(&endpoint, builder, longer).await;
            assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
            assert!(json(refused).await["error"]["code"].is_i64());
        }
        for (builder, _) in kinds() {
            // A declared length that is too large is refused at once,
            let never = stream::pending::<Result<Frame<Bytes>, Infallible>>();
            let says = builder
                .header("content-length", "999999999999")
                .body(StreamBody::new(never));
            let response = endpoint.respond(says.unwrap()).await;
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        }
        for (builder, _) in kinds() {
            // and without a declared length, the end of the body is not waited for.
            let taken = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&taken);
            let part = move || {
                counted.fetch_add(PART.len(), Ordering::Relaxed);
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(PART)))
            };
            let endless = builder
                .body(StreamBody::new(stream::repeat_with(part)))
                .unwrap();
            let response = endpoint.respond(endless).await;
            assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
            // The sockets buffer a part of the body.
            assert!(taken.load(Ordering::Relaxed) <= 64 << 20);
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn streams_are_limited() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(Limits::default().http(|http| http.max_streams(2))))
            .await;
        let (one, two, three) = (
            Session::open(&endpoint).await,
            Session::open(&endpoint).await,
            Session::open(&endpoint).await,
        );
        let first = Events::of(one.get().await);
        let _second = Events::of(two.get().await);
        for _ in 0..3 {
            // Streams that are refused do not count.
            assert_eq!(one.get().await.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(three.get().await.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        drop(first);
        // The place is free as soon as the task that served the stream has noticed the drop.
        while three.get().await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    }
}

async fn listen(endpoint: &impl Target) -> http::Response<oxmcp::http::ResponseBody> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    call_modern(endpoint, "subscriptions/listen", params).await
}

// Attack: resource exhaustion.
#[tokio::test]
async fn subscriptions_are_limited() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(Limits::default().http(|http| http.max_streams(2))))
            .await;
        let mut first = Events::of(listen(&endpoint).await);
        let mut second = Events::of(listen(&endpoint).await);
        first.next().await.unwrap();
        second.next().await.unwrap();
        for _ in 0..3 {
            let refused = listen(&endpoint).await;
            assert!(json(refused).await["error"]["code"].is_i64());
        }
        drop(first);
        // The place is free as soon as the task that served the subscription has noticed the drop.
        let kind = |response: &http::Response<_>| response.headers()["content-type"].clone();
        while kind(&listen(&endpoint).await) != "text/event-stream" {
            tokio::task::yield_now().await;
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn sessions_that_fail_to_open_use_no_slot() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(
                Limits::default().http(|http| http.max_sessions(1)),
            ))
            .await;
        for params in [json!({}), json!({"protocolVersion": {}}), json!([])] {
            let failed = request(1, "initialize", params).to_string();
            let response = send(&endpoint, builder("POST"), failed).await;
            assert!(!response.headers().contains_key("mcp-session-id"));
        }
        let _session = Session::open(&endpoint).await;
        let open = initialize(LEGACY, json!({})).to_string();
        for _ in 0..3 {
            let refused = send(&endpoint, builder("POST"), open.clone()).await;
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn initialize_without_id_uses_no_slot() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(
                Limits::default().http(|http| http.max_sessions(1)),
            ))
            .await;
        // Without an id, the message has no answer.
        let mut open = initialize(LEGACY, json!({}));
        open.as_object_mut().unwrap().remove("id");
        let refused = send(&endpoint, builder("POST"), open.to_string());
        let refused = timeout(TIME_LIMIT, refused).await.unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        Session::open(&endpoint).await;
    }
}

#[tokio::test]
async fn oversized_initialize_params_open_no_session() {
    let server = calculator();
    let endpoint = StreamableHttp::from(server.clone());
    let opening = |length| {
        let mut opening = initialize(LEGACY, json!({}));
        opening["params"]["clientInfo"]["name"] = json!("x".repeat(length));
        opening.to_string()
    };
    let refused = send(&endpoint, builder("POST"), opening(1 << 20)).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    assert!(!refused.headers().contains_key("mcp-session-id"));
    let refused = json(refused).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["id"]),
        (&json!(-32602), &json!(0))
    );
    assert_eq!(server.sessions().count(), 0);
    let opened = send(&endpoint, builder("POST"), opening(1 << 19)).await;
    assert_eq!(opened.status(), StatusCode::OK);
    // The name is truncated, and the client is not refused for it.
    let session = server.sessions().next().unwrap();
    let name = session.client_info().unwrap().name.clone();
    assert_eq!(name.len(), 16 << 10);
}

// Attack: resource exhaustion.
#[tokio::test]
async fn batches_cannot_bypass_a_limit() {
    for mount in mounts!() {
        let endpoint = mount.serve(&limited(Limits::default().max_batch(3))).await;
        let session = Session::open_in(&endpoint, "2025-03-26", json!({})).await;
        let batch = |count: i64| -> Value {
            let pings = (0..count).map(|id| request(id, "ping", json!({})));
            pings.collect()
        };
        let answers = json(session.post(&batch(3)).await).await;
        assert_eq!(answers.as_array().unwrap().len(), 3);
        let refused = json(session.post(&batch(4)).await).await;
        assert!(refused["error"]["code"].is_i64(), "{refused}");
        let answer = json(session.call(9, "ping", json!({})).await).await;
        assert_eq!(answer["id"], 9);
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn requests_in_flight_per_session_are_limited() {
    for mount in mounts!() {
        let release = Arc::new(Notify::new());
        let held = Arc::clone(&release);
        let tool = Tool::new("wait", "Wait", move |cx: RequestContext| {
            let release = Arc::clone(&held);
            async move {
                cx.progress(1).await;
                release.notified().await;
            }
        });
        let limits = Limits::default().max_in_flight(2);
        let endpoint = StreamableHttp::from(calculator().tool(tool).limits(limits));
        let endpoint = mount.serve(&endpoint).await;
        let session = Session::open(&endpoint).await;
        let wait = |id| {
            let params = json!({"name": "wait", "arguments": {}, "_meta": {"progressToken": id}});
            request(id, "tools/call", params)
        };
        let first = Events::of(session.post(&wait(1)).await);
        let second = Events::of(session.post(&wait(2)).await);
        let refused = json(session.post(&wait(3)).await).await;
        assert!(refused["error"]["code"].is_i64(), "{refused}");
        // The limit is per session: no other session is affected.
        let other = Session::open(&endpoint).await;
        assert_eq!(
            other.call(1, "ping", json!({})).await.status(),
            StatusCode::OK
        );
        release.notify_waiters();
        for (events, id) in [(first, 1), (second, 2)] {
            assert_eq!(events.rest().await.pop().unwrap().data["id"], id);
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn json_depth_is_limited_to_the_stack() {
    for mount in mounts!() {
        let any = Tool::new("any", "Take anything", |_: Value| async {});
        let endpoint = mount
            .serve(&StreamableHttp::from(Server::new("s", "1").tool(any)))
            .await;
        let session = Session::open(&endpoint).await;
        for depth in [10, 100, 1_000, 10_000, 500_000] {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"any","arguments":{{"a":{nested}}}}}}}"#
            );
            let answer = json(send(&endpoint, session.builder("POST"), body).await).await;
            let taken = answer.get("result").is_some_and(|it| it["isError"] != true);
            assert_eq!(taken, depth <= 100, "{depth}: {answer}");
        }
    }
}

/// Opens a session and does nothing else, if there is room. Returns its id, and the status.
async fn open(endpoint: &impl Target, who: Option<&str>) -> (String, StatusCode) {
    let mut request = builder("POST");
    if let Some(who) = who {
        request = request.extension(Principal::new(who));
    }
    let open = initialize(LEGACY, json!({})).to_string();
    let response = send(endpoint, request, open).await;
    let id = header(response.headers(), "mcp-session-id").to_owned();
    (id, response.status())
}

/// Uses a session. Returns whether it still exists.
async fn ping(endpoint: &impl Target, who: Option<&str>, id: &str) -> bool {
    let mut sent = builder("POST").header("mcp-session-id", id);
    if let Some(who) = who {
        sent = sent.extension(Principal::new(who));
    }
    let ping = request(1, "ping", json!({})).to_string();
    send(endpoint, sent, ping).await.status() == StatusCode::OK
}

// Attack: resource exhaustion.
#[tokio::test]
async fn session_flood_evicts_only_unused_sessions() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(
                Limits::default().http(|http| http.max_sessions(3)),
            ))
            .await;
        let (used, _) = open(&endpoint, None).await;
        assert!(ping(&endpoint, None, &used).await);
        let mut ids = Vec::new();
        for _ in 0..100 {
            let (id, status) = open(&endpoint, None).await;
            assert_eq!(status, StatusCode::OK);
            ids.push(id);
        }
        assert!(ping(&endpoint, None, &used).await);
        let mut left = Vec::new();
        for id in &ids {
            if ping(&endpoint, None, id).await {
                left.push(id);
            }
        }
        // The youngest sessions are left. Now they are used, so none of them is evicted any more.
        assert_eq!(left, ids.iter().skip(98).collect::<Vec<_>>());
        let (_, status) = open(&endpoint, None).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        for id in [&used].into_iter().chain(left) {
            assert!(ping(&endpoint, None, id).await);
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn each_principal_has_a_session_quota() {
    for mount in mounts!() {
        let endpoint = mount
            .serve(&limited(
                Limits::default().http(|http| http.max_sessions(4).max_sessions_each(2)),
            ))
            .await;
        let (ann, bob) = (Some("ann"), Some("bob"));
        let (of_bob, _) = open(&endpoint, bob).await;
        let (first, _) = open(&endpoint, ann).await;
        let (second, _) = open(&endpoint, ann).await;
        // Ann's own oldest session is evicted, though another client's session is older.
        let (third, status) = open(&endpoint, ann).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!ping(&endpoint, ann, &first).await);
        assert!(ping(&endpoint, ann, &second).await && ping(&endpoint, ann, &third).await);
        for _ in 0..3 {
            let (_, status) = open(&endpoint, ann).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        }
        assert!(ping(&endpoint, bob, &of_bob).await);
        assert_eq!(open(&endpoint, bob).await.1, StatusCode::OK);
        // A session that Ann ends makes room again.
        let delete = builder("DELETE").header("mcp-session-id", &third);
        send(&endpoint, delete.extension(Principal::new("ann")), "").await;
        while open(&endpoint, ann).await.1 != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    }
}

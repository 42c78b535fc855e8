//! Requests that are refused, and bounds on the memory that a client can make grow.

use std::{convert::Infallible, io};

use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use oxmcp::{Limits, Tool};
use tokio::time::{pause, resume};

use crate::{
    http::sse_2024::*,
    support::{modern, text},
};

// Attack: DNS rebinding and cross-site requests from a web page.
#[tokio::test]
async fn hosts_and_origins_are_checked_on_every_endpoint() {
    for mount in mounts!() {
        let service = mount.serve(&service(calculator())).await;
        let client = Client::opened(&service).await;
        for (uri, method) in [
            ("/sse", "GET"),
            (&*client.uri(), "POST"),
            ("/sse", "DELETE"),
        ] {
            let of = |name, value| {
                let request = Request::builder().method(method).uri(uri);
                request
                    .header("accept", "text/event-stream")
                    .header(name, value)
                    .header("content-type", "application/json")
            };
            let rebound = of("host", "evil.example");
            let from_a_page = of("host", "localhost").header("origin", "https://evil.example");
            let from_nowhere = of("host", "localhost").header("origin", "null");
            for request in [rebound, from_a_page, from_nowhere] {
                let status = status(&service, request, ping(1).to_string()).await;
                assert_eq!(status, StatusCode::FORBIDDEN, "{method}");
            }
        }
    }
}

// Attack: DNS rebinding and cross-site requests from a web page.
#[tokio::test]
async fn allowed_hosts_and_origins_are_configurable() {
    for mount in mounts!() {
        let unmounted = service(calculator())
            .allowed_hosts(["example.com"])
            .allowed_origins(["https://app.example.com"]);
        let service = mount.serve(&unmounted).await;
        let of = |host, origin| {
            let request = Request::builder().uri("/sse").header("host", host);
            request
                .header("accept", "text/event-stream")
                .header("origin", origin)
        };
        let page = "https://app.example.com";
        assert_eq!(status(&service, of("example.com", page), "").await, 200);
        assert_eq!(status(&service, of("localhost", page), "").await, 403);
        let other = of("example.com", "https://evil.example");
        assert_eq!(status(&service, other, "").await, 403);
        let wrong = unmounted.allowed_hosts(["not a host"]);
        assert_eq!(status(&wrong, of("example.com", page), "").await, 500);
        assert!(wrong.serve("127.0.0.1:0").await.is_err());
    }
}

// Attack: cross-site requests from a web page.
#[tokio::test]
async fn bodies_a_web_page_can_send_are_refused() {
    for mount in mounts!() {
        let client = Client::opened(&mount.serve(&service(calculator())).await).await;
        for kind in ["text/plain", "application/x-www-form-urlencoded"] {
            let request = local("POST", &client.uri()).header("content-type", kind);
            let status = status(&client.service, request, ping(1).to_string()).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        let untyped = status(&client.service, local("POST", &client.uri()), "{}").await;
        assert_eq!(untyped, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_sessions_are_not_found() {
    let service = service(calculator());
    let post = async |uri: &str| status(&service, local_post(uri), "{}").await;
    assert_eq!(post("/sse").await, StatusCode::BAD_REQUEST);
    assert_eq!(post("/sse?sessionId=").await, StatusCode::NOT_FOUND);
    let unknown = format!("/sse?sessionId={}", "0".repeat(32));
    assert_eq!(post(&unknown).await, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn other_methods_are_not_allowed() {
    let service = service(calculator());
    for method in ["DELETE", "PUT", "HEAD", "OPTIONS"] {
        let response = respond(&service, local(method, "/sse"), "").await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "GET, POST");
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn oversized_body_is_refused_while_it_arrives() {
    for mount in mounts!() {
        let limits = Limits::default().http(|http| http.max_body_bytes(100));
        let service = mount.serve(&service(calculator()).limits(limits)).await;
        let mut client = Client::open(&service).await;
        let padded = |length: usize| format!("{:length$}", ping(1).to_string());
        assert_eq!(
            status(&service, local_post(&client.uri()), padded(100)).await,
            202
        );
        assert_eq!(client.message().await["id"], 1);
        assert_eq!(
            status(&service, local_post(&client.uri()), padded(101)).await,
            413
        );
        // A body that never ends is refused, too.
        let part = || Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 10_000])));
        let endless = StreamBody::new(stream::repeat_with(part));
        let request = local_post(&client.uri()).body(endless).unwrap();
        let response = service.respond(request).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn stalled_body_is_not_awaited() {
    for mount in mounts!() {
        let unmounted = service(calculator());
        let service = mount.serve(&unmounted).await;
        let client = Client::opened(&service).await;
        let never = stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let request = local_post(&client.uri()).body(StreamBody::new(never));
        // No other operation is running that could time out while the clock is paused.
        pause();
        let response = service.respond(request.unwrap()).await;
        resume();
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        let empty = status(&service, local_post(&client.uri()), " \n").await;
        assert_eq!(empty, StatusCode::BAD_REQUEST);
        // Over a network, a client that disconnects would get no answer.
        let broken = stream::iter([Err::<Frame<Bytes>, _>(io::Error::other("reset"))]);
        let request = local_post(&client.uri()).body(StreamBody::new(broken));
        let response = unmounted.respond(request.unwrap()).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn sessions_are_limited() {
    for mount in mounts!() {
        let limits = Limits::default().http(|http| http.max_sessions(2));
        let service = mount.serve(&service(calculator()).limits(limits)).await;
        let first = Client::opened(&service).await;
        let _second = Client::opened(&service).await;
        for _ in 0..3 {
            let refused = status(&service, local("GET", "/sse"), "").await;
            assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
        }
        drop(first);
        // The place is free as soon as the task that served the stream has noticed that.
        while status(&service, local("GET", "/sse"), "").await != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    }
}

// Attack: resource exhaustion.
#[tokio::test(start_paused = true)]
async fn reading_pauses_for_client_that_does_not_read() {
    const CALLS: i64 = 100;
    let long = Tool::new("long", "Say much", || async { "x".repeat(10_000) });
    let limits = Limits::default().max_unsent_bytes(30_000);
    let mut client = Client::opened(&service(calculator().tool(long).limits(limits))).await;
    let mut taken = 0;
    let mut message = call(taken, "long", &json!({}));
    while let Ok(status) = timeout(Duration::from_secs(5), client.post(&message)).await {
        assert_eq!(status, StatusCode::ACCEPTED);
        taken += 1;
        assert!(taken < 1_000, "all is taken, though nothing is read");
        // Long messages, so that those that wait to be served fill their queue.
        message = call(taken, "long", &json!({"padding": "x".repeat(5_000)}));
    }
    assert!(taken > 3, "{taken}");
    for id in 0..taken {
        let answer = client.message().await;
        assert_eq!(answer["id"], id);
    }
    for id in 0..CALLS {
        let answer = client.ask(call(id, "long", &json!({}))).await;
        assert_eq!(text(&answer).len(), 10_000);
    }
}

// Attack: resource exhaustion.
#[tokio::test]
async fn message_over_the_servers_limit_gets_an_error() {
    for mount in mounts!() {
        let limits = Limits::default().max_message_bytes(200);
        let mut client =
            Client::open(&mount.serve(&service(calculator().limits(limits))).await).await;
        let answer = client
            .ask(call(1, "add", &json!({"a": "x".repeat(200)})))
            .await;
        assert_eq!(answer["error"]["code"], -32700);
        assert_eq!(client.ask(ping(2)).await["id"], 2);
    }
}

#[tokio::test]
async fn modern_revisions_are_refused_over_2024_transport() {
    let service = service(calculator());
    let mut client = Client::opened(&service).await;
    for method in ["tools/list", "server/discover"] {
        let refused = client.ask(modern(7, method, json!({}))).await;
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        let supported = refused["error"]["data"]["supported"].to_string();
        assert!(
            supported.contains("2025-11-25") && !supported.contains("2026"),
            "{supported}"
        );
    }
    let answer = client.ask(ping(8)).await;
    assert_eq!(answer["result"], json!({}));
}

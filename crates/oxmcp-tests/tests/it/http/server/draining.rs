//! Requests that come while an endpoint closes: all are served, because most clients do not repeat a request that was refused.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use oxmcp::{Limits, Server, Tool, http::StreamableHttp};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::Notify, task::yield_now, time::timeout};

use crate::{
    http::{
        mounts::Mountable,
        server::{
            legacy::endpoint,
            peer::{
                Events, LEGACY, Session, builder, call_modern, initialize, json, modern_builder,
                send,
            },
        },
    },
    support::{calculator, modern, request},
};

/// A server with a tool that waits to be released.
fn waiting(release: &Arc<Notify>) -> Server {
    let release = Arc::clone(release);
    calculator().tool(Tool::new("wait", "Wait to be released", move || {
        let release = Arc::clone(&release);
        async move {
            release.notified().await;
            "done"
        }
    }))
}

fn call_wait() -> Value {
    json!({"name": "wait", "arguments": {}})
}

async fn while_closing<T>(endpoint: &StreamableHttp, act: impl Future<Output = T>) -> T {
    let closing = endpoint.clone();
    let closing = tokio::spawn(async move { closing.close().await });
    yield_now().await;
    let done = act.await;
    assert!(!closing.is_finished());
    done
}

/// The connections belong to a framework, which keeps them open.
#[tokio::test(start_paused = true)]
async fn requests_are_served_while_the_endpoint_closes() {
    for is_modern in [false, true] {
        let release = Arc::new(Notify::new());
        let endpoint = endpoint(&waiting(&release));
        let (busy, idle) = (
            Session::open(&endpoint).await,
            Session::open(&endpoint).await,
        );
        let calling = async {
            if is_modern {
                call_modern(&endpoint, "tools/call", call_wait()).await
            } else {
                busy.call(7, "tools/call", call_wait()).await
            }
        };
        let served = while_closing(&endpoint, async {
            for session in [&busy, &idle] {
                let answer = session.call(1, "tools/list", json!({})).await;
                assert_eq!(answer.status(), StatusCode::OK);
                assert_eq!(answer.headers()["connection"], "close");
            }
            let modern = call_modern(&endpoint, "tools/list", json!({})).await;
            assert_eq!(modern.status(), StatusCode::OK);
            let opened = Session::open(&endpoint).await;
            assert!(
                json(opened.call(1, "tools/list", json!({})).await).await["result"].is_object()
            );
            release.notify_one();
        });
        let (answer, ()) = tokio::join!(calling, served);
        assert_eq!(json(answer).await["result"]["content"][0]["text"], "done");
    }
}

#[tokio::test(start_paused = true)]
async fn question_is_answered_while_the_endpoint_closes() {
    let server =
        Server::new("roots", "1").tool(Tool::new(
            "roots",
            "Count",
            |cx: oxmcp::RequestContext| async move {
                Ok::<_, oxmcp::ToolError>(cx.roots().await?.len())
            },
        ));
    let endpoint = endpoint(&server);
    let session = Session::open_in(&endpoint, LEGACY, json!({"roots": {}})).await;
    let params = json!({"name": "roots", "arguments": {}});
    let asked = session.call(7, "tools/call", params).await;
    let mut events = Events::of(asked);
    let id = loop {
        let event = events.next().await.unwrap();
        if event.data["method"] == "roots/list" {
            break event.data["id"].clone();
        }
    };
    while_closing(&endpoint, async {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}});
        assert_eq!(session.post(&answer).await.status(), StatusCode::ACCEPTED);
    })
    .await;
    let last = events.rest().await.pop().unwrap();
    assert_eq!(last.data["result"]["content"][0]["text"], "0");
}

/// One connection to an address, which is kept open.
async fn connect(address: std::net::SocketAddr) -> http1::SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn over(
    sender: &mut http1::SendRequest<Full<Bytes>>,
    builder: http::request::Builder,
    message: &Value,
) -> Response<Incoming> {
    let body = Full::new(Bytes::from(message.to_string()));
    let request: Request<_> = builder.body(body).unwrap();
    sender.send_request(request).await.unwrap()
}

#[tokio::test]
async fn idle_connection_is_served_once_more_while_closing() {
    let server = calculator();
    let endpoint = endpoint(&server).limits(Limits::default().drain(Duration::from_secs(3600)));
    let serving = Arc::new(Mountable::serve(&endpoint).await);
    let address = serving.local_addr();
    let (mut legacy, mut modern_client) = (connect(address).await, connect(address).await);
    let opened = over(&mut legacy, builder("POST"), &initialize(LEGACY, json!({}))).await;
    assert!(!opened.headers().contains_key("connection"));
    let id = opened.headers()["mcp-session-id"].clone();
    let list = modern(1, "tools/list", json!({}));
    over(&mut modern_client, modern_builder(&list), &list).await;
    drop(opened);
    let closing = tokio::spawn({
        let serving = Arc::clone(&serving);
        async move { serving.close().await }
    });
    // A balancer is refused, and takes another node.
    while TcpStream::connect(address).await.is_ok() {
        yield_now().await;
    }
    let in_session = builder("POST").header("mcp-session-id", id);
    let list_legacy = request(2, "tools/list", json!({}));
    legacy.ready().await.unwrap();
    let answers = [
        over(&mut legacy, in_session, &list_legacy).await,
        over(&mut modern_client, modern_builder(&list), &list).await,
    ];
    for answer in answers {
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["connection"], "close");
    }
    timeout(Duration::from_secs(60), closing)
        .await
        .expect("nothing is left to wait for")
        .unwrap();
    assert_eq!(server.sessions().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn closed_endpoint_still_serves_late_requests() {
    let endpoint = endpoint(&calculator()).limits(Limits::default().drain(Duration::from_secs(1)));
    endpoint.close().await;
    let modern = call_modern(&endpoint, "tools/list", json!({})).await;
    assert_eq!(modern.status(), StatusCode::OK);
    let opened = initialize(LEGACY, json!({})).to_string();
    let opened = send(&endpoint, builder("POST"), opened).await;
    assert_eq!(opened.status(), StatusCode::OK);
}

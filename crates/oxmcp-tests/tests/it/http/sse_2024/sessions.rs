//! Sessions of clients that follow the rules: through the service, through a custom router, and over sockets.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::join_all;
use oxmcp::{
    Principal, RequestContext, Tool,
    http::{SseInbox, SseTransport},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{http::sse_2024::*, support::text};

#[tokio::test(start_paused = true)]
async fn stream_begins_with_post_url_and_delivers_answers() {
    for revision in LEGACY {
        let mut client = Client::open(&service(calculator())).await;
        client.initialize(revision).await;
        let answer = client.ask(call(1, "add", &json!({"a": 1, "b": 2}))).await;
        assert_eq!((&answer["id"], text(&answer)), (&json!(1), "3.0"));
    }
}

#[tokio::test(start_paused = true)]
async fn stream_headers_and_events_follow_the_specification() {
    let service = service(calculator());
    let response = respond(&service, local("GET", "/sse"), "").await;
    let headers = response.headers().clone();
    assert_eq!(headers["content-type"], "text/event-stream");
    assert_eq!(headers["cache-control"], "no-cache, no-transform");
    assert_eq!(headers["x-accel-buffering"], "no");
    let mut client = Client::of(&service, response.into_body()).await;
    let id = client.endpoint.strip_prefix("?sessionId=").unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let accepted = respond(&service, local_post(&client.uri()), ping(1).to_string()).await;
    assert_eq!(accepted.status(), StatusCode::ACCEPTED);
    assert_eq!(accepted.into_body().collect().await.unwrap().to_bytes(), "");
    let block = client.block().await.unwrap();
    assert_eq!(
        block,
        r#"event: message
data: {"jsonrpc":"2.0","id":1,"result":{}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn post_url_is_configurable() {
    let service = service(calculator()).messages("/messages");
    let mut client = Client::open(&service).await;
    assert!(client.endpoint.starts_with("/messages?sessionId="));
    client.initialize(Revision::V2024_11_05).await;
}

#[tokio::test(start_paused = true)]
async fn callback_chooses_the_server_per_session() {
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    let server = calculator();
    let service = LegacySse::new(move |parts| {
        count.fetch_add(1, Ordering::SeqCst);
        let is_special = parts.uri.path() == "/special";
        is_special
            .then(|| Server::new("special", "1.0.0"))
            .or_else(|| (parts.uri.path() == "/sse").then(|| server.clone()))
    });
    let mut client = Client::open(&service).await;
    let plain = client.initialize(Revision::V2024_11_05).await;
    assert_eq!(plain["result"]["serverInfo"]["name"], "calculator");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let mut client = Client::open_by(&service, local("GET", "/special")).await;
    let special = client.initialize(Revision::V2024_11_05).await;
    assert_eq!(special["result"]["serverInfo"]["name"], "special");
    let nobody = status(&service, local("GET", "/nobody"), "").await;
    assert_eq!(nobody, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn misconfigured_server_opens_no_session() {
    let wrong = calculator().tool(Tool::new("", "Has no name", || async {}));
    let service = service(wrong);
    let status = status(&service, local("GET", "/sse"), "").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(format!("{service:?}").contains("sessions: 0"));
}

// Attack: a response that reaches another client.
#[tokio::test]
async fn answers_reach_their_client_whatever_the_ids() {
    for mount in mounts!() {
        let service = mount.serve(&service(calculator())).await;
        let clients = join_all((0..20).map(|_| Client::opened(&service))).await;
        let ids: HashSet<_> = clients.iter().map(|it| it.endpoint.clone()).collect();
        assert_eq!(ids.len(), 20);
        let asking = clients
            .into_iter()
            .enumerate()
            .map(|(number, mut client)| async move {
                for id in 0..10 {
                    let answer = client
                        .ask(call(id, "add", &json!({"a": number, "b": 0.5})))
                        .await;
                    let sum = format!("{number}.5");
                    assert_eq!((&answer["id"], text(&answer)), (&json!(id), &*sum));
                }
            });
        join_all(asking).await;
    }
}

// Attack: session hijacking.
#[tokio::test]
async fn session_belongs_to_the_principal_that_opened_it() {
    for mount in mounts!() {
        let service = mount.serve(&service(calculator())).await;
        let of = |request: Builder, name: Option<&str>| match name {
            Some(name) => request.extension(Principal::new(name.to_owned())),
            None => request,
        };
        for owner in [Some("alice"), None] {
            let client = Client::open_by(&service, of(local("GET", "/sse"), owner)).await;
            for other in [Some("alice"), Some("bob"), None] {
                let request = of(local_post(&client.uri()), other);
                let status = status(&service, request, ping(1).to_string()).await;
                let expected = if owner == other {
                    StatusCode::ACCEPTED
                } else {
                    StatusCode::NOT_FOUND
                };
                assert_eq!(status, expected, "{owner:?} {other:?}");
            }
        }
    }
}

/// The server's request comes over the stream of the client, and the answer by POST.
#[tokio::test(start_paused = true)]
async fn server_can_ask_the_client() {
    let asks = Tool::new("asks", "Ping the client", |cx: RequestContext| async move {
        cx.server_session().unwrap().ping().await.unwrap();
        "it lives"
    });
    let mut client = Client::opened(&service(calculator().tool(asks))).await;
    let question = client.ask(call(1, "asks", &json!({}))).await;
    assert_eq!(question["method"], "ping");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {}});
    let result = client.ask(answer).await;
    assert_eq!(text(&result), "it lives");
}

#[tokio::test(start_paused = true)]
async fn changes_are_notified_on_the_stream() {
    let server = calculator();
    let mut client = Client::opened(&service(server.clone())).await;
    server.remove_tools(["add"]);
    let told = client.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn silent_stream_sends_keep_alives() {
    let mut client = Client::opened(&service(calculator())).await;
    for _ in 0..3 {
        let start = tokio::time::Instant::now();
        assert_eq!(client.block().await.unwrap(), ": keep-alive");
        assert_eq!(start.elapsed().as_secs(), 15);
    }
    assert_eq!(client.ask(ping(1)).await["id"], 1);
}

// Attack: malformed input that ends a process.
#[tokio::test]
async fn invalid_messages_are_answered_and_session_survives() {
    for mount in mounts!() {
        let mut client = Client::opened(&mount.serve(&service(calculator())).await).await;
        for (body, code) in [("{}\n{}", -32700), ("{", -32700), ("{}", -32600)] {
            let posted = status(&client.service, local_post(&client.uri()), body).await;
            assert_eq!(posted, StatusCode::ACCEPTED);
            assert_eq!(client.message().await["error"]["code"], code, "{body}");
        }
        let spread = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1, \"method\": \"ping\"\n}\n";
        status(&client.service, local_post(&client.uri()), spread).await;
        assert_eq!(client.message().await["id"], 1);
    }
}

/// The next text of a stream, or `None` at its end.
async fn next(body: &mut ResponseBody) -> Option<String> {
    let frame = timeout(TIME_LIMIT, body.frame())
        .await
        .expect("nothing comes")?;
    let data = frame.unwrap().into_data().unwrap();
    Some(String::from_utf8(data.to_vec()).unwrap())
}

async fn connected() -> (oxmcp::ServerSession, SseInbox, ResponseBody) {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    let session = calculator().connect(transport).await.unwrap();
    (session, inbox, response.into_body())
}

#[tokio::test(start_paused = true)]
async fn session_consists_of_transport_inbox_and_response() {
    let (session, inbox, mut body) = connected().await;
    let first = next(&mut body).await.unwrap();
    assert_eq!(first, "event: endpoint\ndata: /messages/7\n\n");
    inbox.post(ping(1).to_string()).await.unwrap();
    let second = next(&mut body).await.unwrap();
    assert!(second.starts_with("event: message\ndata: {") && second.ends_with("}\n\n"));
    session.close().await.unwrap();
    assert_eq!(next(&mut body).await, None);
    assert!(inbox.post("{}").await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn dropped_stream_ends_the_session() {
    let (session, inbox, body) = connected().await;
    drop(body);
    session.wait().await.unwrap();
    assert!(inbox.post("{}").await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn dropped_inbox_ends_session_after_pending_answers() {
    let (session, inbox, mut body) = connected().await;
    inbox.post(ping(1).to_string()).await.unwrap();
    drop(inbox);
    session.wait().await.unwrap();
    next(&mut body).await.unwrap();
    assert!(next(&mut body).await.unwrap().contains("\"id\":1"));
    assert_eq!(next(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn never_connected_session_expires() {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    drop(transport);
    let mut body = response.into_body();
    next(&mut body).await.unwrap();
    assert_eq!(next(&mut body).await, None);
    assert!(inbox.post("{}").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn messages_posted_before_disconnect_are_handled() {
    let (transport, inbox, response) = SseTransport::open("/messages/7");
    inbox.post(ping(1).to_string()).await.unwrap();
    drop(response);
    let session = calculator().connect(transport).await.unwrap();
    // The answer has no recipient.
    let error = session.wait().await.unwrap_err();
    assert!(
        error.message().contains("closed its event stream"),
        "{error}"
    );
}

/// Reads until `text` has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let byte = timeout(Duration::from_secs(60), stream.read_u8()).await;
        read.push(byte.expect("it does not come").unwrap());
    }
    String::from_utf8(read).unwrap()
}

#[tokio::test]
async fn address_is_served_until_it_is_closed() {
    let serving = service(calculator()).serve("127.0.0.1:0").await.unwrap();
    let address = serving.local_addr();
    let mut get = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /sse HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
    get.write_all(head.as_bytes()).await.unwrap();
    let begun = read_until(&mut get, "\n\n").await;
    let (_, endpoint) = begun.split_once("data: ").unwrap();

    let mut post = TcpStream::connect(address).await.unwrap();
    for id in 1..3 {
        let body = ping(id).to_string();
        let request = format!(
            "POST /sse{} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            endpoint.trim_end(),
            body.len(),
        );
        post.write_all(request.as_bytes()).await.unwrap();
        read_until(&mut post, "HTTP/1.1 202 Accepted\r\n").await;
        read_until(&mut post, "\r\n\r\n").await;
        read_until(&mut get, &format!("\"id\":{id},")).await;
    }
    drop(post);
    // An idle connection would stay until the end of the drain.
    let leaving = async move {
        read_until(&mut get, "\r\n0\r\n\r\n").await;
    };
    tokio::join!(serving.close(), leaving);
    assert!(TcpStream::connect(address).await.is_err());
}

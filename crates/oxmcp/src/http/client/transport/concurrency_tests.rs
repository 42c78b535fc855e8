//! Requests to servers of HTTP/2 that accept few at once, or refuse them.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::{
    client::proxy::matcher::Matcher,
    rt::{TokioExecutor, TokioIo},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use crate::http::client::transport::{
    connection::Connection, connector::Connector, default_client::DefaultClient,
    http_client::HttpClient, tls_roots::TlsRoots,
};

/// The time after which a test fails because an expected event is missing.
const DEADLINE: Duration = Duration::from_secs(60);

fn speaking_http2() -> DefaultClient {
    let mut connector = Connector::new(TlsRoots::none(), Matcher::builder().build());
    connector.speaks_http2 = true;
    DefaultClient::with_connector(connector)
}

/// A server that answers one `/call` for each `/answer` that it has received, and accepts `streams` requests at once on each of at
/// most `connections` connections.
async fn server(streams: u32, connections: usize) -> (DefaultClient, Uri, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    tokio::spawn(async move {
        let answers = Arc::new(Semaphore::new(0));
        for _ in 0..connections {
            let (socket, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let answers = Arc::clone(&answers);
            let service = service_fn(move |request: Request<Incoming>| {
                let answers = Arc::clone(&answers);
                async move {
                    match request.uri().path() {
                        "/call" => answers.acquire().await.unwrap().forget(),
                        "/answer" => answers.add_permits(1),
                        _ => {}
                    }
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.max_concurrent_streams(streams);
            tokio::spawn(server.serve_connection(TokioIo::new(socket), service));
        }
    });
    (speaking_http2(), uri.parse().unwrap(), made)
}

async fn send(client: &DefaultClient, uri: &Uri, path: &str) {
    let request = Request::post(format!("{uri}{path}"));
    let request = request.body(Bytes::new()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body();
    assert_eq!(body.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn answers_do_not_queue_behind_waiting_calls() {
    let (client, uri, made) = server(2, usize::MAX).await;
    send(&client, &uri, "hello").await;
    let calls = join_all((0..5).map(|_| send(&client, &uri, "call")));
    let answers = async {
        for _ in 0..5 {
            send(&client, &uri, "answer").await;
        }
    };
    let all = async { tokio::join!(calls, answers) };
    timeout(DEADLINE, all).await.expect("it hangs");
    let made = made.load(Ordering::Relaxed);
    assert!((2..=5).contains(&made), "{made} connections were opened");
}

#[tokio::test]
async fn requests_wait_when_no_connection_can_be_opened() {
    let (client, uri, made) = server(2, 1).await;
    send(&client, &uri, "answer").await;
    let all = join_all((0..5).map(|_| async {
        send(&client, &uri, "hello").await;
    }));
    let all = async { tokio::join!(send(&client, &uri, "call"), all) };
    timeout(DEADLINE, all).await.expect("it hangs");
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

/// A function that makes the frame in answer to a stream.
type Answer<'a> = &'a dyn Fn(u32) -> Vec<u8>;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

/// Begins to speak HTTP/2 with a client.
async fn begin(socket: &mut TcpStream, settings: &[u8]) {
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await.unwrap();
    let settings = frame(SETTINGS, 0, 0, settings);
    socket.write_all(&settings).await.unwrap();
}

/// The stream of the next frame of this kind. `None` at the end.
async fn next(socket: &mut TcpStream, kind: u8) -> Option<u32> {
    let mut head = [0; 9];
    loop {
        socket.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut payload).await.ok()?;
        if head[3] == kind {
            return Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        }
    }
}

/// Answers each request with 204, but the second one with the frame of `second`. Nothing follows that frame if `is_last`.
async fn serve(mut socket: TcpStream, second: Answer<'_>, is_last: bool) {
    begin(&mut socket, &[]).await;
    let mut requests = 0;
    while let Some(stream) = next(&mut socket, HEADERS).await {
        requests += 1;
        let answer = match requests {
            2 => second(stream),
            // The flags end the headers and the stream.
            _ => frame(HEADERS, 5, stream, &[0x89]),
        };
        let _ = socket.write_all(&answer).await;
        if requests == 2 && is_last {
            let _ = socket.shutdown().await;
        }
    }
}

/// Answers the first request with 204, and refuses all others.
async fn refuse(mut socket: TcpStream) -> usize {
    begin(&mut socket, &[]).await;
    let mut requests = 0;
    while let Some(stream) = next(&mut socket, HEADERS).await {
        requests += 1;
        let answer = match requests {
            1 => frame(HEADERS, 5, stream, &[0x89]),
            _ => reset(7)(stream),
        };
        socket.write_all(&answer).await.unwrap();
    }
    requests
}

#[tokio::test]
async fn refusing_connection_is_not_reused_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = speaking_http2();
    let server = async {
        let (first, _) = listener.accept().await.unwrap();
        let second = async { refuse(listener.accept().await.unwrap().0).await };
        tokio::join!(refuse(first), second)
    };
    let asking = async {
        for _ in 0..2 {
            let request = Request::post(&url).body(Bytes::new()).unwrap();
            assert_eq!(client.send(request).await.unwrap().status(), 204);
        }
        drop(client);
    };
    let both = async { tokio::join!(server, asking).0 };
    assert_eq!(timeout(DEADLINE, both).await.unwrap(), (2, 1));
}

/// Makes two requests, and returns the outcome of the second one.
async fn ask_twice(second: Answer<'_>, is_last: bool) -> crate::error::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = speaking_http2();
    let server = async {
        let mut serving = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => serving.push(serve(accepted.unwrap().0, second, is_last)),
                Some(()) = serving.next() => {}
            }
        }
    };
    let ask = || client.send(Request::post(&url).body(Bytes::new()).unwrap());
    let asking = async {
        assert_eq!(ask().await.unwrap().status(), 204);
        Ok(ask().await?.status().as_u16())
    };
    tokio::select! {
        () = server => panic!("it serves forever"),
        asked = timeout(DEADLINE, asking) => asked.unwrap(),
    }
}

fn reset(reason: u32) -> impl Fn(u32) -> Vec<u8> {
    move |stream| frame(RESET, 0, stream, &reason.to_be_bytes())
}

/// A GOAWAY frame that names, as the last request that was served, the one that came `before` requests earlier.
fn go_away(reason: u32, before: u32) -> impl Fn(u32) -> Vec<u8> {
    move |stream| {
        let last = stream - 2 * before;
        frame(
            GO_AWAY,
            0,
            0,
            &[last, reason].map(u32::to_be_bytes).concat(),
        )
    }
}

#[tokio::test]
async fn only_unserved_requests_are_sent_again() {
    let served: [Answer<'_>; 3] = [&reset(7), &go_away(0, 1), &go_away(11, 1)];
    for (row, second) in served.into_iter().enumerate() {
        let answer = ask_twice(second, false).await;
        assert!(
            answer.as_ref().is_ok_and(|it| *it == 204),
            "{row}: {answer:?}"
        );
    }
    let unknown: [(Answer<'_>, bool, &str); 5] = [
        (&reset(2), false, "reset the request (INTERNAL_ERROR"),
        (&reset(11), false, "reset the request (ENHANCE_YOUR_CALM"),
        (
            &go_away(11, 0),
            true,
            "closed the connection (ENHANCE_YOUR_CALM",
        ),
        (&go_away(0, 0), true, "broken pipe"),
        (&|_| Vec::new(), true, "broken pipe"),
    ];
    for (second, is_last, why) in unknown {
        let error = ask_twice(second, is_last).await.unwrap_err();
        assert!(!error.is_unreachable() && error.is_network(), "{error}");
        assert!(error.message().contains(why), "{error}");
        let is_told = why == "broken pipe"
            || error
                .message()
                .contains("retry only if the call is idempotent");
        assert!(is_told, "{error}");
    }
}

#[tokio::test]
async fn queued_request_fails_when_the_connection_ends() {
    /// Settings that allow one request at once.
    const ONE: [u8; 6] = [0, 3, 0, 0, 0, 1];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        begin(&mut socket, &ONE).await;
        let stream = next(&mut socket, HEADERS).await.unwrap();
        let said = [go_away(0, 0)(stream), frame(HEADERS, 5, stream, &[0x89])];
        socket.write_all(&said.concat()).await.unwrap();
        next(&mut socket, HEADERS).await
    };
    let asking = async {
        let uri: Uri = url.parse().unwrap();
        let mut connector = Connector::new(TlsRoots::none(), Matcher::builder().build());
        connector.speaks_http2 = true;
        let socket = connector.connect(uri.clone()).await.unwrap();
        let mut first = Connection::open(socket, &uri).await.unwrap();
        let mut second = first.share().unwrap();
        let request = || Request::get(&uri).body(Full::default()).unwrap();
        let (answer, waiting) = tokio::join!(first.send(request()), second.send(request()));
        assert_eq!(answer.unwrap().status(), 204);
        let failed = waiting.unwrap_err();
        second.explain(failed.error()).await
    };
    let both = async { tokio::join!(server, asking) };
    let (third, why) = timeout(DEADLINE, both).await.unwrap();
    assert_eq!(third, None);
    assert!(
        why.contains("the connection ended; the request may have been processed"),
        "{why}"
    );
}

#[tokio::test]
async fn request_with_unsent_body_can_be_cancelled() {
    /// Settings without a window for bodies.
    const CLOSED: [u8; 6] = [0, 4, 0, 0, 0, 0];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = speaking_http2();
    let request = Request::post(&url).body(Bytes::from(vec![b' '; 1 << 20]));
    let asking = client.send(request.unwrap());
    let server = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        begin(&mut socket, &CLOSED).await;
        let stream = next(&mut socket, HEADERS).await;
        (socket, stream)
    };
    let (mut socket, stream) = tokio::select! {
        _ = asking => panic!("it is not answered"),
        begun = server => begun,
    };
    let given_up = timeout(DEADLINE, next(&mut socket, RESET)).await;
    assert_eq!(given_up.unwrap(), stream);
}

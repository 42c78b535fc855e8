//! Requests to servers of HTTP/2 that take few at once, or refuse them.

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

use super::{
    connector::Connector, default_client::DefaultClient, http_client::HttpClient, trust::Trust,
};

/// Whoever waits for longer waits in vain.
const PATIENCE: Duration = Duration::from_secs(20);

fn speaking_http2() -> DefaultClient {
    let mut connector = Connector::new(Trust::nobody(), Matcher::builder().build());
    connector.speaks_http2 = true;
    DefaultClient::over(connector)
}

/// A server that answers as many calls as were answered themselves, and takes `streams` requests at once on each of
/// `connections`.
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
async fn what_calls_wait_for_does_not_wait_for_them() {
    let (client, uri, made) = server(2, usize::MAX).await;
    send(&client, &uri, "hello").await;
    let calls = join_all((0..5).map(|_| send(&client, &uri, "call")));
    let answers = async {
        for _ in 0..5 {
            send(&client, &uri, "answer").await;
        }
    };
    let all = async { tokio::join!(calls, answers) };
    timeout(PATIENCE, all).await.expect("nobody waits for ever");
    let made = made.load(Ordering::Relaxed);
    assert!((2..=5).contains(&made), "{made} connections were opened");
}

#[tokio::test]
async fn where_there_is_no_other_connection_requests_wait_for_room() {
    let (client, uri, made) = server(2, 1).await;
    send(&client, &uri, "answer").await;
    let all = join_all((0..5).map(|_| async {
        send(&client, &uri, "hello").await;
    }));
    let all = async { tokio::join!(send(&client, &uri, "call"), all) };
    timeout(PATIENCE, all).await.expect("nobody waits for ever");
    assert_eq!(made.load(Ordering::Relaxed), 1);
}

/// Makes the frame that answers a stream.
type Answer<'a> = &'a dyn Fn(u32) -> Vec<u8>;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

/// Answers each request with 204, but the second one with this frame of its stream.
async fn serve(mut socket: TcpStream, second: Answer<'_>) {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let mut preface = [0; 24];
    socket.read_exact(&mut preface).await.unwrap();
    let settings = frame(SETTINGS, 0, 0, &[]);
    socket.write_all(&settings).await.unwrap();
    let mut requests = 0;
    let mut head = [0; 9];
    while socket.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut payload).await.unwrap();
        if head[3] != HEADERS {
            continue;
        }
        requests += 1;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let answer = match requests {
            2 => second(stream),
            // It ends the headers and the stream.
            _ => frame(HEADERS, 5, stream, &[0x89]),
        };
        let _ = socket.write_all(&answer).await;
    }
}

#[tokio::test]
async fn only_what_was_refused_is_sent_again() {
    const RESET: u8 = 3;
    const GO_AWAY: u8 = 7;
    let reset = |reason: u32| move |stream| frame(RESET, 0, stream, &reason.to_be_bytes());
    // The one before is the last that was served.
    let go_away = |reason: u32| {
        move |stream: u32| {
            let said = [stream - 2, reason].map(u32::to_be_bytes).concat();
            frame(GO_AWAY, 0, 0, &said)
        }
    };
    let table: [(Answer<'_>, bool); 4] = [
        (&reset(7), true),
        (&reset(2), false),
        (&go_away(0), true),
        (&go_away(11), false),
    ];
    for (row, (second, is_served)) in table.into_iter().enumerate() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let client = speaking_http2();
        let server = async {
            let mut serving = FuturesUnordered::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => serving.push(serve(accepted.unwrap().0, second)),
                    Some(()) = serving.next() => {}
                }
            }
        };
        let ask = || client.send(Request::post(&url).body(Bytes::new()).unwrap());
        let asking = async {
            assert_eq!(ask().await.unwrap().status(), 204);
            let answer = ask().await;
            assert_eq!(answer.is_ok(), is_served, "{row}: {answer:?}");
            assert!(answer.is_ok_and(|it| it.status() == 204) || !is_served);
        };
        tokio::select! {
            () = server => {}
            asked = timeout(PATIENCE, asking) => asked.unwrap(),
        }
    }
}

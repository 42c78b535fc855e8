//! Harness of the tests: connections are pipes in memory, and the path of a request determines what the service does.

use std::{
    convert::Infallible,
    future::{Future, pending},
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex},
    sync::{Notify, mpsc},
    time::{Duration, sleep},
};
use tower_service::Service;

use crate::{
    http::server::{
        response::ResponseBody,
        serve::{
            accept::{Listener, run},
            serving::ServerHandle,
        },
    },
    limits::Limits,
};

pub(crate) type Accepted = io::Result<Recorded>;

/// A listener that accepts the connections that a test gives it.
pub(crate) struct Script {
    accepted: mpsc::Receiver<Accepted>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Script {
    pub(crate) fn new(accepted: mpsc::Receiver<Accepted>) -> Self {
        Self {
            accepted,
            asked: Arc::default(),
        }
    }
}

impl Listener for Script {
    type Io = Recorded;

    async fn accept(&mut self) -> Accepted {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            None => pending().await,
        }
    }

    fn close(mut self, max: usize) -> Vec<Recorded> {
        let waiting = std::iter::from_fn(|| self.accepted.try_recv().ok());
        waiting.flatten().take(max).collect()
    }
}

/// A pipe that records each write.
pub(crate) struct Recorded(DuplexStream, Arc<Mutex<Vec<String>>>);

impl Recorded {
    pub(crate) fn new(pipe: DuplexStream) -> Self {
        Self(pipe, Arc::default())
    }
}

impl AsyncRead for Recorded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Recorded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(cx, buf);
        if let Poll::Ready(Ok(length)) = &written {
            let text = String::from_utf8_lossy(&buf[..*length]).into_owned();
            self.1.lock().unwrap().push(text);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The service under test, whose behavior depends on the path of the request. It counts running requests.
#[derive(Clone, Default)]
pub(crate) struct Paths {
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) dropped: Arc<Notify>,
    pub(crate) go_on: Arc<Notify>,
}

pub(crate) struct Running(Paths);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        self.0.dropped.notify_one();
    }
}

impl Service<Request<Incoming>> for Paths {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        self.running.fetch_add(1, Ordering::SeqCst);
        let running = Running(self.clone());
        Box::pin(async move {
            let go_on = Arc::clone(&running.0.go_on);
            let body = match request.uri().path() {
                "/waits" => {
                    go_on.notified().await;
                    ResponseBody::full("waited")
                }
                "/panics" => panic!("as it should"),
                "/echo" => ResponseBody::full(request.collect().await.unwrap().to_bytes()),
                "/floods" => {
                    let chunk = Bytes::from_static(&[b'x'; 64 << 10]);
                    let _running = running;
                    ResponseBody::stream(stream::repeat(chunk).map(move |chunk| {
                        let _ = &_running;
                        chunk
                    }))
                }
                "/streams" => {
                    let first = stream::iter([Bytes::from_static(b"first ")]);
                    let rest = stream::once(async move {
                        go_on.notified().await;
                        drop(running);
                        Bytes::from_static(b"last")
                    });
                    ResponseBody::stream(first.chain(rest))
                }
                path => ResponseBody::full(path.to_owned()),
            };
            Ok(Response::new(body))
        })
    }
}

/// The address under test, with its connections and its service.
pub(crate) struct Tested {
    pub(crate) serving: Arc<ServerHandle>,
    pub(crate) paths: Paths,
    pub(crate) accepted: mpsc::Sender<Accepted>,
    pub(crate) asked: Arc<AtomicUsize>,
}

pub(crate) fn tested(limits: Limits) -> Tested {
    tested_until(limits, async {})
}

pub(crate) fn tested_until(
    limits: Limits,
    on_close: impl Future<Output = ()> + Send + 'static,
) -> Tested {
    let (sender, accepted) = mpsc::channel(16);
    let asked = Arc::<AtomicUsize>::default();
    let script = Script {
        asked: Arc::clone(&asked),
        ..Script::new(accepted)
    };
    let (serving, signal) = ServerHandle::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let paths = Paths::default();
    let on_close = |_| on_close;
    tokio::spawn(run(script, paths.clone(), limits, signal, on_close));
    Tested {
        serving: Arc::new(serving),
        paths,
        accepted: sender,
        asked,
    }
}

impl Tested {
    pub(crate) async fn connect(&self) -> Client {
        let (near, far) = duplex(1 << 20);
        let writes = Arc::default();
        let recorded = Recorded(far, Arc::clone(&writes));
        self.accepted.send(Ok(recorded)).await.unwrap();
        Client { near, writes }
    }

    pub(crate) async fn until_running(&self, count: usize) {
        while self.paths.running.load(Ordering::SeqCst) != count {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) struct Client {
    pub(crate) near: DuplexStream,
    pub(crate) writes: Arc<Mutex<Vec<String>>>,
}

impl Client {
    pub(crate) async fn send(&mut self, text: &str) {
        self.near.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn get(&mut self, path: &str) {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await;
    }

    /// Reads until the text has arrived.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut read = String::new();
        while !read.contains(text) {
            let byte = self.near.read_u8().await;
            let byte = byte.unwrap_or_else(|error| panic!("{error} after {read:?}"));
            read.push(char::from(byte));
        }
        read
    }

    /// The bytes that arrive until the other side closes.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.near.read_to_end(&mut rest).await.unwrap();
        String::from_utf8_lossy(&rest).into_owned()
    }
}

//! Round-robin load balancer over HTTP/1, without session affinity.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::Bytes,
    body::Incoming,
    client,
    header::{HeaderValue, RETRY_AFTER},
    server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

type Body = BoxBody<Bytes, hyper::Error>;

/// A handle to the proxy, which ends on drop.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    nodes: Arc<Nodes>,
    serving: AbortHandle,
}

struct Nodes {
    addresses: Mutex<Vec<SocketAddr>>,
    next: AtomicUsize,
}

impl Proxy {
    pub(super) async fn start(nodes: impl IntoIterator<Item = SocketAddr>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let nodes = Arc::new(Nodes {
            addresses: Mutex::new(nodes.into_iter().collect()),
            next: AtomicUsize::new(0),
        });
        let serving = tokio::spawn(accept(listener, Arc::clone(&nodes)));
        Self {
            address,
            nodes,
            serving: serving.abort_handle(),
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The number of requests so far.
    pub(super) fn requests(&self) -> usize {
        self.nodes.next.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, nodes: Arc<Nodes>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let nodes = Arc::clone(&nodes);
        let service = service_fn(move |request| {
            let nodes = Arc::clone(&nodes);
            async move { nodes.forward(request).await }
        });
        let connection = server::conn::http1::Builder::new();
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

impl Nodes {
    /// Forwards to the next reachable node. A request that may have started is not sent to another one.
    async fn forward(&self, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
        let addresses = self.addresses.lock().unwrap().clone();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for turn in 0..addresses.len() {
            let address = addresses[(first + turn) % addresses.len()];
            if let Ok(stream) = TcpStream::connect(address).await {
                return match send(stream, request).await {
                    Ok(response) => Ok(response.map(BodyExt::boxed)),
                    Err(_) => Ok(answer(StatusCode::BAD_GATEWAY)),
                };
            }
        }
        Ok(answer(StatusCode::SERVICE_UNAVAILABLE))
    }
}

async fn send(
    stream: TcpStream,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

fn answer(status: StatusCode) -> Response<Body> {
    let body = Empty::new().map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        // No node has received the request.
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(RETRY_AFTER, soon);
    }
    response
}

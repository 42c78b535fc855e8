//! Endpoints behind real connections: the SDK's own server and axum, each over HTTP/1 and HTTP/2.

use std::{convert::Infallible, error::Error, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, Uri, header::HOST, uri::Authority};
use http_body::Body;
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use oxmcp::{
    Principal,
    http::{LegacySse, ResponseBody, ServerHandle, StreamableHttp},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
    task::JoinSet,
};
use tower::{Service, ServiceExt};

use crate::http::attack_table;

/// The header that names the principal of a request to axum, from which a layer inserts the principal.
const PRINCIPAL: &str = "x-principal-of-the-test";

/// The mounts that the table of attacks lists for the test whose body contains this macro.
macro_rules! mounts {
    () => {{
        fn here() {}
        $crate::http::mounts::of_test(std::any::type_name_of_val(&here))
    }};
}
pub(crate) use mounts;

/// The way in which an endpoint is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    /// By the SDK's own server.
    Http1,
    Http2,
    /// As a service in axum.
    AxumHttp1,
    AxumHttp2,
}

/// The mounts of the test with this path.
pub(crate) fn of_test(path: &str) -> impl Iterator<Item = Mount> {
    attack_table::mounts_of(path).iter().map(|mount| {
        #[expect(clippy::print_stderr, reason = "a test that fails shows it")]
        {
            eprintln!("over {mount:?}");
        }
        *mount
    })
}

/// A receiver of requests: a service without a network, or a mounted endpoint.
pub(crate) trait Target: Clone {
    /// The response, or `None` if the connection or the stream ends without one.
    fn try_respond<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Option<Response<ResponseBody>>>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    async fn respond<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let response = self.try_respond(request).await;
        response.expect("the connection is cut")
    }
}

macro_rules! services {
    ($($service:ty),*) => {$(
        impl Target for $service {
            async fn try_respond<B>(&self, request: Request<B>) -> Option<Response<ResponseBody>>
            where
                B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
            {
                let Ok(response) = self.clone().oneshot(request).await;
                Some(response)
            }
        }

        impl Mountable for $service {
            async fn serve(&self) -> ServerHandle {
                self.serve("127.0.0.1:0").await.unwrap()
            }
        }
    )*};
}

services!(StreamableHttp, LegacySse);

/// An endpoint that can be mounted.
pub(crate) trait Mountable:
    Service<
        Request<axum::body::Body>,
        Response = Response<ResponseBody>,
        Error = Infallible,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + 'static
{
    async fn serve(&self) -> ServerHandle;
}

/// An endpoint that is served until this and its clones are dropped.
#[derive(Clone)]
pub(crate) struct Mounted {
    pub(crate) mount: Mount,
    pub(crate) address: SocketAddr,
    /// The connection that all requests over HTTP/2 share, for as long as it lasts.
    connection: Arc<Mutex<Option<http2::SendRequest<Sent>>>>,
    _server: Arc<Running>,
}

type Sent = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A running server, which stops when it is dropped.
enum Running {
    Own { _serving: ServerHandle },
    Axum { _task: JoinSet<()> },
}

impl Mount {
    pub(crate) fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::AxumHttp2)
    }

    pub(crate) fn is_axum(self) -> bool {
        matches!(self, Self::AxumHttp1 | Self::AxumHttp2)
    }

    pub(crate) async fn serve<E: Mountable>(self, endpoint: &E) -> Mounted {
        let (address, server) = if self.is_axum() {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let service = endpoint.clone().map_request(with_principal);
            let router = axum::Router::new().fallback_service(service);
            let mut task = JoinSet::new();
            task.spawn(async move { axum::serve(listener, router).await.unwrap() });
            (address, Running::Axum { _task: task })
        } else {
            let serving = endpoint.serve().await;
            (serving.local_addr(), Running::Own { _serving: serving })
        };
        Mounted {
            mount: self,
            address,
            connection: Arc::default(),
            _server: Arc::new(server),
        }
    }
}

/// Inserts the principal of a request, as a host's authentication does.
fn with_principal(mut request: Request<axum::body::Body>) -> Request<axum::body::Body> {
    if let Some(name) = request.headers_mut().remove(PRINCIPAL) {
        let principal = Principal::new(name.to_str().unwrap());
        request.extensions_mut().insert(principal);
    }
    request
}

impl Mounted {
    /// The request as it goes over the network.
    fn sendable<B>(&self, request: Request<B>) -> Request<Sent>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        if let Some(principal) = request.extensions_mut().remove::<Principal>() {
            assert!(self.mount.is_axum(), "no layer can name a principal");
            let name = principal.as_str().parse().unwrap();
            request.headers_mut().insert(PRINCIPAL, name);
        }
        if self.mount.is_http2() {
            name_authority(&mut request);
        }
        request
    }

    async fn over_http1(
        &self,
        request: Request<Sent>,
    ) -> hyper::Result<Response<hyper::body::Incoming>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        sender.send_request(request).await
    }

    async fn over_http2(
        &self,
        request: Request<Sent>,
    ) -> hyper::Result<Response<hyper::body::Incoming>> {
        let mut sender = {
            let mut connection = self.connection.lock().await;
            match connection.as_ref().filter(|it| !it.is_closed()) {
                Some(sender) => sender.clone(),
                None => {
                    let stream = TcpStream::connect(self.address).await.unwrap();
                    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
                    let (sender, driven) = handshake.await?;
                    tokio::spawn(driven);
                    connection.insert(sender).clone()
                }
            }
        };
        sender.ready().await?;
        sender.send_request(request).await
    }
}

/// Moves the host to `:authority`, as clients over HTTP/2 do, if there is a single valid one.
fn name_authority(request: &mut Request<Sent>) {
    if request.uri().authority().is_some() || request.headers().get_all(HOST).iter().count() != 1 {
        return;
    }
    let host = request.headers()[HOST].as_bytes();
    let Ok(authority) = Authority::try_from(host) else {
        return;
    };
    let mut parts = request.uri().clone().into_parts();
    parts.scheme = Some(http::uri::Scheme::HTTP);
    parts.authority = Some(authority);
    *request.uri_mut() = Uri::from_parts(parts).unwrap();
    request.headers_mut().remove(HOST);
}

impl Target for Mounted {
    async fn try_respond<B>(&self, request: Request<B>) -> Option<Response<ResponseBody>>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let request = self.sendable(request);
        let response = if self.mount.is_http2() {
            self.over_http2(request).await
        } else {
            self.over_http1(request).await
        };
        #[expect(clippy::print_stderr, reason = "a test that fails shows it")]
        let failed = |error| eprintln!("no response: {error:?}");
        let response = response.map_err(failed).ok()?;
        Some(response.map(|body| {
            ResponseBody::stream(stream::unfold(body, async |mut body| {
                let frame = body.frame().await?.ok()?;
                Some((frame.into_data().ok()?, body))
            }))
        }))
    }
}

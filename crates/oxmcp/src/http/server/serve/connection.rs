//! An HTTP/1 or HTTP/2 connection: one task that serves it from the first byte to the end and enforces all deadlines.
//!
//! The task drives hyper's connections directly, through the trait [`GracefulConnection`]. `GracefulShutdown` of hyper-util would
//! take ownership of them: an idle HTTP/2 connection could then not send GOAWAY, and connections whose HTTP version is still
//! unknown would not be included.

use std::{
    convert::Infallible,
    fmt::Display,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    select,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::{
    activity::{Activity, Exceeded, RequestGuard, Timeouts},
    preface::{self, Version},
};
use crate::http::server::response::ResponseBody;

/// The size of the read buffer, which is also the maximum length of a request's head: several times the limit of proxies.
const READ_AHEAD: usize = 64 << 10;
/// The same limit over HTTP/2, so that both versions accept the same heads.
const MAX_HEADERS: u32 = 64 << 10;
/// The interval and timeout of HTTP/2 pings to clients. Over HTTP/1, a dead client is detected when data is written.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A service for the requests of connections. It is always ready.
pub(crate) trait HttpService:
    Service<
        Request<Incoming>,
        Response = Response<ResponseBody>,
        Error = Infallible,
        Future: Send + Unpin + 'static,
    > + Clone
    + Send
    + 'static
{
}

impl<S> HttpService for S
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + Unpin + 'static,
{
}

/// The settings that all connections of an address share.
#[derive(Debug)]
pub(crate) struct Shared {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    timeouts: Timeouts,
    phases: Phases,
}

/// The phases of shutting down a served address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases {
    /// Cancelled when no more connections are accepted. HTTP/2 clients are told with GOAWAY, after which nothing that they have
    /// sent is lost. HTTP/1 has no such message: a request that arrives while an idle connection closes is lost. So idle
    /// connections stay open, and the service answers with `Connection: close`.
    pub(crate) draining: CancellationToken,
    /// Cancelled when connections must end after their requests in flight.
    pub(crate) closing: CancellationToken,
}

impl Shared {
    pub(crate) fn new(timeouts: Timeouts, phases: Phases) -> Arc<Self> {
        let mut http1 = http1::Builder::new();
        http1
            .max_buf_size(READ_AHEAD)
            // If the client closes its side, it has disconnected: dropping its request cancels the handler.
            .half_close(false);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_header_list_size(MAX_HEADERS);
        Arc::new(Self {
            http1,
            http2,
            timeouts,
            phases,
        })
    }
}

/// Serves the requests of a connection until it ends. Thousands of idle connections may each keep this future in memory.
pub(crate) async fn serve_connection<I, S>(io: I, service: S, shared: Arc<Shared>)
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: HttpService,
{
    let activity = Activity::new();
    let preface = select! {
        biased;
        preface = timeout(shared.timeouts.head, preface::read(io, activity.clone())) => preface,
        () = shared.phases.closing.cancelled() => return,
    };
    let Ok(Ok((version, io))) = preface else {
        tracing::debug!("connection closed before its first request");
        return;
    };
    let io = TokioIo::new(io);
    let service = TrackedService {
        service,
        activity: activity.clone(),
    };
    match version {
        Version::Http1 => {
            let connection = pin!(shared.http1.serve_connection(io, service));
            drive(connection, &activity, &shared, &shared.phases.closing).await;
        }
        Version::Http2 => {
            activity.is_http2();
            // Boxed because it is larger, and thousands of HTTP/1 connections share this future's size.
            let mut connection = Box::pin(shared.http2.serve_connection(io, service));
            let ends = &shared.phases.draining;
            drive(connection.as_mut(), &activity, &shared, ends).await;
        }
    }
}

/// Drives a connection to its end. It shuts down gracefully when it exceeds the idle timeout or `ends` is cancelled. If it exceeds
/// another timeout, it is dropped.
async fn drive<C>(
    mut connection: Pin<&mut C>,
    activity: &Activity,
    shared: &Shared,
    ends: &CancellationToken,
) where
    C: GracefulConnection<Error: Display>,
{
    let mut timer = pin!(sleep(shared.timeouts.head));
    let mut shuts_down = false;
    loop {
        select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection failed");
                }
                return;
            }
            () = ends.cancelled(), if !shuts_down => {}
            exceeded = poll_fn(|cx| activity.poll_exceeded(&shared.timeouts, timer.as_mut(), cx)) => {
                tracing::debug!(reason = %exceeded, "closing connection");
                if exceeded != Exceeded::Idle || shuts_down {
                    return;
                }
                // A request may be on its way, so it gets the same time again.
                activity.restart_idle();
            }
        }
        shuts_down = true;
        connection.as_mut().graceful_shutdown();
    }
}

/// A service that records its requests in the activity of their connection.
#[derive(Clone, Debug)]
struct TrackedService<S> {
    service: S,
    activity: Activity,
}

impl<S: HttpService> hyper::service::Service<Request<Incoming>> for TrackedService<S> {
    type Response = Response<TrackedBody>;
    type Error = Infallible;
    type Future = TrackedFuture<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        TrackedFuture {
            guard: Some(self.activity.begin_request()),
            future: self.service.clone().call(request),
        }
    }
}

/// The response to a request, whose guard moves into the response body.
struct TrackedFuture<F> {
    future: F,
    guard: Option<RequestGuard>,
}

impl<F> Future for TrackedFuture<F>
where
    F: Future<Output = Result<Response<ResponseBody>, Infallible>> + Unpin,
{
    type Output = Result<Response<TrackedBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(Pin::new(&mut self.future).poll(cx));
        let _guard = self.guard.take();
        if let Some(guard) = &_guard {
            response.body().on_stall(guard.activity());
        }
        Poll::Ready(Ok(response.map(|body| TrackedBody { body, _guard })))
    }
}

/// The body of a response. Its request counts as in flight until this is dropped.
struct TrackedBody {
    body: ResponseBody,
    _guard: Option<RequestGuard>,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

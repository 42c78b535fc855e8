//! One connection.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Buf;
use futures_util::future::Either;
use http::{Request, Response};
use http_body::Body;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    select,
    sync::oneshot,
    time::timeout,
};
use tower_service::Service;

use super::{
    heads::Heads,
    overdue::{HEAD, Signs},
    preface::{Version, begin},
};

/// How much is read ahead at most, which is also the longest head of a request: several times what proxies let through.
const READ_AHEAD: usize = 64 << 10;
/// How often clients over HTTP/2 are asked for a sign of life, and how long they have to give it. Over HTTP/1 what is
/// written finds out.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// What serves the requests of connections. It is ready always: nobody asks.
pub(crate) trait Serves:
    Service<
        Request<Incoming>,
        Response = Response<Self::Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    type Body: Body<Data: Buf + Send, Error: std::error::Error + Send + Sync> + Send + 'static;
}

impl<S, B> Serves for S
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data: Buf + Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    type Body = B;
}

/// How connections are spoken to: HTTP/1, and HTTP/2 with those that begin with its preface.
#[derive(Clone)]
pub(super) struct Protocols(Arc<Builders>);

struct Builders {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new() -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .header_read_timeout(HEAD)
            .max_buf_size(READ_AHEAD)
            // A client that closes its side has gone: so its request is dropped, which ends what is done for it.
            .half_close(false);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG);
        Self(Arc::new(Builders { http1, http2 }))
    }
}

/// Serves the requests of a connection, until it ends. Told to finish, it does so once the requests that it has are answered.
///
/// There may be thousands that wait, so that what only their beginning needs is in a box.
pub(super) fn attend<I, S>(
    io: I,
    service: S,
    protocols: Protocols,
    signs: Signs,
    finish: oneshot::Receiver<()>,
) -> impl Future<Output = ()> + Send
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Serves,
{
    let mut phase = Phase::Begins(Box::pin(protocols.begin(io, service, signs, finish)));
    poll_fn(move |cx| {
        loop {
            match &mut phase {
                Phase::Begins(begins) => match ready!(begins.as_mut().poll(cx)) {
                    Some(goes_on) => phase = Phase::GoesOn(goes_on),
                    None => return Poll::Ready(()),
                },
                Phase::GoesOn(goes_on) => return Pin::new(goes_on).poll(cx),
            }
        }
    })
}

/// How far a connection has come.
enum Phase<B, G> {
    Begins(Pin<Box<B>>),
    GoesOn(G),
}

impl Protocols {
    /// Finds out which version a client speaks. Returns who goes on with it.
    async fn begin<I, S>(
        self,
        io: I,
        service: S,
        signs: Signs,
        mut finish: oneshot::Receiver<()>,
    ) -> Option<impl Future<Output = ()> + Unpin + use<I, S>>
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Serves,
    {
        // Until it is known, nobody else looks at the clock.
        let begun = select! {
            biased;
            begun = timeout(HEAD, begin(io, signs.clone())) => begun,
            _ = &mut finish => return None,
        };
        let (version, io) = begun.ok()?.ok()?;
        Some(match version {
            Version::Http1 => Either::Left(self.http1(io, service, &signs.heads, finish)),
            // What it needs is larger, and nobody who speaks HTTP/1 should have to make room for it.
            Version::Http2 => Either::Right(Box::pin(self.http2(io, service, finish))),
        })
    }

    fn http1<I, S>(
        &self,
        io: I,
        service: S,
        heads: &Heads,
        finish: oneshot::Receiver<()>,
    ) -> impl Future<Output = ()> + Unpin + use<I, S>
    where
        I: AsyncRead + AsyncWrite + Unpin + 'static,
        S: Serves,
    {
        let mut http1 = self.0.http1.clone();
        http1.timer(heads.clone());
        let mut connection = http1.serve_connection(TokioIo::new(io), heads.heard_by(service));
        let mut finish = Some(finish);
        poll_fn(move |cx| {
            let shut_down = http1::Connection::graceful_shutdown;
            drive(Pin::new(&mut connection), shut_down, &mut finish, cx)
        })
    }

    async fn http2<I, S>(self, io: I, service: S, finish: oneshot::Receiver<()>)
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        S: Serves,
    {
        let service = TowerToHyperService::new(service);
        let connection = self.0.http2.serve_connection(TokioIo::new(io), service);
        let mut connection = pin!(connection);
        let mut finish = Some(finish);
        poll_fn(|cx| {
            let shut_down = http2::Connection::graceful_shutdown;
            drive(connection.as_mut(), shut_down, &mut finish, cx)
        })
        .await;
    }
}

/// Goes on with a connection to its end.
fn drive<C>(
    mut connection: Pin<&mut C>,
    shut_down: fn(Pin<&mut C>),
    finish: &mut Option<oneshot::Receiver<()>>,
    cx: &mut Context<'_>,
) -> Poll<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    if let Some(wanted) = finish
        && Pin::new(wanted).poll(cx).is_ready()
    {
        *finish = None;
        shut_down(connection.as_mut());
    }
    connection.poll(cx).map(|result| {
        if let Err(error) = result {
            tracing::debug!(%error, "a connection broke");
        }
    })
}

//! One connection.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use bytes::Buf;
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
    overdue::{HEAD, Writes, overdue},
    preface::{Version, begin},
};
use crate::Limits;

/// How much is read ahead at most, which is also the longest head of a request: several times what proxies let through.
const READ_AHEAD: usize = 64 << 10;
/// How often clients over HTTP/2 are asked for a sign of life, and how long they have to give it. Over HTTP/1 what is
/// written finds out.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// How connections are spoken to: HTTP/1, and HTTP/2 with those that begin with its preface.
#[derive(Clone)]
pub(super) struct Protocols(Arc<Builders>);

struct Builders {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    /// How long a client may take nothing of what is written to it.
    stall: Duration,
}

impl Protocols {
    pub(super) fn new(limits: &Limits) -> Self {
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
        Self(Arc::new(Builders {
            http1,
            http2,
            stall: limits.http_stall,
        }))
    }
}

/// Serves the requests of a connection, until it ends. Told to finish, it does so once the requests that it has are answered.
pub(super) async fn attend<I, S, B>(
    io: I,
    service: S,
    protocols: Protocols,
    mut finish: oneshot::Receiver<()>,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data: Buf + Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let writes = Writes::default();
    // Until it is known which version a client speaks, nobody else looks at the clock.
    let begun = select! {
        biased;
        begun = timeout(HEAD, begin(io, writes.clone())) => begun,
        _ = &mut finish => return,
    };
    let Ok(Ok((version, io))) = begun else {
        return;
    };
    let service = TowerToHyperService::new(service);
    let io = TokioIo::new(io);
    let stall = protocols.0.stall;
    match version {
        Version::Http1 => {
            let heads = Heads::new();
            let mut http1 = protocols.0.http1.clone();
            http1.timer(heads.clone());
            let connection = pin!(http1.serve_connection(io, heads.heard_by(service)));
            let driven = drive(connection, http1::Connection::graceful_shutdown, finish);
            unless(overdue(Some(&heads), &writes, stall), driven).await;
        }
        // What it needs is larger, and nobody who speaks HTTP/1 should have to make room for it.
        Version::Http2 => {
            let mut connection = Box::pin(protocols.0.http2.serve_connection(io, service));
            let shut_down = http2::Connection::graceful_shutdown;
            let driven = drive(connection.as_mut(), shut_down, finish);
            unless(overdue(None, &writes, stall), driven).await;
        }
    }
}

/// Goes on with a connection until it has had time enough.
async fn unless(overdue: impl Future<Output = &'static str>, driven: impl Future<Output = ()>) {
    select! {
        biased;
        () = driven => {}
        why = overdue => tracing::debug!("it is closed: {why}"),
    }
}

/// Goes on with a connection to its end.
async fn drive<C>(
    mut connection: Pin<&mut C>,
    shut_down: fn(Pin<&mut C>),
    mut finish: oneshot::Receiver<()>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut finishing = false;
    loop {
        select! {
            biased;
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            _ = &mut finish, if !finishing => {
                finishing = true;
                shut_down(connection.as_mut());
            }
        }
    }
}

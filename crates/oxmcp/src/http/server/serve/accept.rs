//! Accept loop of an address, which limits the number of connections and shuts them down gracefully.

use std::{
    convert::Infallible,
    future::Future,
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host},
    select,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    activity::Timeouts,
    connection::{HttpService, Shared, serve_connection},
    serving::{CloseSignal, Serving},
};
use crate::{
    error::{Error, Result},
    limits::Limits,
    session::task::{after, reached, spawn},
};

/// The pause of the accept loop after a failure, unless a connection ends earlier: mostly the process has no file descriptors left,
/// and retrying at once would keep a CPU core busy.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// The minimum time in which connections may send their pending data, if shutting down the service has taken all of the drain time.
const MIN_FLUSH: Duration = Duration::from_secs(1);

/// A source of connections.
pub(super) trait Listener: Send + 'static {
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Accepts the next connection. Cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Otherwise small writes wait for the peer's acknowledgement of earlier ones, which peers delay by 40 ms.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Listens on the first of these addresses on which that is possible.
///
/// # Errors
/// If there is none. The error names the addresses: two programs on one machine often use the same port.
pub(crate) async fn listen(addresses: impl ToSocketAddrs) -> Result<TcpListener> {
    let unresolved = |error: io::Error| {
        let why = match error.kind() {
            ErrorKind::InvalidInput => format!(
                "the address to listen on is no host with a port, like \"127.0.0.1:3000\": {error}"
            ),
            _ => format!("the name of the address to listen on cannot be resolved: {error}"),
        };
        Error::closed(why).with_source(error)
    };
    let addresses: Vec<_> = lookup_host(addresses).await.map_err(unresolved)?.collect();
    TcpListener::bind(&*addresses).await.map_err(|error| {
        let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let shown = shown.join(", ");
        let why = match error.kind() {
            ErrorKind::AddrInUse => format!(
                "{shown} is in use by another program: end that, or listen on another port, or on port 0 for any that is free"
            ),
            _ => format!("{shown} cannot be listened on: {error}"),
        };
        Error::closed(why).with_source(error)
    })
}

/// Serves the connections that `listener` accepts. Once the [`Serving`] is closed, `on_close` runs: it shuts down the service while
/// connections are still accepted, since a request that is ending may wait for a message on another connection. All of this is
/// bounded by [`Limits::drain`].
///
/// Fails if the listener has no address.
pub(crate) fn serve<S>(
    listener: TcpListener,
    service: S,
    limits: &Limits,
    on_close: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Serving>
where
    S: HttpService,
{
    let (serving, signal) = Serving::new(listener.local_addr()?);
    spawn(run(listener, service, limits.clone(), signal, on_close));
    Ok(serving)
}

/// Accepts connections until the [`Serving`] is closed, and then ends them.
pub(super) async fn run<L, S>(
    listener: L,
    service: S,
    limits: Limits,
    signal: CloseSignal,
    on_close: impl Future<Output = ()> + Send,
) where
    L: Listener,
    S: HttpService,
{
    let mut connections = JoinSet::new();
    let closing = CancellationToken::new();
    let shared = Shared::new(Timeouts::from(&limits), closing.clone());
    let start = move |io| serve_connection(io, service.clone(), Arc::clone(&shared));
    // With a limit of 0 the endpoint would serve no requests.
    let max_connections = limits.http.max_connections.max(1);
    let deadline = select! {
        biased;
        deadline = closed(&signal, &limits, on_close) => deadline,
        never = accept(listener, &mut connections, max_connections, start) => match never {},
    };
    closing.cancel();
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout_at(deadline, ended).await.is_err() {
        tracing::debug!(connections = connections.len(), "connections are cut");
    }
    connections.shutdown().await;
}

/// Waits until the [`Serving`] is closed and `on_close` has run. Returns the deadline of the connections.
async fn closed(
    signal: &CloseSignal,
    limits: &Limits,
    on_close: impl Future<Output = ()>,
) -> Instant {
    signal.wait().await;
    let deadline = after(Instant::now(), limits.drain);
    if timeout_at(deadline, on_close).await.is_err() {
        tracing::warn!("what was served did not end in time, and its connections are cut");
    }
    deadline.max(Instant::now() + MIN_FLUSH)
}

/// Accepts connections for ever, `max_connections` at a time.
async fn accept<L, F>(
    mut listener: L,
    connections: &mut JoinSet<()>,
    max_connections: usize,
    start: impl Fn(L::Io) -> F,
) -> Infallible
where
    L: Listener,
    F: Future<Output = ()> + Send + 'static,
{
    let mut paused_until: Option<Instant> = None;
    loop {
        let may_accept = paused_until.is_none() && connections.len() < max_connections;
        select! {
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection ended by a panic");
                }
                paused_until = None;
            }
            accepted = listener.accept(), if may_accept => match accepted {
                Ok(io) => {
                    connections.spawn(start(io));
                    if connections.len() == max_connections {
                        tracing::debug!(max_connections, "no more connections are accepted for now");
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted for now");
                    paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                }
            },
            () = reached(paused_until) => paused_until = None,
        }
    }
}

/// Whether an error concerns only the connection that was being accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::Interrupted
            | ErrorKind::InvalidInput
            | ErrorKind::NotConnected
            | ErrorKind::TimedOut
    )
}

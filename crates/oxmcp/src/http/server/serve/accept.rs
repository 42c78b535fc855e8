//! The accept loop of an address, which limits the number of connections and shuts them down gracefully.

use std::{
    convert::Infallible,
    future::Future,
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    join,
    net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host},
    select,
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    activity::Timeouts,
    connection::{HttpService, Phases, Shared, serve_connection},
    serving::{CLOSE_GRACE, CloseSignal, ServerHandle},
};
use crate::{
    error::{Error, Result},
    limits::Limits,
    session::task::{after, reached, spawn},
};

/// The pause of the accept loop after a failure, unless a connection ends earlier. Usually the process has run out of file
/// descriptors, and retrying immediately would keep a CPU core busy.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// The minimum time that connections have to send pending data, even if shutting down the service took all of the drain time.
const MIN_FLUSH: Duration = Duration::from_secs(1);

/// A source of connections.
pub(crate) trait Listener: Send + 'static {
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Accepts the next connection. Cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;

    /// Stops listening. Returns at most `max` connections that clients have opened and that were not accepted yet. They may carry
    /// requests, which would otherwise be lost.
    fn close(self, max: usize) -> Vec<Self::Io>;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Otherwise small writes wait for the peer's acknowledgment of earlier ones, which peers delay by 40 ms.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn close(self, max: usize) -> Vec<TcpStream> {
        // The runtime may not have seen them yet, so this asks the kernel.
        let accepted = self.into_std().and_then(|listener| {
            let mut accepted = Vec::new();
            while accepted.len() < max {
                match listener.accept() {
                    Ok((stream, _)) => accepted.push(adopt(stream)?),
                    Err(error) if is_of_one_connection(&error) => {}
                    Err(_) => break,
                }
            }
            Ok(accepted)
        });
        accepted.unwrap_or_default()
    }
}

/// Registers a connection that the kernel has accepted with the runtime.
fn adopt(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}

/// Listens on the first of these addresses that works.
///
/// # Errors
/// If none works. The error names the addresses, because two programs on one machine often use the same port.
pub(crate) async fn listen(addresses: impl ToSocketAddrs) -> Result<TcpListener> {
    let unresolved = |error: io::Error| {
        let why = match error.kind() {
            ErrorKind::InvalidInput => format!(
                "invalid listen address: {error}; expected a host and a port, such as `127.0.0.1:3000`"
            ),
            _ => format!("failed to resolve the listen address: {error}"),
        };
        Error::closed(why).with_source(error)
    };
    let addresses: Vec<_> = lookup_host(addresses).await.map_err(unresolved)?.collect();
    TcpListener::bind(&*addresses).await.map_err(|error| {
        let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let shown = shown.join(", ");
        let why = match error.kind() {
            ErrorKind::AddrInUse => format!(
                "address already in use: {shown}; stop the other program or listen on another port (0 picks a free one)"
            ),
            _ => format!("failed to listen on {shown}: {error}"),
        };
        Error::closed(why).with_source(error)
    })
}

/// Serves the connections that `listener` accepts. When the [`ServerHandle`] is closed, it stops listening, so that clients and
/// load balancers are refused immediately and try another node. `on_close` then shuts down the service while open connections are
/// still served; its argument is cancelled when they have ended, or when [`Limits::drain`] is over.
///
/// # Errors
/// If the listener has no address.
pub(crate) fn serve<S, F>(
    listener: TcpListener,
    service: S,
    limits: &Limits,
    on_close: impl FnOnce(CancellationToken) -> F + Send + 'static,
) -> Result<ServerHandle>
where
    S: HttpService,
    F: Future<Output = ()> + Send + 'static,
{
    let address = listener.local_addr().map_err(|error| {
        Error::closed(format!(
            "could not read the address of the listener: {error}"
        ))
        .with_source(error)
    })?;
    let (serving, signal) = ServerHandle::new(address);
    spawn(run(listener, service, limits.clone(), signal, on_close));
    Ok(serving)
}

/// Accepts connections until the [`ServerHandle`] is closed, and then ends them.
pub(crate) async fn run<L, S, F>(
    mut listener: L,
    service: S,
    limits: Limits,
    signal: CloseSignal,
    on_close: impl FnOnce(CancellationToken) -> F + Send,
) where
    L: Listener,
    S: HttpService,
    F: Future<Output = ()> + Send,
{
    let mut connections = JoinSet::new();
    let phases = Phases::default();
    let shared = Shared::new(Timeouts::from(&limits), phases.clone());
    let start = move |io| serve_connection(io, service.clone(), Arc::clone(&shared));
    // With a limit of 0 the endpoint would serve no requests.
    let max_connections = limits.http.max_connections.max(1);
    select! {
        biased;
        () = signal.wait() => {}
        never = accept(&mut listener, &mut connections, max_connections, start.clone()) => match never {},
    }
    for io in listener.close(max_connections.saturating_sub(connections.len())) {
        connections.spawn(start(io));
    }
    phases.draining.cancel();
    let drained = after(Instant::now(), limits.drain);
    let served = CancellationToken::new();
    let serving = async {
        let _ = timeout_at(drained, all_ended(&mut connections)).await;
        served.cancel();
    };
    let closed = timeout_at(after(drained, CLOSE_GRACE), on_close(served.clone()));
    if let ((), Err(_)) = join!(serving, closed) {
        tracing::warn!("shutdown timed out; dropping connections");
    }
    phases.closing.cancel();
    let cut = drained.max(Instant::now() + MIN_FLUSH);
    if timeout_at(cut, all_ended(&mut connections)).await.is_err() {
        tracing::debug!(connections = connections.len(), "dropping open connections");
    }
    connections.shutdown().await;
}

async fn all_ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Accepts connections forever, `max_connections` at a time.
async fn accept<L, F>(
    listener: &mut L,
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
                    tracing::error!(%error, "connection task panicked");
                }
                paused_until = None;
            }
            accepted = listener.accept(), if may_accept => match accepted {
                Ok(io) => {
                    connections.spawn(start(io));
                    if connections.len() == max_connections {
                        tracing::debug!(max_connections, "connection limit reached; pausing accept loop");
                    }
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; pausing accept loop");
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

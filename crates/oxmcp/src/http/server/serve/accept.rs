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

    /// Stops listening. Returns at most `max` connections that clients have opened and that were not accepted yet: they may carry
    /// requests, which would be lost.
    fn close(self, max: usize) -> Vec<Self::Io>;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Otherwise small writes wait for the peer's acknowledgement of earlier ones, which peers delay by 40 ms.
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    fn close(self, max: usize) -> Vec<TcpStream> {
        // The runtime may not know of them yet, so the kernel is asked.
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

/// A connection that the kernel has accepted, for the runtime.
fn adopt(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}

/// OpenSubscriptions on the first of these addresses on which that is possible.
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

/// Serves the connections that `listener` accepts. Once the [`ServerHandle`] is closed, it stops listening, so that clients and load
/// balancers are refused at once, and take another node. `on_close` then shuts down the service while the open connections are served;
/// its argument is cancelled once they have ended, or when [`Limits::drain`] is over.
///
/// Fails if the listener has no address.
pub(crate) fn serve<S, F>(
    listener: TcpListener,
    service: S,
    limits: &Limits,
    on_close: impl FnOnce(CancellationToken) -> F + Send + 'static,
) -> io::Result<ServerHandle>
where
    S: HttpService,
    F: Future<Output = ()> + Send + 'static,
{
    let (serving, signal) = ServerHandle::new(listener.local_addr()?);
    spawn(run(listener, service, limits.clone(), signal, on_close));
    Ok(serving)
}

/// Accepts connections until the [`ServerHandle`] is closed, and then ends them.
pub(super) async fn run<L, S, F>(
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
        tracing::warn!("what was served did not end in time, and its connections are cut");
    }
    phases.closing.cancel();
    let cut = drained.max(Instant::now() + MIN_FLUSH);
    if timeout_at(cut, all_ended(&mut connections)).await.is_err() {
        tracing::debug!(connections = connections.len(), "connections are cut");
    }
    connections.shutdown().await;
}

async fn all_ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Accepts connections for ever, `max_connections` at a time.
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

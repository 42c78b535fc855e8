//! The one task of an address that is served.

use std::{
    collections::HashMap,
    convert::Infallible,
    future::Future,
    io::{self, ErrorKind},
    mem,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    select,
    sync::oneshot,
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at},
};

use super::{
    connection::{Protocols, Serves, attend},
    overdue::{Patience, Signs, Watch},
    serving::{Ending, Serving},
};
use crate::{Limits, session::after};

/// How long nothing is accepted after that has failed, unless a connection ends before: what is missing is file descriptors,
/// mostly, and trying again at once would take all of a processor.
const REST: Duration = Duration::from_secs(1);
/// How long connections have at least to send what is left, when all of the time has gone into ending what they carried.
const FLUSH: Duration = Duration::from_secs(1);

/// Where connections come from.
pub(super) trait Listen: Send + 'static {
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Cancel safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl Listen for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _) = Self::accept(self).await?;
        // Else small writes wait for the peer's acknowledgement of earlier ones, which peers delay by 40 ms.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Serves what comes to `listener`. Once the [`Serving`] is to close, `on_close` is run: it ends what the service does, while
/// connections are still accepted, since what ends may need another answer. All that is bounded by [`Limits::drain`].
///
/// Fails where the listener has no address.
pub(crate) fn serve<S>(
    listener: TcpListener,
    service: S,
    limits: &Limits,
    on_close: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Serving>
where
    S: Serves,
{
    let address = listener.local_addr()?;
    let (serving, ending) = Serving::new(address);
    tokio::spawn(supervise(
        listener,
        service,
        limits.clone(),
        ending,
        on_close,
    ));
    Ok(serving)
}

/// Accepts until the end, and then brings the end about.
pub(super) async fn supervise<L, S>(
    mut listener: L,
    service: S,
    limits: Limits,
    ending: Ending,
    on_close: impl Future<Output = ()> + Send,
) where
    L: Listen,
    S: Serves,
{
    let protocols = Protocols::new();
    let mut connections = Connections::new(&limits);
    let mut start = move |io: L::Io, connections: &mut Connections| {
        let signs = Signs::new();
        let (finish, finishing) = oneshot::channel();
        let (service, protocols) = (service.clone(), protocols.clone());
        let connection = attend(io, service, protocols, signs.clone(), finishing);
        connections.add(connection, signs, finish);
    };
    let deadline = select! {
        biased;
        deadline = closed(&ending, &limits, on_close) => deadline,
        never = accept(&mut listener, &mut connections, &mut start) => match never {},
    };
    drop(listener);
    connections.end(deadline).await;
}

/// Waits until the end is wanted and prepared. Returns until when connections may go on.
async fn closed(ending: &Ending, limits: &Limits, on_close: impl Future<Output = ()>) -> Instant {
    ending.wanted().await;
    let deadline = after(Instant::now(), limits.drain);
    if timeout_at(deadline, on_close).await.is_err() {
        tracing::warn!("what was served did not end in time, and its connections are cut");
    }
    deadline.max(Instant::now() + FLUSH)
}

/// Accepts for ever.
async fn accept<L: Listen>(
    listener: &mut L,
    connections: &mut Connections,
    start: &mut impl FnMut(L::Io, &mut Connections),
) -> Infallible {
    let mut rest: Option<Instant> = None;
    let mut looks = interval(connections.patience.pause());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let may_accept = rest.is_none() && !connections.is_full();
        select! {
            Some(ended) = connections.tasks.join_next_with_id() => {
                connections.ended(ended);
                rest = None;
            }
            accepted = listener.accept(), if may_accept => match accepted {
                Ok(io) => start(io, connections),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted for now");
                    rest = Some(Instant::now() + REST);
                }
            },
            () = until(rest) => rest = None,
            _ = looks.tick(), if !connections.tasks.is_empty() => connections.look(),
        }
    }
}

async fn until(rest: Option<Instant>) {
    match rest {
        Some(rest) => sleep_until(rest).await,
        None => std::future::pending().await,
    }
}

/// Whether only the connection that was to be accepted is broken.
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

/// The connections that are open.
struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
    max: usize,
    patience: Patience,
}

/// One of them.
struct Open {
    task: AbortHandle,
    /// What tells it to finish.
    finish: oneshot::Sender<()>,
    watch: Watch,
}

impl Connections {
    fn new(limits: &Limits) -> Self {
        Self {
            tasks: JoinSet::new(),
            open: HashMap::new(),
            // With none at all, nothing would ever be served.
            max: limits.max_http_connections.max(1),
            patience: Patience::new(limits),
        }
    }

    fn is_full(&self) -> bool {
        self.tasks.len() >= self.max
    }

    fn add(
        &mut self,
        connection: impl Future<Output = ()> + Send + 'static,
        signs: Signs,
        finish: oneshot::Sender<()>,
    ) {
        let task = self.tasks.spawn(connection);
        let open = Open {
            finish,
            watch: Watch::new(signs),
            task: task.clone(),
        };
        self.open.insert(task.id(), open);
        if self.is_full() {
            tracing::debug!(max = self.max, "no more connections are accepted for now");
        }
    }

    fn ended(&mut self, task: Result<(Id, ()), JoinError>) {
        let id = match task {
            Ok((id, ())) => id,
            // It was overdue.
            Err(error) if error.is_cancelled() => error.id(),
            Err(error) => {
                tracing::error!(%error, "a connection ended by a panic");
                error.id()
            }
        };
        self.open.remove(&id);
    }

    /// Ends those that have had time enough.
    fn look(&mut self) {
        for open in self.open.values_mut() {
            if let Some(why) = open.watch.is_overdue(self.patience) {
                tracing::debug!("it is closed: {why}");
                open.task.abort();
            }
        }
    }

    /// Lets all finish what they are at, until the deadline, and drops the rest.
    async fn end(mut self, deadline: Instant) {
        for (_, open) in mem::take(&mut self.open) {
            // One that is not there any more has finished.
            let _ = open.finish.send(());
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout_at(deadline, all).await.is_err() {
            tracing::debug!(connections = self.tasks.len(), "connections are cut");
        }
        self.tasks.shutdown().await;
    }
}

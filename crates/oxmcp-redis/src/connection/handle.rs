//! The connection that all stores share.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures_util::{StreamExt, stream::BoxStream};
use oxmcp::Result;
use redis::{
    Client, Cmd, ErrorKind, FromRedisValue, Msg, Pipeline, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, Value,
    aio::{ConnectionLike, ConnectionManager},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

#[cfg(feature = "cluster")]
use super::nodes;
#[cfg(feature = "sentinel")]
use super::sentinel;
use super::{
    address::Address,
    server::{PATIENCE, config, connect},
};
use crate::{failure, scripts::Invocation};

/// The pause before retrying a command that was refused because it reached the wrong server, or came too early.
const AGAIN: Duration = Duration::from_millis(50);

pub(crate) struct Connection(Arc<Inner>);

struct Inner {
    form: Form,
    /// The hosts and ports, which messages may show.
    address: String,
    current: RwLock<Current>,
    /// Counts how often the connection was moved to another server.
    moved: watch::Sender<u64>,
}

/// The form in which Redis is deployed.
enum Form {
    /// A standalone server, or an address that leads to the primary.
    Single,
    #[cfg(feature = "sentinel")]
    Sentinels(Box<sentinel::Sentinels>),
    #[cfg(feature = "cluster")]
    Cluster(nodes::Nodes),
}

/// The current connection.
#[derive(Clone)]
enum Current {
    Single(Arc<Client>, ConnectionManager),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl ConnectionLike for Current {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(_, it) => it.req_packed_command(cmd),
            #[cfg(feature = "cluster")]
            Self::Cluster(it) => it.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(_, it) => it.req_packed_commands(pipeline, offset, count),
            #[cfg(feature = "cluster")]
            Self::Cluster(it) => it.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(_, it) => it.get_db(),
            #[cfg(feature = "cluster")]
            Self::Cluster(it) => it.get_db(),
        }
    }
}

impl Connection {
    /// Connects, and checks whether the server can be used.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        #[cfg(feature = "tls")]
        // This fails if the program has already installed a provider, which stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = Address::parse(url)?;
        let shown = address.shown();
        let (form, current) = match &address.primary {
            Some(primary) => open_sentinels(&address, primary, &shown).await?,
            None => open_servers(address, &shown).await?,
        };
        Ok(Self(Arc::new(Inner {
            form,
            address: shown,
            current: RwLock::new(current),
            moved: watch::Sender::new(0),
        })))
    }

    /// Runs a command.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        self.patiently(|| self.0.query(command)).await
    }

    /// Runs a script, and sends its code again if Redis does not know it.
    pub(crate) async fn invoke<T: FromRedisValue>(&self, script: &Invocation) -> Result<T> {
        let by_hash = script.by_hash();
        self.patiently(|| async move {
            match self.0.query(by_hash).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.0.query(&script.by_code()).await
                }
                answer => answer,
            }
        })
        .await
    }

    /// Subscribes to channels, on a separate connection. The stream ends with that connection, and when commands switch to another
    /// server.
    pub(crate) async fn subscribe(&self, channels: &[String]) -> Result<BoxStream<'static, Msg>> {
        let mut moved = self.0.moved.subscribe();
        moved.borrow_and_update();
        let messages = self.patiently(|| async {
            let mut failed = None;
            for client in self.0.clients().await {
                match subscribe(&client, channels).await {
                    Ok(messages) => return Ok(messages),
                    Err(error) => failed = Some(error),
                }
            }
            Err(failed.unwrap_or_else(|| (ErrorKind::Client, "no cluster node found").into()))
        });
        let messages = messages.await?;
        let moved = async move { drop(moved.changed().await) };
        Ok(messages.take_until(Box::pin(moved)).boxed())
    }

    /// Runs a command, and retries it if it was refused before execution, until the timeout of the operation.
    async fn patiently<T, F>(&self, mut command: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let mut refused = None;
        let answered = timeout(PATIENCE, async {
            loop {
                match command().await {
                    Err(error) if self.0.is_elsewhere(&error) => refused = Some(error),
                    answer => return answer,
                }
                sleep(AGAIN).await;
            }
        });
        let answered = answered.await;
        let answer = match (answered, refused) {
            (Ok(answer), _) => answer,
            (Err(_), Some(refused)) => Err(refused),
            (Err(_), None) => {
                self.0.look_for_primary();
                return Err(failure::unanswered(PATIENCE));
            }
        };
        answer.map_err(|error| {
            self.0.leave(&error);
            failure::of_redis(error, &self.0.address)
        })
    }
}

impl Inner {
    fn current(&self) -> Current {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command. If its key has moved to another node before the rest of its slot, runs it there.
    async fn query<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        let answer = command.query_async(&mut self.current()).await;
        #[cfg(feature = "cluster")]
        if let (Form::Cluster(nodes), Err(error)) = (&self.form, &answer)
            && error.kind() == ErrorKind::Server(ServerErrorKind::Ask)
            && let Some((node, _)) = error.redirect_node()
        {
            return nodes.ask(node, command).await;
        }
        answer
    }

    /// The clients of the servers at which subscriptions can be made.
    async fn clients(&self) -> Vec<Client> {
        match (&self.form, self.current()) {
            #[cfg(feature = "cluster")]
            (Form::Cluster(nodes), Current::Cluster(mut current)) => {
                nodes.clients(&mut current).await
            }
            (_, Current::Single(client, _)) => vec![(*client).clone()],
            #[cfg(feature = "cluster")]
            _ => Vec::new(),
        }
    }

    /// Whether a cluster node has refused a command that another node would run, or that it will run soon. The command was not
    /// executed then.
    fn is_elsewhere(&self, error: &RedisError) -> bool {
        use ServerErrorKind::{
            Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain,
        };
        #[cfg(feature = "cluster")]
        let is_cluster = matches!(self.form, Form::Cluster(_));
        #[cfg(not(feature = "cluster"))]
        let is_cluster = false;
        let is_refused = match error.kind() {
            ErrorKind::Server(kind) => matches!(
                kind,
                Ask | BusyLoading | ClusterDown | MasterDown | Moved | ReadOnly | TryAgain
            ),
            kind => kind == ErrorKind::ClusterConnectionNotFound,
        };
        is_cluster && is_refused
    }

    /// Leaves the current server after an error that suggests a failover. The address may lead to another server by then, while the
    /// connection still leads to the former primary.
    fn leave(self: &Arc<Self>, error: &RedisError) {
        let is_replica = error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly);
        match &self.form {
            Form::Single if is_replica => match self.current() {
                Current::Single(client, _) => self.move_to(client),
                #[cfg(feature = "cluster")]
                Current::Cluster(_) => {}
            },
            Form::Single => {}
            #[cfg(feature = "sentinel")]
            Form::Sentinels(_) => {
                if is_replica || error.is_io_error() || error.is_connection_dropped() {
                    self.look_for_primary();
                }
            }
            #[cfg(feature = "cluster")]
            Form::Cluster(_) => {}
        }
    }

    /// Asks the sentinels for the current primary, in the background.
    fn look_for_primary(self: &Arc<Self>) {
        #[cfg(feature = "sentinel")]
        if let Form::Sentinels(sentinels) = &self.form
            && sentinels.begin_asking()
        {
            let inner = Arc::clone(self);
            tokio::spawn(async move {
                if let Form::Sentinels(sentinels) = &inner.form {
                    match timeout(2 * PATIENCE, sentinels.primary()).await {
                        Ok(Ok(client)) => inner.move_to(Arc::new(client)),
                        Ok(Err(error)) => tracing::debug!(%error, "sentinels know no primary"),
                        Err(_) => tracing::debug!("no response from the sentinels"),
                    }
                    sentinels.end_asking();
                }
            });
        }
    }

    /// Connects to a server, and ends subscriptions to the previous one.
    fn move_to(&self, client: Arc<Client>) {
        if let Ok(new) = ConnectionManager::new_lazy_with_config((*client).clone(), config()) {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            *current = Current::Single(client, new);
            drop(current);
            self.moved.send_modify(|times| *times += 1);
        }
    }
}

async fn subscribe(
    client: &Client,
    channels: &[String],
) -> RedisResult<impl futures_util::Stream<Item = Msg> + Send + use<>> {
    let mut subscription = client.get_async_pubsub().await?;
    subscription.subscribe(channels).await?;
    Ok(subscription.into_on_message())
}

/// Connects to a standalone server, or to a cluster by any of its nodes.
async fn open_servers(address: Address, shown: &str) -> Result<(Form, Current)> {
    let mut failed = None;
    for server in &address.servers {
        let opened = Client::open(server.clone()).map_err(|error| failure::of_url(Some(error)));
        let client = opened?;
        match connect(&client, shown).await {
            Ok((_, info)) if info.is_cluster() => return open_cluster(address, shown).await,
            Ok(_) if address.servers.len() > 1 => {
                return Err(failure::no_cluster(shown));
            }
            Ok((manager, _)) => {
                return Ok((Form::Single, Current::Single(Arc::new(client), manager)));
            }
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| failure::of_url(None)))
}

#[cfg(feature = "cluster")]
async fn open_cluster(address: Address, shown: &str) -> Result<(Form, Current)> {
    let nodes = nodes::Nodes::new(address.servers);
    let connection = match timeout(2 * PATIENCE, nodes.connect()).await {
        Ok(connected) => connected.map_err(|error| failure::of_redis(error, shown))?,
        Err(_) => return Err(failure::unanswered(2 * PATIENCE)),
    };
    Ok((Form::Cluster(nodes), Current::Cluster(connection)))
}

#[cfg(not(feature = "cluster"))]
async fn open_cluster(_address: Address, shown: &str) -> Result<(Form, Current)> {
    Err(failure::cluster(shown))
}

#[cfg(feature = "sentinel")]
async fn open_sentinels(address: &Address, primary: &str, shown: &str) -> Result<(Form, Current)> {
    let sentinels = sentinel::Sentinels::new(address, primary)?;
    let client = match timeout(2 * PATIENCE, sentinels.primary()).await {
        Ok(found) => found.map_err(|error| failure::of_sentinels(error, primary, shown))?,
        Err(_) => return Err(failure::unanswered(2 * PATIENCE)),
    };
    let (manager, _) = connect(&client, shown).await?;
    let current = Current::Single(Arc::new(client), manager);
    Ok((Form::Sentinels(Box::new(sentinels)), current))
}

#[cfg(not(feature = "sentinel"))]
async fn open_sentinels(
    _address: &Address,
    _primary: &str,
    _shown: &str,
) -> Result<(Form, Current)> {
    Err(failure::no_sentinels())
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.0.address)
            .finish_non_exhaustive()
    }
}

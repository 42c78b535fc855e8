//! Connection to Redis: one for all commands, which connects again by itself, and the patience of each operation.

use std::{
    fmt,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use oxmcp::Result;
use redis::{
    Client, Cmd, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo, ProtocolVersion,
    PushInfo, RedisError, RedisResult, ScriptInvocation, ServerErrorKind,
    aio::{ConnectionManager, ConnectionManagerConfig, PubSubStream},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use tokio::time::timeout;

use crate::failure;

/// How long an operation may take in all. A call waits for it, and a store that hangs must not make calls hang.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How long a peer that is gone is not noticed.
const SILENCE: Duration = Duration::from_secs(5);

pub(crate) struct Connection {
    client: Client,
    /// Host and port, which can be shown.
    address: String,
    commands: RwLock<ConnectionManager>,
}

impl Connection {
    /// Connects, and finds out whether this is a Redis that can be used.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        #[cfg(feature = "tls")]
        // One that the program has installed stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let info = url.into_connection_info().map_err(failure::of_url)?;
        let address = info.addr().to_string();
        let client = Client::open(configured(info)).map_err(failure::of_url)?;
        let connecting = ConnectionManager::new_with_config(client.clone(), config());
        let commands = match timeout(2 * PATIENCE, connecting).await {
            Ok(Ok(commands)) => commands,
            Ok(Err(error)) => return Err(failure::of_redis(error, &address)),
            Err(_) => return Err(failure::unanswered(2 * PATIENCE)),
        };
        let connection = Self {
            client,
            address,
            commands: RwLock::new(commands),
        };
        connection.check().await?;
        Ok(connection)
    }

    /// Fails where the server is too old, or one of several.
    async fn check(&self) -> Result<()> {
        let mut command = redis::cmd("INFO");
        let Ok(info) = self.run::<String>(command.arg("server")).await else {
            // Some users may not ask. What is missing fails later.
            return Ok(());
        };
        let value = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let version = value("redis_version").unwrap_or("7");
        let major = version.split('.').next().and_then(|it| it.parse().ok());
        if major.is_some_and(|major: u32| major < 7) {
            return Err(failure::unusable(failure::too_old(&self.address, version)));
        }
        match value("redis_mode") {
            Some("cluster") => Err(failure::unusable(failure::cluster(&self.address))),
            _ => Ok(()),
        }
    }

    /// Runs a command.
    pub(crate) async fn run<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let mut commands = self.commands();
        self.patiently(command.query_async(&mut commands)).await
    }

    /// Runs a script, which Redis is told again where it has forgotten it.
    pub(crate) async fn invoke<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T> {
        let mut commands = self.commands();
        self.patiently(script.invoke_async(&mut commands)).await
    }

    /// Subscribes to channels, by a connection of its own.
    pub(crate) async fn subscribe(&self, channels: &[String]) -> Result<PubSubStream> {
        self.patiently(async {
            let mut subscription = self.client.get_async_pubsub().await?;
            subscription.subscribe(channels).await?;
            Ok(subscription.into_on_message())
        })
        .await
    }

    fn commands(&self) -> ConnectionManager {
        let commands = self.commands.read();
        commands.unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn patiently<T>(&self, answer: impl Future<Output = RedisResult<T>>) -> Result<T> {
        let answered = timeout(PATIENCE, answer).await;
        let answer = answered.map_err(|_| failure::unanswered(PATIENCE))?;
        answer.map_err(|error| {
            self.leave_replica(&error);
            failure::of_redis(error, &self.address)
        })
    }

    /// After a failover the address may lead to another server, but the connection leads to the one that was the primary.
    fn leave_replica(&self, error: &RedisError) {
        if error.kind() != ErrorKind::Server(ServerErrorKind::ReadOnly) {
            return;
        }
        if let Ok(new) = ConnectionManager::new_lazy_with_config(self.client.clone(), config()) {
            let mut commands = self
                .commands
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            *commands = new;
        }
    }
}

/// A connection that fails when its peer is gone, also where nothing says so, and that is told of its end at once.
fn configured(info: ConnectionInfo) -> ConnectionInfo {
    let keepalive = TcpKeepalive::new()
        .with_time(SILENCE)
        .with_interval(SILENCE);
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(SILENCE);
    let redis = info.redis_settings().clone();
    let redis = redis.set_protocol(ProtocolVersion::RESP3);
    info.set_tcp_settings(tcp).set_redis_settings(redis)
}

fn config() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_number_of_retries(2)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_millis(500))
        // What is pushed is only that the connection has ended, which begins the next one before anybody needs it.
        .set_push_sender(|_: PushInfo| Ok::<(), RedisError>(()))
        .set_automatic_resubscription()
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

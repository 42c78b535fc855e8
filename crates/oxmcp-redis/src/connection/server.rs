//! Connecting to one server, and its `INFO`.

use std::time::Duration;

use oxmcp::Result;
use redis::{
    Client, PushInfo, RedisError,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use tokio::time::timeout;

use crate::failure;

/// The timeout of a whole operation. Calls wait for operations, and a store that hangs must not make calls hang.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1500);

/// Connects to a server. Returns the connection, and the `INFO` of the server.
pub(crate) async fn connect(client: &Client, shown: &str) -> Result<(ConnectionManager, Info)> {
    let connecting = ConnectionManager::new_with_config(client.clone(), config());
    let mut manager = match timeout(2 * PATIENCE, connecting).await {
        Ok(Ok(manager)) => manager,
        Ok(Err(error)) => return Err(failure::of_redis(error, shown)),
        Err(_) => return Err(failure::unanswered(2 * PATIENCE)),
    };
    let mut command = redis::cmd("INFO");
    let asked = command.arg("server").query_async::<String>(&mut manager);
    // Some users are not allowed to run `INFO`. If a feature is missing, operations fail later.
    let info = timeout(PATIENCE, asked).await.ok().and_then(Result::ok);
    let info = Info(info.unwrap_or_default());
    info.check(shown)?;
    Ok((manager, info))
}

/// The output of `INFO server`.
pub(crate) struct Info(String);

impl Info {
    fn value(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    /// Fails if the server is too old.
    fn check(&self, shown: &str) -> Result<()> {
        let version = self.value("redis_version").unwrap_or("7");
        let major = version.split('.').next().and_then(|it| it.parse().ok());
        if major.is_some_and(|major: u32| major < 7) {
            return Err(failure::too_old(shown, version));
        }
        Ok(())
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.value("redis_mode") == Some("cluster")
    }
}

/// Settings of the connection for commands.
pub(crate) fn config() -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        // The caller of a command waits no longer than that.
        .set_response_timeout(None)
        .set_number_of_retries(2)
        .set_min_delay(Duration::from_millis(50))
        .set_max_delay(Duration::from_millis(500))
        // The only push message is the end of the connection, so that reconnection starts before the next command.
        .set_push_sender(|_: PushInfo| Ok::<(), RedisError>(()))
        .set_automatic_resubscription()
}

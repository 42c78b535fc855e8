//! Nodes of a Redis cluster: the connection for commands, which finds the node of each key, a connection to the node to which keys
//! move, and clients for subscriptions.

use std::sync::{Mutex, PoisonError};

use redis::{
    Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, RedisResult, Value,
    aio::{ConnectionLike, ConnectionManager},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
};

use super::{
    address,
    server::{PATIENCE, config},
};

/// The nodes in the address, by which the others are found.
pub(crate) struct Nodes {
    named: Vec<ConnectionInfo>,
    /// The node to which keys have moved last, and a connection to it.
    moving_to: Mutex<Option<(String, ConnectionManager)>>,
}

impl Nodes {
    pub(crate) fn new(named: Vec<ConnectionInfo>) -> Self {
        Self {
            named,
            moving_to: Mutex::default(),
        }
    }

    pub(crate) async fn connect(&self) -> RedisResult<ClusterConnection> {
        let client = ClusterClient::builder(self.named.clone())
            .use_protocol(redis::ProtocolVersion::RESP3)
            .tcp_settings(address::tcp())
            .connection_timeout(PATIENCE)
            .response_timeout(PATIENCE)
            // A command that may have been done is not retried: the caller retries a command that was refused.
            .retries(0)
            .build()?;
        client.get_async_connection().await
    }

    /// Clients of all nodes that are known to work: a message that is published at one node reaches all of them.
    pub(crate) async fn clients(&self, connection: &mut ClusterConnection) -> Vec<Client> {
        let mut command = redis::cmd("CLUSTER");
        let found: RedisResult<String> = command.arg("NODES").query_async(connection).await;
        let found = found.unwrap_or_default();
        let others = found.lines().filter_map(working);
        let others = others.filter_map(|(host, port)| self.client(host, port));
        let named = self
            .named
            .iter()
            .filter_map(|it| Client::open(it.clone()).ok());
        others.chain(named).collect()
    }

    /// A client of a node, with the settings of the nodes in the address.
    fn client(&self, host: String, port: u16) -> Option<Client> {
        let first = self.named.first()?;
        let address = match first.addr().clone() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => ConnectionAddr::TcpTls {
                host,
                port,
                insecure,
                tls_params,
            },
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(first.clone().set_addr(address)).ok()
    }

    /// Runs a command at a node, `host:port`, to which the slot of its key is moving. Such a node may have no slots yet, so the
    /// connection for commands does not know it.
    pub(crate) async fn ask<T: FromRedisValue>(&self, node: &str, command: &Cmd) -> RedisResult<T> {
        let mut connection = self.connection_to(node)?;
        let mut pipeline = redis::pipe();
        pipeline.cmd("ASKING").add_command(command.clone());
        let mut answers = connection.req_packed_commands(&pipeline, 0, 2).await?;
        let answer = answers.pop().unwrap_or(Value::Nil);
        Ok(redis::from_redis_value(answer.extract_error()?)?)
    }

    fn connection_to(&self, node: &str) -> RedisResult<ConnectionManager> {
        let mut moving_to = self
            .moving_to
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((known, connection)) = &*moving_to
            && known == node
        {
            return Ok(connection.clone());
        }
        let place = node.rsplit_once(':');
        let client =
            place.and_then(|(host, port)| self.client(host.to_owned(), port.parse().ok()?));
        let client = client.ok_or((ErrorKind::Client, "cluster node has no usable address"))?;
        let connection = ConnectionManager::new_lazy_with_config(client, config())?;
        *moving_to = Some((node.to_owned(), connection.clone()));
        Ok(connection)
    }
}

/// Host and port of a line of `CLUSTER NODES`, unless the node has failed: `id host:port@bus[,hostname] flags …`.
fn working(line: &str) -> Option<(String, u16)> {
    let mut words = line.split(' ').skip(1);
    let (place, flags) = (words.next()?, words.next()?);
    let is_away = |flag: &str| matches!(flag, "fail" | "fail?" | "handshake" | "noaddr");
    if flags.split(',').any(is_away) {
        return None;
    }
    let (address, name) = place.split_once(',').unwrap_or((place, ""));
    let (host, port) = address.split('@').next()?.rsplit_once(':')?;
    let host = if name.is_empty() { host } else { name };
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::working;

    #[test]
    fn failed_nodes_are_left_out() {
        let tail = "- 0 1 1 connected 0-5460";
        for (line, node) in [
            (
                "a 127.0.0.1:7000@17000 myself,master",
                Some(("127.0.0.1", 7000)),
            ),
            (
                "a 10.0.0.1:7000@17000,node-1.example master",
                Some(("node-1.example", 7000)),
            ),
            ("a ::1:7000@17000, slave", Some(("::1", 7000))),
            ("a 127.0.0.1:7000@17000 master,fail", None),
            ("a 127.0.0.1:7000@17000 master,fail?", None),
            ("a :0@0 master,noaddr", None),
            ("nonsense", None),
        ] {
            let found = working(&format!("{line} {tail}"));
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, node, "{line}");
        }
    }
}

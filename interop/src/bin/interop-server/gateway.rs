//! Gateways in front of other servers: one of this server itself, and one of the servers in a file.

use std::time::Duration;

use oxmcp::{Client, Error, Result, Server, tasks::Tasks};
use oxmcp_group::{Gateway, Upstream, router::Naming};

fn client() -> Client {
    Client::new("interop-gateway", "1.0.0")
}

/// A proxy of a server in this process.
pub(crate) async fn proxy(server: Server) -> Result<Server> {
    let tasks = Tasks::in_memory().poll_interval(Duration::from_millis(50));
    let front = Server::new("interop-server", "1.0.0").extension(tasks.extension());
    let gateway = Gateway::new(client())
        .naming(Naming::unchanged())
        .mount("own", server);
    Ok(gateway.start(front).await?.server())
}

/// A gateway of the servers in a configuration file, whose variables are `NAME=VALUE`.
pub(crate) async fn gateway(file: &str, variables: &[&str]) -> Result<Server> {
    let config = oxmcp_interop::read_servers(file, variables);
    let config = config.map_err(|error| Error::misuse(error.to_string()))?;
    let servers = config.servers().iter().cloned();
    let gateway = servers.fold(Gateway::new(client()), |gateway, server| {
        let label = server.name().to_owned();
        gateway.mount(label, Upstream::new(move || server.transport()))
    });
    let gateway = gateway.start(Server::new("gateway", "1.0.0")).await?;
    Ok(gateway.server())
}

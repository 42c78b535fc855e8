//! Gateways in front of other servers: one of this server itself, and one of servers that are given as commands.

use std::time::Duration;

use oxmcp::{Client, Command, Error, Result, Server, tasks::Tasks};
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

/// A gateway of several servers, each given as `LABEL=COMMAND ARGUMENTS...`.
pub(crate) async fn gateway(servers: &[&str]) -> Result<Server> {
    let mut gateway = Gateway::new(client());
    for server in servers {
        let (label, command) = server
            .split_once('=')
            .ok_or_else(|| Error::internal("expected LABEL=COMMAND ARGUMENTS..."))?;
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let upstream = Upstream::new(move || {
            let (program, arguments) = words
                .split_first()
                .map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
            Command::new(program).args(arguments)
        });
        gateway = gateway.mount(label, upstream);
    }
    let gateway = gateway.start(Server::new("gateway", "1.0.0")).await?;
    Ok(gateway.server())
}

//! A gateway of all servers, and a client of it.

use std::time::Duration;

use oxmcp::{Client, ClientSession, Revision, Server, in_memory, protocol::CallToolResult};
use oxmcp_group::{Gateway, Upstream};
use serde_json::Value;

use crate::{
    failures::{self, Caller, Gate, MEMORY, TIME},
    processes,
    servers::{Outcome, Servers},
};

impl Caller for ClientSession {
    async fn call(
        &self,
        tool: &str,
        arguments: Value,
        timeout: Duration,
    ) -> oxmcp::Result<CallToolResult> {
        self.call_tool(tool, arguments)
            .timeout(timeout)
            .max_total(timeout)
            .await
    }
}

/// Lets servers behind a gateway fail.
pub(crate) async fn fail(servers: &Servers, revision: Revision) -> Outcome {
    let gate = Gate::new(servers);
    // The gateway lists the features of the servers first, in a session of its own.
    gate.open()?;
    // On a busy machine, other processes start for long while one waits at the gate.
    let mut gateway =
        Gateway::new(Client::new("interop-gateway", "1.0.0")).connect_timeout(2 * processes::LIMIT);
    for server in servers
        .config
        .servers()
        .iter()
        .chain(servers.slow.servers())
    {
        let (label, server) = (server.name().to_owned(), server.clone());
        gateway = gateway.mount(label, Upstream::new(move || server.transport()));
    }
    let gateway = gateway.start(Server::new("gateway", "1.0.0")).await?;
    gate.close()?;

    let (near, far) = in_memory();
    gateway.server().connect(far).await?;
    let client = Client::new("interop-group", "1.0.0").revisions([revision]);
    let session = client.connect(near).await?;
    failures::start_slowly(&session, &gate).await?;
    // A modern client has no session: each of its requests starts another process of a server that has sessions.
    let stoppable = match revision.is_modern() {
        true => &[TIME][..],
        false => &[MEMORY, TIME],
    };
    for probe in stoppable {
        failures::stop(&session, *probe).await?;
    }
    for probe in [MEMORY, TIME] {
        failures::kill(&session, probe).await?;
    }
    failures::kill_in_a_call(&session).await?;
    session.close().await?;
    gateway.close().await;
    Ok(())
}

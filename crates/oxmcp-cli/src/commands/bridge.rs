//! `oxmcp bridge`: offers servers over another transport, and to clients of every revision.

use std::{env, net::SocketAddr, sync::Arc};

use oxmcp::{
    Client, Principal, Server as McpServer,
    auth::{AuthError, Secret},
    http::StreamableHttp,
    stdio,
};
use oxmcp_group::{Gateway, GatewaySession, ProxyServer, ToolRule, Upstream};

use crate::{
    args::{self, Bridge, Connection},
    failure::{Failure, Reason, Result},
    target::Server,
    terminal::{Terminal, stopped},
    ui::token,
};

pub(crate) async fn run(args: Bridge, terminal: &Terminal) -> Result<()> {
    if args.connection.decline || !args.connection.answer.is_empty() {
        return Err(Failure::usage(
            "the clients of a bridge answer the questions of its servers; leave out `--answer` and `--decline`",
        ));
    }
    let servers = Server::find_all(args.target, terminal)?;
    let gateway = start(servers, &args.rules, Arc::new(args.connection), terminal).await?;
    let server = gateway.server();
    let outcome = match args.listen {
        Some(address) => serve(&gateway, address, &args.http, terminal).await,
        None => tokio::select! {
            ended = server.run(stdio()) => ended.map_err(Failure::from),
            () = stopped() => Ok(()),
        },
    };
    gateway.close().await;
    outcome
}

/// Connects to the servers, once to learn at the start what is wrong, and then for each client.
async fn start(
    servers: Vec<Server>,
    rules: &args::Rules,
    options: Arc<Connection>,
    terminal: &Terminal,
) -> Result<GatewaySession> {
    let client = Client::new("oxmcp bridge", env!("CARGO_PKG_VERSION")).timeout(options.timeout);
    let client = match options.revision {
        Some(revision) => client.revisions([revision]),
        None => client,
    };
    let client = if options.strict {
        client.strict()
    } else {
        client
    };
    let limits = |mut gateway: Gateway| {
        for pattern in &rules.allow_tool {
            gateway = gateway.allow(ToolRule::named(pattern));
        }
        for pattern in &rules.deny_tool {
            gateway = gateway.deny(ToolRule::named(pattern));
        }
        gateway
    };
    let mut upstreams = Vec::new();
    for server in servers {
        // Errors of the options are told now; later there is nobody to tell.
        drop(server.transport(&options, terminal)?);
        server.announce(terminal);
        let (options, terminal) = (Arc::clone(&options), terminal.clone());
        let label = server.label.clone();
        let open = move || {
            server
                .transport(&options, &terminal)
                .unwrap_or_else(|_| Server::nowhere())
        };
        upstreams.push((label, Upstream::new(open)));
    }
    if upstreams.len() == 1 {
        let upstream = upstreams.remove(0).1;
        return Ok(ProxyServer::new(client, upstream)
            .settings(limits)
            .start()
            .await?);
    }
    let gateway = upstreams
        .into_iter()
        .fold(Gateway::new(client), |gateway, (label, upstream)| {
            gateway.mount(label, upstream)
        });
    let server = McpServer::new("oxmcp-bridge", env!("CARGO_PKG_VERSION"));
    Ok(limits(gateway).start(server).await?)
}

/// Listens until the user stops the program.
pub(super) async fn serve(
    gateway: &GatewaySession,
    address: SocketAddr,
    options: &args::Http,
    terminal: &Terminal,
) -> Result<()> {
    let mut endpoint = StreamableHttp::from(gateway.server());
    if !options.allow_host.is_empty() {
        endpoint = endpoint.allowed_hosts(&options.allow_host);
    }
    if !options.allow_origin.is_empty() {
        endpoint = endpoint.allowed_origins(&options.allow_origin);
    }
    if let Some(token) = token(options, terminal)? {
        endpoint = endpoint.authenticate(move |presented: Secret| {
            let is_right = presented == token;
            async move {
                match is_right {
                    true => Ok(Principal::new("bridge")),
                    false => Err(AuthError::invalid_token("unknown token").into()),
                }
            }
        });
    }
    let listening = endpoint.serve(address).await;
    let handle = listening.map_err(|error| {
        Failure::new(
            Reason::Usage,
            format!("could not listen on {address}: {error}"),
        )
    })?;
    terminal.note(&format!("listening on http://{}/", handle.local_addr()));
    stopped().await;
    endpoint.close().await;
    Ok(())
}

/// The token that clients must present. `None` if they need none.
fn token(options: &args::Http, terminal: &Terminal) -> Result<Option<Secret>> {
    if options.no_token {
        return Ok(None);
    }
    if let Some(name) = &options.token_env {
        let token = env::var(name).ok().filter(|it| !it.is_empty());
        let token = token.ok_or_else(|| {
            Failure::usage(format!(
                "the environment variable `{name}` for the token is unset or empty; set it"
            ))
        })?;
        return Ok(Some(Secret::new(token)));
    }
    let token = token::random()?;
    terminal.tell(&format!(
        "clients need the header `Authorization: Bearer {token}`"
    ));
    Ok(Some(Secret::new(token)))
}

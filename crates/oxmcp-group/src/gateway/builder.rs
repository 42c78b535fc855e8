//! The settings of a gateway, and its start.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use oxmcp::{
    Client, ClientSession, Error, RequestContext, Result, Server, ServerSession,
    middleware::{Next, Request, Response, from_fn},
    protocol::{
        CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams, ElicitUrlParams,
        NotificationParams, ServerCapabilities, method::RootsListChanged,
    },
    tasks::{ClientTasks, ID as TASKS, Tasks},
};
use tokio::sync::Semaphore;

use super::{
    calls::request_of,
    extensions, features,
    links::{Links, Mount},
    offers::declared_extensions,
    parked::ParkedCalls,
    path::{self, GatewayId},
    state::{GatewayLimits, Inner},
    tasks,
    upstream::Upstream,
    watches::{WatchKey, Watches},
};
use crate::{
    filter::ToolRule,
    group::{ClientGroup, GroupSession, ServerState, ServerStatus},
    router::Naming,
};

/// Several servers behind one: their tools, prompts and resources are those of one [`Server`].
///
/// Tools and prompts have the label of their server as a prefix, and URIs that two servers could have are rewritten, as in a
/// [`ClientGroup`]. Calls pass on arguments, results, progress, log messages, cancellation, questions and `_meta` in both
/// directions, across revisions. Each session of a client has its own session with each upstream.
///
/// ```
/// use oxmcp::{Client, Command, Server, Tool, stdio};
/// use oxmcp_group::{Gateway, Upstream};
///
/// # async fn run() -> oxmcp::Result<()> {
/// let weather = Server::new("weather", "1.0.0").tool(Tool::new("now", "Tell the weather", || async { "sunny" }));
/// let gateway = Gateway::new(Client::new("gateway", "1.0.0"))
///     .mount("weather", weather)
///     .mount("files", Upstream::new(|| Command::new("files-server")))
///     .start(Server::new("all", "1.0.0"))
///     .await?;
/// gateway.server().run(stdio()).await // weather_now, files_read, files_write
/// # }
/// ```
///
/// A client's authorization is never passed on: see [`Upstream::for_client`].
#[must_use = "a gateway does nothing until it is started"]
pub struct Gateway {
    client: Client,
    mounts: Vec<Mount>,
    naming: Naming,
    allow: Vec<ToolRule>,
    deny: Vec<ToolRule>,
    connect_timeout: Duration,
    limits: GatewayLimits,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<&str> = self.mounts.iter().map(|it| it.label.as_str()).collect();
        f.debug_struct("Gateway")
            .field("servers", &labels)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates a gateway without servers. The client has the name and settings to use with upstreams. It needs no handlers: the clients of
    /// the gateway answer questions.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            mounts: Vec::new(),
            naming: Naming::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            connect_timeout: Duration::from_secs(60),
            limits: GatewayLimits {
                calls: 1024,
                watches: 10_000,
                sessions: 1024,
            },
        }
    }

    /// Adds a server. The label is the prefix of its tools and prompts.
    pub fn mount(mut self, label: impl Into<String>, upstream: impl Into<Upstream>) -> Self {
        self.mounts.push(Mount {
            label: label.into(),
            upstream: upstream.into(),
        });
        self
    }

    /// Sets how tools and prompts are named.
    pub fn naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    /// Offers only the tools that an allowing rule selects, as [`ClientGroup::allow`] does.
    pub fn allow(mut self, rule: ToolRule) -> Self {
        self.allow.push(rule);
        self
    }

    /// Offers no tools that this rule selects, as [`ClientGroup::deny`] does.
    pub fn deny(mut self, rule: ToolRule) -> Self {
        self.deny.push(rule);
        self
    }

    /// Sets the time in which each server must connect and list its features. Default: 60 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the maximum number of open calls, including those that wait for an answer from their client. One client can let a
    /// quarter of them wait; a client is a principal, or a session without one. Default: 1024.
    pub fn max_calls(mut self, calls: usize) -> Self {
        self.limits.calls = calls.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Sets the maximum number of resources that clients watch. Default: 10,000.
    pub fn max_watches(mut self, resources: usize) -> Self {
        self.limits.watches = resources;
        self
    }

    /// Sets the maximum number of sessions with upstreams that clients share or keep, and also of those that are opened for one
    /// request or watch. One client can hold a quarter of each, but one for each upstream in any case; a client is a principal,
    /// or a session without one. Default: 1024.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.limits.sessions = sessions;
        self
    }

    /// Connects to all servers, and adds their features to `server`, which then serves them. Servers that fail are retried,
    /// and their features are added once they connect.
    ///
    /// The server declares logging, subscriptions and completion if an upstream that is connected by then declares them. Its
    /// own handlers of subscriptions, changed roots and unlisted resources are replaced.
    ///
    /// # Errors
    /// As for [`ClientGroup::start`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the connections are closed in the background.
    pub async fn start(self, server: Server) -> Result<GatewaySession> {
        let starting = self.connect().await?;
        starting.serve(server)
    }

    async fn connect(self) -> Result<Starting> {
        let id = GatewayId::random()?;
        let base = self.client.without_cache();
        let own = id.start();
        let mark = move |mut request: Request, next: Next| {
            let own = own.clone();
            async move {
                if !request.is_notification() {
                    request.set_meta(path::KEY, own)?;
                }
                next.run(request).await
            }
        };
        let lister = lister(&base).outgoing_layer(from_fn(mark));
        let names_questions = self.naming != Naming::unchanged();
        let mut group = ClientGroup::new(lister)
            .naming(self.naming)
            .connect_timeout(self.connect_timeout);
        for mount in &self.mounts {
            group = group.server(mount.label.clone(), mount.upstream.open(None));
        }
        group = self.allow.into_iter().fold(group, ClientGroup::allow);
        group = self.deny.into_iter().fold(group, ClientGroup::deny);
        let group = group.start()?;
        group.settled().await;
        let links = Links::new(
            base,
            self.mounts,
            self.connect_timeout,
            self.limits.sessions,
            names_questions,
        );
        Ok(Starting {
            id,
            group,
            links,
            limits: self.limits,
            names_questions,
        })
    }
}

/// The client of the sessions that read the lists. It declares what the clients of the gateway may have, because some servers
/// list a tool only for clients that have what it needs, and declines everything.
fn lister(base: &Client) -> Client {
    const REASON: &str = "cannot ask outside a call: the client has no session";
    base.for_server("")
        .on_elicit(|_: ElicitFormParams| async { ElicitAction::Decline })
        .on_elicit_url(|_: ElicitUrlParams| async { ElicitAction::Decline })
        .on_sample(|_: CreateMessageParams| async {
            Err::<CreateMessageResult, _>(Error::invalid_request(REASON))
        })
        .sampling_tools()
        .sampling_context()
        .roots([])
        .tasks()
}

/// A gateway whose servers are connected.
struct Starting {
    id: GatewayId,
    group: GroupSession,
    links: Arc<Links>,
    limits: GatewayLimits,
    names_questions: bool,
}

impl Starting {
    fn serve(self, server: Server) -> Result<GatewaySession> {
        let Self {
            id,
            group,
            links,
            limits,
            names_questions,
        } = self;
        let labels: Vec<String> = group.servers().into_iter().map(|it| it.label).collect();
        let sessions: Vec<_> = labels.iter().filter_map(|it| group.session(it)).collect();
        let has = |declares: fn(&ServerCapabilities) -> bool| {
            sessions.iter().any(|it| declares(it.server_capabilities()))
        };
        let has_logging = has(|it| it.logging.is_some());
        let has_resources = has(|it| it.resources.is_some());
        let has_subscriptions = has(|it| it.resources.as_ref().is_some_and(|it| it.subscribe));
        let needs_tasks = sessions.iter().any(tasks::has_tasks);
        let declared = extensions::merged(sessions.iter().map(ClientSession::server_capabilities));
        let server = match needs_tasks && !server.has_extension(TASKS) {
            true => server.extension(Tasks::in_memory().extension()),
            false => server,
        };
        let inner = Arc::new(Inner {
            id,
            group,
            links,
            parked: ParkedCalls::new(limits.calls),
            calls: Arc::new(Semaphore::new(limits.calls)),
            limits,
            has_tasks: server.has_extension(TASKS),
            names_questions,
            watches: Watches::new(limits.watches),
            server: OnceLock::new(),
        });
        let own = Arc::clone(&inner);
        let mut server =
            server
                .pass_unknown_methods()
                .layer(from_fn(move |request: Request, next: Next| {
                    around(Arc::clone(&own), request, next)
                }));
        for extension in declared_extensions(declared) {
            if !server.has_extension(extension.id()) {
                server = server.extension(extension);
            }
        }
        if has_logging {
            server = server.logging();
        }
        if has_resources {
            let own = Arc::clone(&inner);
            server = server.resource_fallback(move |cx: RequestContext, uri: String| {
                let own = Arc::clone(&own);
                async move { features::read(&own, &cx, &uri).await }
            });
        }
        if has_subscriptions {
            server = subscriptions(server, &inner);
        }
        let links = Arc::clone(&inner.links);
        server = server.on_roots_changed(move |front: ServerSession| {
            let links = links.of(&front);
            async move {
                for link in links {
                    // A server that has no use for it does not get it.
                    let _ = link
                        .session
                        .notify::<RootsListChanged>(NotificationParams::default())
                        .await;
                }
            }
        });
        let _ = inner.server.set(server.downgrade());
        features::follow(&inner, &server);
        Ok(GatewaySession { server, inner })
    }
}

/// Refuses the requests of loops, and ends the calls that wait for an answer when their request has ended without one.
async fn around(inner: Arc<Inner>, request: Request, next: Next) -> Result<Response> {
    let context = request.context().filter(|_| !request.is_notification());
    let Some(context) = context else {
        return extensions::serve(&inner, request, next).await;
    };
    inner.id.extend(&context.meta())?;
    let open = request_of(context);
    let response = extensions::serve(&inner, request, next).await;
    if let Some(open) = open {
        inner.parked.end(&open);
    }
    response
}

fn subscriptions(server: Server, inner: &Arc<Inner>) -> Server {
    let (begun, ended) = (Arc::clone(inner), Arc::clone(inner));
    server.on_subscribe(
        move |cx: RequestContext, uri: String| {
            let inner = Arc::clone(&begun);
            async move {
                let server = inner.server.get().cloned();
                let server = server.ok_or_else(|| Error::internal("the gateway has no server"))?;
                let session = cx.server_session();
                let is_shared = inner.shares_watch(&cx, &uri).await?;
                let key = WatchKey::new(session, is_shared, uri.clone());
                let open = inner.link_to_watch(&cx, &uri);
                inner.watches.add(&inner.group, &server, key, open).await
            }
        },
        move |session: ServerSession, uri: String| {
            let key = WatchKey::new(Some(session), false, uri);
            ended.watches.remove(&key);
            std::future::ready(())
        },
    )
}

/// A started [`Gateway`] or [`ProxyServer`]: its server, and the sessions behind it.
///
/// It can be dropped while the server is kept: the sessions end with the server.
#[derive(Clone)]
pub struct GatewaySession {
    server: Server,
    inner: Arc<Inner>,
}

impl fmt::Debug for GatewaySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GatewaySession")
            .field(&self.inner.group)
            .finish()
    }
}

impl GatewaySession {
    /// Returns the server, which can be served over any transport.
    #[must_use]
    pub fn server(&self) -> Server {
        self.server.clone()
    }

    /// Returns the state of each upstream.
    #[must_use]
    pub fn upstreams(&self) -> Vec<ServerStatus> {
        self.inner.group.servers()
    }

    /// Closes the gateway's own sessions with its upstreams, and waits until they have ended. Calls then fail.
    ///
    /// # Cancel safety
    /// Closing continues if the future is dropped.
    pub async fn close(&self) {
        self.inner.group.close().await;
    }
}

/// One server behind a server: its tools, prompts and resources under their own names.
///
/// Use it to add what the server lacks: another transport or revision, authorization, middleware.
///
/// ```
/// use oxmcp::{Client, Command, stdio};
/// use oxmcp_group::{ProxyServer, Upstream};
///
/// # async fn run() -> oxmcp::Result<()> {
/// let upstream = Upstream::new(|| Command::new("files-server"));
/// let proxy = ProxyServer::new(Client::new("proxy", "1.0.0"), upstream).start().await?;
/// proxy.server().run(stdio()).await
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a proxy does nothing until it is started"]
pub struct ProxyServer {
    gateway: Gateway,
}

impl ProxyServer {
    /// Creates a proxy for a server. The client has the name and settings to use with it, as in [`Gateway::new`].
    pub fn new(client: Client, upstream: impl Into<Upstream>) -> Self {
        let gateway = Gateway::new(client)
            .naming(Naming::unchanged())
            .mount("upstream", upstream);
        Self { gateway }
    }

    /// Changes the settings of the gateway underneath, which has only this server.
    pub fn settings(mut self, change: impl FnOnce(Gateway) -> Gateway) -> Self {
        self.gateway = change(self.gateway);
        self
    }

    /// Connects to the upstream, and creates a server with its name, version, title, description, website, icons and instructions.
    ///
    /// # Errors
    /// If the server cannot be reached.
    ///
    /// # Cancel safety
    /// As for [`Gateway::start`].
    pub async fn start(self) -> Result<GatewaySession> {
        let starting = self.gateway.connect().await?;
        let status = starting.group.servers().into_iter().next();
        let status = status.ok_or_else(|| Error::misuse("the proxy has no server"))?;
        if let ServerState::Failed { reason } = &status.state {
            return Err(Error::closed(format!(
                "the server is not connected: {reason}"
            )));
        }
        let info = status.server_info;
        let (name, version) = match &info {
            Some(info) => (info.name.clone(), info.version.clone()),
            None => ("proxy".to_owned(), "0".to_owned()),
        };
        let mut server = Server::new(name, version);
        if let Some(info) = info {
            server = info.icons.into_iter().fold(server, Server::icon);
            if let Some(title) = info.title {
                server = server.title(title);
            }
            if let Some(description) = info.description {
                server = server.description(description);
            }
            if let Some(url) = info.website_url {
                server = server.website_url(url);
            }
        }
        if let Some(instructions) = status.instructions {
            server = server.instructions(instructions);
        }
        starting.serve(server)
    }
}

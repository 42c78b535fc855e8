//! The settings of a group, and its start.

use std::{collections::HashSet, fmt, path::Path, sync::Arc, time::Duration};

use oxmcp::{
    Client, Error, Result,
    transport::{BoxTransport, Transport, boxed},
};

use super::{
    lent::Home,
    lists::{PROMPTS, RESOURCES, TOOLS},
    session::GroupSession,
    state::{Changes, Member, Shared},
    supervisor::{RESTARTED, supervise},
};
use crate::{
    config::{Config, ConfigError, Settings},
    filter::{ToolFilter, ToolRule},
    router::Naming,
};

/// The maximum number of servers: each may be a process.
const MAX_SERVERS: usize = 256;

/// The servers of a group, and its settings.
///
/// ```
/// use oxmcp::{Client, Command};
/// use oxmcp_group::ClientGroup;
/// use serde_json::json;
///
/// # async fn run() -> oxmcp::Result<()> {
/// let group = ClientGroup::new(Client::new("my-app", "1.0.0"))
///     .server("files", Command::new("files-server"))
///     .server("mail", Command::new("mail-server"))
///     .connect()
///     .await?;
/// for tool in group.tools().iter() {
///     println!("{}", tool.name); // files_read, files_write, mail_send
/// }
/// let text = group.call_tool("files_read", json!({"path": "notes.txt"})).await?;
/// # let _ = text;
/// group.close().await;
/// # Ok(())
/// # }
/// ```
///
/// The handlers of the client answer all servers: in them, [`RequestContext::server_label`](oxmcp::RequestContext::server_label)
/// returns the label of the server that asks. The group replaces the handlers of changed lists and of restarts, and has
/// [events](GroupSession::events) instead.
#[must_use = "a group does nothing until it is connected"]
pub struct ClientGroup {
    client: Client,
    servers: Vec<Server>,
    naming: Naming,
    filter: ToolFilter,
    connect_timeout: Duration,
}

struct Server {
    label: String,
    transport: BoxTransport,
    settings: Settings,
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<&str> = self.servers.iter().map(|it| it.label.as_str()).collect();
        f.debug_struct("ClientGroup")
            .field("servers", &labels)
            .field("naming", &self.naming)
            .field("filter", &self.filter)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

impl ClientGroup {
    /// Creates a group without servers. The client has the settings and handlers for all servers.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            servers: Vec::new(),
            naming: Naming::default(),
            filter: ToolFilter::default(),
            connect_timeout: Duration::from_secs(60),
        }
    }

    /// Creates a group of the servers in a host's configuration file. [`Config`] has the formats.
    ///
    /// ```no_run
    /// use oxmcp::Client;
    /// use oxmcp_group::ClientGroup;
    ///
    /// # async fn run() -> oxmcp::Result<()> {
    /// let group = ClientGroup::from_config(Client::new("my-app", "1.0.0"), "mcp.json")?.connect().await?;
    /// # let _ = group;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or contains a mistake.
    pub fn from_config(client: Client, path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Ok(Self::new(client).config(&Config::read(path)?))
    }

    /// Adds the servers of a configuration.
    pub fn config(mut self, config: &Config) -> Self {
        self.servers.extend(config.servers.iter().map(|it| Server {
            label: it.name().to_owned(),
            transport: it.transport(),
            settings: it.settings().clone(),
        }));
        self
    }

    /// Adds a server. The label is the host's name for it, by which its tools and prompts are prefixed. A transport that can
    /// connect only once, as [`in_memory`](oxmcp::in_memory()) does, cannot be connected again after it was lost.
    pub fn server(mut self, label: impl Into<String>, transport: impl Transport) -> Self {
        self.servers.push(Server {
            label: label.into(),
            transport: boxed(transport),
            settings: Settings::default(),
        });
        self
    }

    /// Sets how tools and prompts are named.
    pub fn naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    /// Offers only the tools that this rule, or another allowing rule, selects. Without such a rule, all are offered.
    pub fn allow(mut self, rule: ToolRule) -> Self {
        self.filter.allow.get_or_insert_default().push(rule);
        self
    }

    /// Offers no tools that this rule selects, even if another rule allows them. They are neither listed nor called.
    pub fn deny(mut self, rule: ToolRule) -> Self {
        self.filter.deny.push(rule);
        self
    }

    /// Sets the time in which each server must connect and list its features. Default: 60 s, because many servers are downloaded
    /// when they are started first. A configuration file may have another for a server.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects to all servers at the same time, and waits until each is connected or has failed once. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// As for [`start`](Self::start), and if a server fails that its configuration [requires](crate::ServerConfig::is_required).
    /// A server that fails otherwise is only [reported](GroupSession::servers), and tried again.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connections are closed in the background.
    pub async fn connect(self) -> Result<GroupSession> {
        let group = self.start()?;
        group.settled().await;
        for (index, member) in group.shared().members.iter().enumerate() {
            let failure = group.shared().first_failure(index);
            if let (true, Some(reason)) = (member.is_required, failure) {
                let label = &member.label;
                group.close().await;
                return Err(Error::closed(format!(
                    "the required server `{label}` is not connected: {reason}"
                )));
            }
        }
        Ok(group)
    }

    /// Begins to connect, and returns at once. [`GroupSession::settled`] waits for the first attempts. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// If two servers have the same label, a label is empty, or there are more than 256 servers.
    pub fn start(self) -> Result<GroupSession> {
        self.check()?;
        let Self {
            client,
            servers,
            naming,
            filter,
            connect_timeout,
        } = self;
        let member = |server| member(&client, server, &filter, connect_timeout);
        let members: Vec<Member> = servers.into_iter().map(member).collect();
        let count = members.len();
        let shared = Arc::new(Shared::new(members, naming));
        for index in 0..count {
            tokio::spawn(supervise(Arc::clone(&shared), index));
        }
        Ok(GroupSession::new(shared))
    }

    fn check(&self) -> Result<()> {
        if self.servers.len() > MAX_SERVERS {
            return Err(Error::misuse(format!(
                "the group has more than {MAX_SERVERS} servers; make several groups"
            )));
        }
        let mut labels = HashSet::new();
        for server in &self.servers {
            let label = server.label.as_str();
            if label.is_empty() {
                return Err(Error::misuse("the label of a server is empty"));
            }
            if !labels.insert(label) {
                return Err(Error::misuse(format!(
                    "two servers of the group are named `{label}`; rename one"
                )));
            }
        }
        Ok(())
    }
}

fn member(client: &Client, server: Server, filter: &ToolFilter, timeout: Duration) -> Member {
    let Server {
        label,
        transport,
        settings,
    } = server;
    let rules = |patterns: Vec<String>| patterns.into_iter().map(ToolRule::named).collect();
    let own = ToolFilter {
        allow: settings.allowed_tools.map(rules),
        deny: rules(settings.denied_tools),
    };
    let changes = Arc::new(Changes::default());
    let report = |kinds: u8| {
        let changes = Arc::clone(&changes);
        move |_| {
            changes.report(kinds);
            std::future::ready(())
        }
    };
    Member {
        client: client
            .for_server(&label)
            .on_tools_changed(report(TOOLS))
            .on_prompts_changed(report(PROMPTS))
            .on_resources_changed(report(RESOURCES))
            .on_restarted(report(RESTARTED)),
        label,
        home: Home::new(transport),
        filters: vec![filter.clone(), own],
        connect_timeout: settings.connect_timeout.unwrap_or(timeout),
        call_timeout: settings.call_timeout,
        is_required: settings.is_required,
        changes,
    }
}

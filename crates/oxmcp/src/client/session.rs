//! A client's end of a session: a method for every method of the specification.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use serde::Serialize;

use crate::{
    Error, Result, Revision,
    client::{
        Call, Client, Listen, Listing,
        cache::CacheMode,
        call::Params,
        peer::{ClientPeer, Negotiated},
    },
    json::write_string,
    protocol::{
        ClientCapabilities, DiscoverResult, EmptyParams, GetPromptParams, Implementation,
        LoggingLevel, Method, Notification, PaginatedParams, ProgressParams, Project, Prompt,
        ReadResourceParams, Resource, ResourceTemplate, ServerCapabilities, SetLevelParams,
        SubscribeParams, SubscriptionFilter, Task, TaskParams, Tool, method,
    },
    session::{Connection, Outcome, RequestContext},
};

/// A client's end of a session with one server. Cheap to clone; all clones are the same session.
///
/// Each method of the specification is a method here. They return a [`Call`], which is awaited for the result. A method
/// that the server's revision does not have fails with [`Error::is_unsupported`], and nothing is sent.
///
/// When the last handle is dropped, the session is closed in the background; [`close`](Self::close) does it where you
/// can wait for it. A handler that was given the session holds a handle until it returns.
#[derive(Clone)]
pub struct ClientSession {
    handle: Arc<Handle>,
}

/// Closes the session when it is dropped, with the last session that refers to it.
struct Handle {
    connection: Arc<Connection>,
    peer: Arc<ClientPeer>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.connection.begin_close();
        self.peer.client().response_cache().forget(self.peer.seat());
    }
}

/// A session that others may hold on to or not.
#[derive(Clone)]
pub(crate) struct WeakSession(Weak<Handle>);

impl WeakSession {
    /// The session, while it is open and somebody holds on to it.
    pub(crate) fn upgrade(&self) -> Option<ClientSession> {
        let handle = self.0.upgrade()?;
        (!handle.connection.is_ended()).then_some(ClientSession { handle })
    }

    /// Whether it is the session over `connection`, or of nobody any more.
    pub(crate) fn is_over(&self, connection: &Arc<Connection>) -> bool {
        let handle = self.0.upgrade();
        handle.is_none_or(|handle| Arc::ptr_eq(&handle.connection, connection))
    }
}

impl ClientSession {
    pub(crate) fn new(connection: Arc<Connection>, peer: Arc<ClientPeer>) -> Self {
        Self {
            handle: Arc::new(Handle { connection, peer }),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.handle))
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.handle.connection
    }

    /// What the server was told that this client can do.
    pub(super) fn declared(&self) -> &ClientCapabilities {
        &self.negotiated().declared
    }

    pub(super) fn peer(&self) -> &Arc<ClientPeer> {
        &self.handle.peer
    }

    /// How long a call may take that is not told otherwise.
    pub(crate) fn default_timeout(&self) -> Duration {
        self.handle.peer.client().features().timeout
    }

    fn negotiated(&self) -> &Negotiated {
        self.handle
            .peer
            .negotiated()
            .expect("a session is handed out after it was negotiated")
    }

    /// The client that this session belongs to.
    #[must_use]
    pub fn client(&self) -> Client {
        self.handle.peer.client().clone()
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.negotiated().revision
    }

    /// Name and version of the server, as it says itself. Modern servers need not say.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.negotiated().server_info.as_ref()
    }

    /// What the server can do.
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.negotiated().capabilities
    }

    /// How to use the server, for a model to read.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.negotiated().instructions.as_deref()
    }

    /// Makes any request of the specification. The other methods are short forms of this one.
    ///
    /// ```
    /// use oxmcp::protocol::{PaginatedParams, method};
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let page = session.request::<method::ListTools>(PaginatedParams::default()).await?;
    /// # let _ = page;
    /// # Ok(())
    /// # }
    /// ```
    pub fn request<M: Method>(&self, params: M::Params) -> Call<M> {
        Call::new(self, Ok(Params::Typed(Box::new(params), CacheMode::Use)))
    }

    /// Calls a tool. `arguments` is anything that serializes to an object: `json!({…})`, or a struct of your own.
    /// See [calling tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools).
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<method::CallTool> {
        let params = write_tool_params(&name.into(), &arguments).map_err(|error| {
            Error::misuse(format!("the arguments cannot be serialized: {error}")).with_source(error)
        });
        Call::new(self, params.map(Params::Written))
    }

    /// Lists tools, one page of them. [`tools`](Self::tools) gives all.
    /// See [listing tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#listing-tools).
    pub fn list_tools(&self, params: PaginatedParams) -> Call<method::ListTools> {
        self.request(params)
    }

    /// All tools.
    pub fn tools(&self) -> Listing<Tool> {
        Listing::new::<method::ListTools>(self.clone(), |page| (page.tools, page.next_cursor))
    }

    /// Gets a prompt.
    /// See [getting a prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt).
    pub fn get_prompt<K, V>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Call<method::GetPrompt>
    where
        K: Into<String>,
        V: Into<String>,
    {
        let mut params = GetPromptParams::new(name);
        let arguments = arguments
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()));
        params.arguments = Some(arguments.collect());
        self.request(params)
    }

    /// Lists prompts, one page of them. [`prompts`](Self::prompts) gives all.
    pub fn list_prompts(&self, params: PaginatedParams) -> Call<method::ListPrompts> {
        self.request(params)
    }

    /// All prompts.
    pub fn prompts(&self) -> Listing<Prompt> {
        Listing::new::<method::ListPrompts>(self.clone(), |page| (page.prompts, page.next_cursor))
    }

    /// Reads a resource.
    /// See [reading resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources).
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<method::ReadResource> {
        self.request(ReadResourceParams::new(uri))
    }

    /// Lists resources, one page of them. [`resources`](Self::resources) gives all.
    pub fn list_resources(&self, params: PaginatedParams) -> Call<method::ListResources> {
        self.request(params)
    }

    /// All resources.
    pub fn resources(&self) -> Listing<Resource> {
        Listing::new::<method::ListResources>(self.clone(), |page| {
            (page.resources, page.next_cursor)
        })
    }

    /// Lists resource templates, one page of them. [`resource_templates`](Self::resource_templates) gives all.
    pub fn list_resource_templates(
        &self,
        params: PaginatedParams,
    ) -> Call<method::ListResourceTemplates> {
        self.request(params)
    }

    /// All resource templates.
    pub fn resource_templates(&self) -> Listing<ResourceTemplate> {
        Listing::new::<method::ListResourceTemplates>(self.clone(), |page| {
            (page.resource_templates, page.next_cursor)
        })
    }

    /// Subscribes to what passes a filter (2026-07-28 and later). Await it: it is there once the server has acknowledged
    /// it, and from then on nothing is missed. There may be any number of subscriptions; each lasts until one side ends
    /// it, and no timeout applies.
    ///
    /// Who only wants to know that lists have changed, or a resource, needs none:
    /// [`Client::on_tools_changed`](crate::Client::on_tools_changed) and its siblings and
    /// [`watch_resource`](Self::watch_resource) work in every revision.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
    pub fn listen(&self, filter: SubscriptionFilter) -> Listen {
        Listen::new(self.clone(), filter)
    }

    /// Asks to be told when a resource changes (2025-11-25 and earlier). [`watch_resource`](Self::watch_resource) does it
    /// in every revision.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<method::Subscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Takes back [`subscribe`](Self::subscribe).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<method::Unsubscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Sets how severe log messages must be to be sent (2025-11-25 and earlier).
    /// See [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
    pub fn set_level(&self, level: LoggingLevel) -> Call<method::SetLevel> {
        self.request(SetLevelParams::new(level))
    }

    /// Asks how a task fares (2025-11-25 only).
    /// See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
    pub fn get_task(&self, task_id: impl Into<String>) -> Call<method::GetTask> {
        self.request(TaskParams::new(task_id))
    }

    /// Asks for the result of a task, and waits until there is one (2025-11-25 only).
    pub fn get_task_payload(&self, task_id: impl Into<String>) -> Call<method::GetTaskPayload> {
        self.request(TaskParams::new(task_id))
    }

    /// Asks the server to give a task up (2025-11-25 only).
    pub fn cancel_task(&self, task_id: impl Into<String>) -> Call<method::CancelTask> {
        self.request(TaskParams::new(task_id))
    }

    /// Lists tasks, one page of them (2025-11-25 only). [`tasks`](Self::tasks) gives all.
    pub fn list_tasks(&self, params: PaginatedParams) -> Call<method::ListTasks> {
        self.request(params)
    }

    /// All tasks (2025-11-25 only).
    pub fn tasks(&self) -> Listing<Task> {
        Listing::new::<method::ListTasks>(self.clone(), |page| (page.tasks, page.next_cursor))
    }

    /// Asks a modern server what it is (2026-07-28 and later).
    /// See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    ///
    /// # Errors
    /// Those of a [`Call`].
    ///
    /// # Cancel safety
    /// As for a [`Call`].
    pub async fn discover(&self) -> Result<DiscoverResult> {
        self.request::<method::Discover>(EmptyParams::default())
            .await
    }

    /// Asks the server for a sign of life: with `ping` where the revision has it, else with `server/discover`.
    /// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
    ///
    /// # Errors
    /// Those of a [`Call`].
    ///
    /// # Cancel safety
    /// As for a [`Call`].
    pub async fn ping(&self) -> Result<()> {
        if self.has_method(method::Ping::NAME).is_ok() {
            self.request::<method::Ping>(EmptyParams::default())
                .await
                .map(drop)
        } else {
            // What the server has said earlier is no sign of life.
            self.request::<method::Discover>(EmptyParams::default())
                .cache(CacheMode::Bypass)
                .await
                .map(drop)
        }
    }

    /// Tells the server how far a request of its is, by the token that came with it (2025-11-25 and earlier: modern
    /// servers make no requests).
    /// See [progress](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress).
    ///
    /// # Errors
    /// [`Error::is_unsupported`] where the server is modern; and where the session has ended.
    ///
    /// # Cancel safety
    /// Cancel safe: dropped while it waits for room, nothing has been sent.
    pub async fn notify_progress(&self, mut params: ProgressParams) -> Result<()> {
        let name = method::Progress::NAME;
        let revision = self.revision();
        if !method::is_in(method::NOTIFICATIONS_TO_SERVER, name, revision) {
            return Err(Error::unsupported(format!(
                "the server speaks revision {revision}, in which clients report no progress; nothing was sent"
            )));
        }
        params.project(revision);
        self.connection().notify(name, params).await
    }

    /// Closes the session: calls in flight may finish within [`Limits::drain`](crate::Limits::drain), then they fail;
    /// and notifications that have arrived are handled, within the same time. Returns when the transport is closed, and a server that was started has exited. It may be called again, and by
    /// several at once.
    ///
    /// # Errors
    /// Where the connection broke before it could be closed.
    ///
    /// # Cancel safety
    /// Closing goes on when the future is dropped.
    pub async fn close(&self) -> Result<()> {
        self.connection().begin_close();
        self.wait().await
    }

    /// Waits until the session has ended, whoever ends it.
    ///
    /// # Errors
    /// Where the connection broke.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn wait(&self) -> Result<()> {
        match self.connection().ended().await {
            Outcome::Closed => Ok(()),
            Outcome::Failed(reason) => Err(Error::closed(reason)),
        }
    }
}

/// Writes the params of `tools/call`, as `CallToolParams` has them. The arguments are serialized straight into them.
fn write_tool_params(name: &str, arguments: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(br#"{"name":"#);
    write_string(&mut out, name);
    let named = out.len();
    out.extend_from_slice(br#","arguments":"#);
    let start = out.len();
    serde_json::to_writer(&mut out, arguments)?;
    // A tool without arguments is called with nothing, `()` or `None`.
    match out.get(start..) {
        Some(b"null") => out.truncate(named),
        Some([b'{', ..]) => {}
        _ => return Err(serde::ser::Error::custom("they must be an object")),
    }
    out.push(b'}');
    Ok(out)
}

impl RequestContext {
    /// The session that a server asks over, on a client. `None` where a server handles what a client sent, and where
    /// nobody holds on to the session any more.
    #[must_use]
    pub fn client_session(&self) -> Option<ClientSession> {
        let role = Arc::clone(self.parts().connection.role());
        let peer: Arc<ClientPeer> = role.into_any().downcast().ok()?;
        peer.session()?.upgrade()
    }
}

impl fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSession")
            .field("revision", &self.revision())
            .field("server", &self.server_info())
            .finish_non_exhaustive()
    }
}

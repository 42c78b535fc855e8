//! The requests of the specification: a method of the session for each.

use oxmcp_json::write_string;
use oxmcp_protocol::{
    CompleteParams, CompletionReference, DiscoverResult, EmptyParams, GetPromptParams,
    LoggingLevel, Method, OrderedMap, PaginatedParams, Prompt, ReadResourceParams, Resource,
    ResourceTemplate, SetLevelParams, SubscribeParams, SubscriptionFilter, Task, TaskParams, Tool,
    method,
};
use serde::Serialize;

use crate::{
    client::{
        cache::options::CacheMode,
        offers::FeatureKind,
        requests::{call::Call, call_request::Params, listing::Listing},
        session::ClientSession,
        subscriptions::subscription::Listen,
    },
    error::{Error, Result},
};

impl ClientSession {
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

    /// Calls a tool. `arguments` is anything that serializes to an object: `json!({…})`, or your own struct.
    /// See [calling tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools).
    #[doc(alias = "tools/call")]
    pub fn call_tool(
        &self,
        name: impl AsRef<str>,
        arguments: impl Serialize,
    ) -> Call<method::CallTool> {
        let params = write_tool_params(name.as_ref(), &arguments);
        let params = params.map(Params::Written).map_err(|error| {
            Error::misuse(format!("could not serialize the arguments: {error}")).with_source(error)
        });
        Call::new(self, params)
    }

    /// Lists one page of tools. [`tools`](Self::tools) lists all.
    /// See [listing tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#listing-tools).
    #[doc(alias = "tools/list")]
    pub fn list_tools(&self, params: PaginatedParams) -> Call<method::ListTools> {
        self.request(params)
    }

    /// Lists all tools; none if the server has not declared the capability `tools`.
    #[doc(alias("tools/list", "list_tools"))]
    pub fn tools(&self) -> Listing<Tool> {
        let declared = Some(FeatureKind::Tools);
        Listing::new::<method::ListTools>(self, declared, |page| (page.tools, page.next_cursor))
    }

    /// Gets a prompt. `arguments` are pairs of strings, or `()` for a prompt without arguments.
    /// See [getting a prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt).
    ///
    /// ```
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let poem = session.get_prompt("poem", [("topic", "tea"), ("form", "haiku")]).await?;
    /// let greeting = session.get_prompt("greeting", ()).await?;
    /// # let _ = (poem, greeting);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "prompts/get")]
    pub fn get_prompt<Marker>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoPromptArguments<Marker>,
    ) -> Call<method::GetPrompt> {
        let mut params = GetPromptParams::new(name);
        params.arguments = arguments.into_prompt_arguments();
        self.request(params)
    }

    /// Lists one page of prompts. [`prompts`](Self::prompts) lists all.
    #[doc(alias = "prompts/list")]
    pub fn list_prompts(&self, params: PaginatedParams) -> Call<method::ListPrompts> {
        self.request(params)
    }

    /// Lists all prompts; none if the server has not declared the capability `prompts`.
    #[doc(alias("prompts/list", "list_prompts"))]
    pub fn prompts(&self) -> Listing<Prompt> {
        let declared = Some(FeatureKind::Prompts);
        Listing::new::<method::ListPrompts>(self, declared, |page| (page.prompts, page.next_cursor))
    }

    /// Reads a resource.
    /// See [reading resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#reading-resources).
    #[doc(alias = "resources/read")]
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<method::ReadResource> {
        self.request(ReadResourceParams::new(uri))
    }

    /// Lists one page of resources. [`resources`](Self::resources) lists all.
    #[doc(alias = "resources/list")]
    pub fn list_resources(&self, params: PaginatedParams) -> Call<method::ListResources> {
        self.request(params)
    }

    /// Lists all resources; none if the server has not declared the capability `resources`.
    #[doc(alias("resources/list", "list_resources"))]
    pub fn resources(&self) -> Listing<Resource> {
        let declared = Some(FeatureKind::Resources);
        Listing::new::<method::ListResources>(self, declared, |page| {
            (page.resources, page.next_cursor)
        })
    }

    /// Lists one page of resource templates. [`resource_templates`](Self::resource_templates) lists all.
    #[doc(alias = "resources/templates/list")]
    pub fn list_resource_templates(
        &self,
        params: PaginatedParams,
    ) -> Call<method::ListResourceTemplates> {
        self.request(params)
    }

    /// Lists all resource templates; none if the server has not declared the capability `resources`.
    #[doc(alias("resources/templates/list", "list_resource_templates"))]
    pub fn resource_templates(&self) -> Listing<ResourceTemplate> {
        let declared = Some(FeatureKind::Resources);
        Listing::new::<method::ListResourceTemplates>(self, declared, |page| {
            (page.resource_templates, page.next_cursor)
        })
    }

    /// Requests completions of an argument. [`complete_prompt`](Self::complete_prompt) and
    /// [`complete_resource`](Self::complete_resource) are shorter if no other argument has a value yet.
    /// See [completion](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion).
    ///
    /// ```
    /// use oxmcp::protocol::{CompleteParams, CompletionReference};
    ///
    /// # async fn run(session: oxmcp::ClientSession) -> oxmcp::Result<()> {
    /// let deploy = CompletionReference::prompt("deploy");
    /// let params = CompleteParams::new(deploy, "version", "1.").resolved("service", "shop");
    /// let versions = session.complete(params).await?.completion.values;
    /// # let _ = versions;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "completion/complete")]
    pub fn complete(&self, params: CompleteParams) -> Call<method::Complete> {
        self.request(params)
    }

    /// Requests completions of an argument of a prompt, of which the user has typed `value`.
    #[doc(alias = "completion/complete")]
    pub fn complete_prompt(
        &self,
        name: impl Into<String>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<method::Complete> {
        let reference = CompletionReference::prompt(name);
        self.complete(CompleteParams::new(reference, argument, value))
    }

    /// Requests completions of a variable of a resource template, of which the user has typed `value`.
    #[doc(alias = "completion/complete")]
    pub fn complete_resource(
        &self,
        uri_template: impl Into<String>,
        variable: impl Into<String>,
        value: impl Into<String>,
    ) -> Call<method::Complete> {
        let reference = CompletionReference::resource(uri_template);
        self.complete(CompleteParams::new(reference, variable, value))
    }

    /// Subscribes to the notifications that pass a filter (2026-07-28 and later). Await it: it returns once the server has
    /// acknowledged the subscription, and from then on no notification is missed. A session can have any number of
    /// subscriptions. Each lasts until one side ends it, and no timeout applies.
    ///
    /// To be notified only of changed lists or of a changed resource, no subscription is needed:
    /// [`Client::on_tools_changed`](crate::Client::on_tools_changed) and its siblings and
    /// [`watch_resource`](Self::watch_resource) work in every revision.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions).
    #[doc(alias = "subscriptions/listen")]
    pub fn listen(&self, filter: SubscriptionFilter) -> Listen {
        Listen::new(self.clone(), filter)
    }

    /// Subscribes to the changes of a resource (2025-11-25 and earlier). [`watch_resource`](Self::watch_resource) works in
    /// every revision.
    /// See [subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
    #[doc(alias = "resources/subscribe")]
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<method::Subscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Ends a subscription of [`subscribe`](Self::subscribe) (2025-11-25 and earlier).
    #[doc(alias = "resources/unsubscribe")]
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<method::Unsubscribe> {
        self.request(SubscribeParams::new(uri))
    }

    /// Sets the minimum severity of the log messages that the server sends (2025-11-25 and earlier).
    /// See [logging](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging).
    #[doc(alias = "logging/setLevel")]
    pub fn set_level(&self, level: LoggingLevel) -> Call<method::SetLevel> {
        self.request(SetLevelParams::new(level))
    }

    /// Requests the status of a task (2025-11-25 only).
    /// See [tasks](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks).
    #[doc(alias = "tasks/get")]
    pub fn get_task(&self, task_id: impl Into<String>) -> Call<method::GetTask> {
        self.request(TaskParams::new(task_id))
    }

    /// Requests the result of a task, and waits until there is one (2025-11-25 only).
    #[doc(alias = "tasks/result")]
    pub fn get_task_payload(&self, task_id: impl Into<String>) -> Call<method::GetTaskPayload> {
        self.request(TaskParams::new(task_id))
    }

    /// Asks the server to cancel a task (2025-11-25 only).
    #[doc(alias = "tasks/cancel")]
    pub fn cancel_task(&self, task_id: impl Into<String>) -> Call<method::CancelTask> {
        self.request(TaskParams::new(task_id))
    }

    /// Lists one page of tasks (2025-11-25 only). [`tasks`](Self::tasks) lists all.
    #[doc(alias = "tasks/list")]
    pub fn list_tasks(&self, params: PaginatedParams) -> Call<method::ListTasks> {
        self.request(params)
    }

    /// Lists all tasks (2025-11-25 only).
    #[doc(alias = "tasks/list")]
    pub fn tasks(&self) -> Listing<Task> {
        // A server may have tasks that it does not list: an empty list would mean that it has none.
        Listing::new::<method::ListTasks>(self, None, |page| (page.tasks, page.next_cursor))
    }

    /// Requests the self-description of a modern server (2026-07-28 and later). In a session with a pinned revision, the server's
    /// [name](Self::server_info) and [capabilities](Self::server_capabilities) are known from then on.
    /// See [discovery](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    ///
    /// # Errors
    /// Those of a [`Call`].
    ///
    /// # Cancel safety
    /// As for a [`Call`].
    #[doc(alias = "server/discover")]
    pub async fn discover(&self) -> Result<DiscoverResult> {
        let call = self.request::<method::Discover>(EmptyParams::default());
        let found = call.await?;
        self.note_facts(&found);
        Ok(found)
    }

    /// Checks that the server responds: with `ping` if the revision has it, else with `server/discover`.
    /// See [ping](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping).
    ///
    /// # Errors
    /// Those of a [`Call`].
    ///
    /// # Cancel safety
    /// As for a [`Call`].
    pub async fn ping(&self) -> Result<()> {
        if self.has_method(method::Ping::NAME).is_ok() {
            let call = self.request::<method::Ping>(EmptyParams::default());
            return call.await.map(drop);
        }
        // A cached response would not show that the server responds.
        let call = self.request::<method::Discover>(EmptyParams::default());
        let found = call.cache(CacheMode::Bypass).await?;
        self.note_facts(&found);
        Ok(())
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
        _ => return Err(serde::ser::Error::custom("expected an object")),
    }
    out.push(b'}');
    Ok(out)
}

/// The arguments that a prompt can be given: pairs of strings, as an array, a `Vec` or a map of them, or `()` for a prompt
/// without arguments.
///
/// `Marker` distinguishes the two cases, and callers need not name it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not valid as a prompt's arguments",
    label = "neither pairs of strings nor `()`",
    note = "pass pairs, `[(\"topic\", \"tea\")]` or a map of strings, or `()` if the prompt takes no arguments"
)]
pub trait IntoPromptArguments<Marker> {
    /// Converts the value to the arguments that are sent.
    #[doc(hidden)]
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>>;
}

impl IntoPromptArguments<()> for () {
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>> {
        None
    }
}

impl<I, K, V> IntoPromptArguments<(K, V)> for I
where
    I: IntoIterator<Item = (K, V)>,
    K: Into<String>,
    V: Into<String>,
{
    fn into_prompt_arguments(self) -> Option<OrderedMap<String>> {
        let pairs = self.into_iter();
        Some(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

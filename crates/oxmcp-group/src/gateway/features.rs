//! The features of the upstreams as features of the server: each call is passed on.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::Pin,
    sync::Arc,
};

use oxmcp::{
    CompletionInput, Error, ErrorCode, Prompt, Reply, RequestContext, Resource, ResourceTemplate,
    Result, Revision, Server, TemplateVariables, Tool, ToolError, protocol,
    protocol::{
        CallToolResult, CompleteParams, CompleteResult, Completion, CompletionContext,
        CompletionReference, ContentBlock, GetPromptResult, JsonObject, Meta, OrderedMap,
        ReadResourceResult,
        method::{CallTool, GetPrompt, ReadResource},
    },
    tasks::{TaskPolicy, TaskTool},
};
use serde_json::value::RawValue;

use super::{
    calls::{pass_on, permit, with_meta},
    path,
    state::Inner,
    tasks::policy,
};
use crate::group::GroupEvent;

/// The number of entries that are left out with a warning; the rest is left out silently.
const MAX_TOLD: usize = 1000;

/// Adds the features, and follows their changes until the gateway or the server is gone.
pub(super) fn follow(inner: &Arc<Inner>, server: &Server) {
    let mut events = inner.group.events();
    let mut served = Served::new(server);
    served.update(inner, server);
    let (inner, server) = (Arc::downgrade(inner), server.downgrade());
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let GroupEvent::Server { .. } | GroupEvent::Restarted { .. } = event {
                continue;
            }
            let (Some(inner), Some(server)) = (inner.upgrade(), server.upgrade()) else {
                return;
            };
            served.update(&inner, &server);
        }
    });
}

/// The entries that the server has from upstreams, by their names.
struct Served {
    own: Own,
    tools: HashMap<String, protocol::Tool>,
    prompts: HashMap<String, protocol::Prompt>,
    resources: HashMap<String, protocol::Resource>,
    templates: HashMap<String, protocol::ResourceTemplate>,
}

/// The names that the server has of its own. Entries of upstreams do not replace them.
struct Own {
    tools: HashSet<String>,
    prompts: HashSet<String>,
    resources: HashSet<String>,
    templates: HashSet<String>,
    is_of_template: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// The entries that the log already names.
    told: HashSet<String>,
}

impl Own {
    fn of(server: &Server) -> Self {
        Self {
            tools: server.tool_names().into_iter().collect(),
            prompts: server.prompt_names().into_iter().collect(),
            resources: server.resource_uris().into_iter().collect(),
            templates: server.resource_template_patterns().into_iter().collect(),
            is_of_template: Box::new(server.resource_template_matcher()),
            told: HashSet::new(),
        }
    }

    /// Whether a resource of the server has a URI, or a template of it that would serve it.
    fn has_uri(&self, uri: &str) -> bool {
        self.resources.contains(uri) || (self.is_of_template)(uri)
    }
}

impl Served {
    fn new(server: &Server) -> Self {
        Self {
            own: Own::of(server),
            tools: HashMap::new(),
            prompts: HashMap::new(),
            resources: HashMap::new(),
            templates: HashMap::new(),
        }
    }

    fn update(&mut self, inner: &Arc<Inner>, server: &Server) {
        let group = &inner.group;
        let (tools, prompts) = (group.tools(), group.prompts());
        let (resources, templates) = (group.resources(), group.resource_templates());
        let mut told = std::mem::take(&mut self.own.told);
        let own = &self.own;
        let tools = others(&tools, &mut told, |it| {
            (&it.name, own.tools.contains(&it.name))
        });
        let prompts = others(&prompts, &mut told, |it| {
            (&it.name, own.prompts.contains(&it.name))
        });
        let templates = others(&templates, &mut told, |it| {
            let pattern = &it.uri_template;
            (pattern, own.templates.contains(pattern))
        });
        let resources = others(&resources, &mut told, |it| (&it.uri, own.has_uri(&it.uri)));
        self.own.told = told;
        let (new, gone) = changes(&mut self.tools, &tools, |it| &it.name);
        server.remove_tools(gone);
        let marked = mark(inner, new, |it| (&it.name, &mut it.meta));
        add(
            &marked,
            |it| &it.name,
            |new| server.add_tools(new.iter().map(|it| make_tool(inner, it))),
        );
        let (new, gone) = changes(&mut self.prompts, &prompts, |it| &it.name);
        server.remove_prompts(gone);
        let marked = mark(inner, new, |it| (&it.name, &mut it.meta));
        add(
            &marked,
            |it| &it.name,
            |new| server.add_prompts(new.iter().map(|it| make_prompt(inner, it))),
        );
        let (new, gone) = changes(&mut self.resources, &resources, |it| &it.uri);
        server.remove_resources(gone);
        let marked = mark(inner, new, |it| (&it.uri, &mut it.meta));
        add(
            &marked,
            |it| &it.uri,
            |new| server.add_resources(new.iter().map(|it| make_resource(inner, it))),
        );
        let (new, gone) = changes(&mut self.templates, &templates, |it| &it.uri_template);
        server.remove_resource_templates(gone);
        let marked = mark(inner, new, |it| (&it.uri_template, &mut it.meta));
        add(
            &marked,
            |it| &it.uri_template,
            |new| server.add_resource_templates(new.iter().map(|it| make_template(inner, it))),
        );
    }
}

/// The entries that do not have a name of the server's own. `taken` tells the name of an entry, and whether the server has it.
fn others<'a, T>(
    entries: &'a [T],
    told: &mut HashSet<String>,
    taken: impl Fn(&T) -> (&String, bool),
) -> Vec<&'a T> {
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        match taken(entry) {
            (_, false) => kept.push(entry),
            (name, true) if told.len() < MAX_TOLD && told.insert(name.clone()) => {
                tracing::warn!(
                    name,
                    "leaving out an entry of a server behind the gateway: the gateway's server has one of this name"
                );
            }
            _ => {}
        }
    }
    kept
}

/// The entries that are new or have changed, and the names of those that are gone.
fn changes<T: Clone + PartialEq>(
    served: &mut HashMap<String, T>,
    now: &[&T],
    name: fn(&T) -> &String,
) -> (Vec<T>, Vec<String>) {
    let names: HashSet<&String> = now.iter().map(|it| name(it)).collect();
    let gone = served.extract_if(|name, _| !names.contains(name));
    let gone = gone.map(|(name, _)| name).collect();
    let mut new = Vec::new();
    for &entry in now {
        if served.get(name(entry)) != Some(entry) {
            served.insert(name(entry).clone(), entry.clone());
            new.push(entry.clone());
        }
    }
    (new, gone)
}

/// Marks entries with the path of gateways. Those that have come in a loop are left out.
fn mark<T>(
    inner: &Inner,
    entries: Vec<T>,
    parts: impl Fn(&mut T) -> (&String, &mut Meta),
) -> Vec<T> {
    let marked = entries.into_iter().filter_map(|mut entry| {
        let (name, meta) = parts(&mut entry);
        match inner.id.extend(meta) {
            Ok(path) => {
                let keys = meta.as_object().into_iter().flat_map(JsonObject::keys);
                let is_refused =
                    |it: &&String| !Meta::is_valid_key(it) || Meta::is_reserved_key(it);
                for key in keys.filter(is_refused).cloned().collect::<Vec<_>>() {
                    meta.remove(&key);
                }
                meta.insert(path::KEY, path);
                Some(entry)
            }
            Err(error) => {
                tracing::warn!(name, %error, "leaving out an entry of a server behind the gateway");
                None
            }
        }
    });
    marked.collect()
}

/// Adds entries at once, or one by one if the server cannot have one of them.
fn add<T>(entries: &[T], name: fn(&T) -> &String, add: impl Fn(&[T]) -> Result<()>) {
    if entries.is_empty() || add(entries).is_ok() {
        return;
    }
    for entry in entries {
        if let Err(error) = add(std::slice::from_ref(entry)) {
            let name = name(entry);
            tracing::warn!(name, %error, "leaving out an entry of a server behind the gateway");
        }
    }
}

fn make_tool(inner: &Arc<Inner>, listed: &protocol::Tool) -> Tool {
    let policy = task_policy(inner, listed);
    let (inner, name) = (Arc::clone(inner), listed.name.clone());
    let call = move |cx: RequestContext, arguments: Box<RawValue>| {
        let (inner, name) = (Arc::clone(&inner), name.clone());
        async move { Ok::<_, ToolError>(call_tool(&inner, &cx, &name, arguments).await?) }
    };
    let description = listed.description.clone().unwrap_or_default();
    let schema = listed.input_schema.get();
    let mut tool = Tool::dynamic(&listed.name, description, schema, call)
        .without_validation()
        .exact_schema();
    if let Some(schema) = &listed.output_schema {
        tool = tool.output_schema(schema.get());
    }
    let tool = tool.entry(|entry| {
        entry.title.clone_from(&listed.title);
        entry.description.clone_from(&listed.description);
        entry.annotations.clone_from(&listed.annotations);
        entry.icons.clone_from(&listed.icons);
        entry.meta.clone_from(&listed.meta);
    });
    // Another process does not have the session in which the call is open.
    match policy {
        TaskPolicy::Never => tool,
        policy => tool.task(policy).task_live(),
    }
}

/// When a call of a tool is a task.
fn task_policy(inner: &Inner, listed: &protocol::Tool) -> TaskPolicy {
    let route = inner.group.tool_route(&listed.name);
    let session = route.and_then(|(server, _)| inner.group.open_session_at(server));
    match session.filter(|_| inner.has_tasks) {
        Some(session) => policy(&session, listed),
        None => TaskPolicy::Never,
    }
}

async fn call_tool(
    inner: &Inner,
    cx: &RequestContext,
    name: &str,
    arguments: Box<RawValue>,
) -> Result<Reply<CallToolResult>> {
    let route = inner.group.tool_route(name);
    let (server, target) = route.ok_or_else(|| gone("tool", name))?;
    let called = pass_on::<CallTool>(inner, cx, (server, &target), |session| {
        session.call_tool(&target, arguments)
    });
    let mut reply = called.await?;
    if let Reply::Complete(result) = &mut reply {
        strip(&mut result.meta);
        for block in &mut result.content {
            expose(inner, server, block);
        }
    }
    Ok(reply)
}

fn make_prompt(inner: &Arc<Inner>, listed: &protocol::Prompt) -> Prompt {
    let own = Arc::clone(inner);
    let name = listed.name.clone();
    let get = move |cx: RequestContext, arguments: OrderedMap<String>| {
        let (inner, name) = (Arc::clone(&own), name.clone());
        async move { get_prompt(&inner, &cx, &name, arguments).await }
    };
    let description = listed.description.clone().unwrap_or_default();
    let arguments = listed.arguments.clone();
    let mut prompt = Prompt::dynamic(&listed.name, description, arguments, get)
        .entry(|entry| entry.clone_from(listed));
    if completes(inner, inner.group.prompt_route(&listed.name)) {
        let reference = CompletionReference::prompt(&listed.name);
        for argument in &listed.arguments {
            prompt = prompt.complete(&argument.name, completer(inner, &reference));
        }
    }
    prompt
}

async fn get_prompt(
    inner: &Inner,
    cx: &RequestContext,
    name: &str,
    arguments: OrderedMap<String>,
) -> Result<Reply<GetPromptResult>> {
    let route = inner.group.prompt_route(name);
    let (server, target) = route.ok_or_else(|| gone("prompt", name))?;
    let got = pass_on::<GetPrompt>(inner, cx, (server, &target), |session| {
        session.get_prompt(&target, arguments)
    });
    let mut reply = got.await?;
    if let Reply::Complete(result) = &mut reply {
        strip(&mut result.meta);
        for message in &mut result.messages {
            expose(inner, server, &mut message.content);
        }
    }
    Ok(reply)
}

fn make_resource(inner: &Arc<Inner>, listed: &protocol::Resource) -> Resource {
    let (inner, uri) = (Arc::clone(inner), listed.uri.clone());
    let read_it = move |cx: RequestContext| {
        let (inner, uri) = (Arc::clone(&inner), uri.clone());
        async move { read(&inner, &cx, &uri).await }
    };
    Resource::new(&listed.uri, &listed.name, read_it).entry(|entry| entry.clone_from(listed))
}

fn make_template(inner: &Arc<Inner>, listed: &protocol::ResourceTemplate) -> ResourceTemplate {
    let own = Arc::clone(inner);
    let read_it = move |cx: RequestContext, variables: TemplateVariables| {
        let inner = Arc::clone(&own);
        async move { read(&inner, &cx, variables.uri()).await }
    };
    let mut template = ResourceTemplate::dynamic(&listed.uri_template, &listed.name, read_it)
        .entry(|entry| entry.clone_from(listed));
    if completes(inner, inner.group.uri_route(&listed.uri_template).ok()) {
        let reference = CompletionReference::resource(&listed.uri_template);
        for variable in variables(&listed.uri_template) {
            template = template.complete(variable, completer(inner, &reference));
        }
    }
    template
}

/// Reads a resource of an upstream by the URI that clients use.
pub(super) async fn read(
    inner: &Inner,
    cx: &RequestContext,
    uri: &str,
) -> Result<Reply<ReadResourceResult>> {
    let (server, target) = inner.group.uri_route(uri)?;
    let reading = pass_on::<ReadResource>(inner, cx, (server, &target), |session| {
        session.read_resource(&target)
    });
    let mut reply = reading.await.map_err(|error| match is_not_found(&error) {
        true => Error::resource_not_found(uri),
        false => error,
    })?;
    if let Reply::Complete(result) = &mut reply {
        strip(&mut result.meta);
        for contents in &mut result.contents {
            inner.group.expose_uri(server, &mut contents.uri);
        }
    }
    Ok(reply)
}

/// Whether a resource does not exist. Since 2026-07-28, the error has a common code, and data by which it is known.
fn is_not_found(error: &Error) -> bool {
    let has_uri = || {
        let data = error
            .data()
            .map(|it| serde_json::from_str::<JsonObject>(it.get()));
        data.is_some_and(|it| it.is_ok_and(|it| it.contains_key("uri")))
    };
    match error.code() {
        ErrorCode::RESOURCE_NOT_FOUND => true,
        ErrorCode::INVALID_PARAMS => has_uri(),
        _ => false,
    }
}

/// Whether the upstream of a prompt or template completes arguments.
fn completes(inner: &Inner, route: Option<(usize, String)>) -> bool {
    let session = route.and_then(|(server, _)| inner.group.open_session_at(server));
    session.is_some_and(|it| {
        // The oldest revision has completion, but no capability to declare it.
        let is_oldest = Revision::ALL.iter().min() == Some(&it.revision());
        is_oldest || it.server_capabilities().completions.is_some()
    })
}

fn completer(
    inner: &Arc<Inner>,
    reference: &CompletionReference,
) -> impl Fn(RequestContext, CompletionInput) -> Pin<Box<dyn Future<Output = Result<Completion>> + Send>>
+ Send
+ Sync
+ 'static
+ use<> {
    let (inner, reference) = (Arc::clone(inner), reference.clone());
    move |cx: RequestContext, input: CompletionInput| {
        let (inner, reference) = (Arc::clone(&inner), reference.clone());
        Box::pin(async move {
            let mut params = CompleteParams::new(reference, input.argument, input.value);
            if !input.arguments.is_empty() {
                let context = CompletionContext::default().with_arguments(input.arguments);
                params.context = Some(context);
            }
            match complete(&inner, &cx, params).await {
                Ok(completed) => Ok(completed.completion),
                Err(error) if error.code() == ErrorCode::METHOD_NOT_FOUND => {
                    Ok(Completion::default())
                }
                Err(error) => Err(error),
            }
        })
    }
}

/// Completes an argument in the session of the client with the upstream: it may depend on the user.
async fn complete(
    inner: &Inner,
    cx: &RequestContext,
    mut params: CompleteParams,
) -> Result<CompleteResult> {
    let server = inner.group.completion_route(&mut params)?;
    let _permit = permit(inner)?;
    let link = inner.link(cx, server).await?;
    let call = with_meta(link.session.complete(params), inner, cx)?;
    tokio::select! {
        biased;
        () = cx.cancelled() => Err(Error::cancelled("the call was cancelled")),
        completed = call.into_future() => completed,
    }
}

/// The names of the variables in a URI template.
fn variables(template: &str) -> Vec<&str> {
    let expressions = template
        .split('{')
        .skip(1)
        .filter_map(|it| it.split_once('}'));
    let mut names = Vec::new();
    for (expression, _) in expressions {
        let list = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        for name in list.split(',') {
            let name = name.split(':').next().unwrap_or(name).trim_end_matches('*');
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Removes what the server in front writes itself.
fn strip(meta: &mut Meta) {
    if !meta.is_absent() {
        meta.remove(Meta::SERVER_INFO);
    }
}

fn expose(inner: &Inner, server: usize, block: &mut ContentBlock) {
    match block {
        ContentBlock::ResourceLink(link) => inner.group.expose_uri(server, &mut link.uri),
        ContentBlock::Resource(embedded) => {
            inner.group.expose_uri(server, &mut embedded.resource.uri);
        }
        _ => {}
    }
}

fn gone(kind: &str, name: &str) -> Error {
    let name: String = name.chars().take(200).collect();
    Error::invalid_params(format!("no server of the gateway has the {kind} `{name}`"))
}

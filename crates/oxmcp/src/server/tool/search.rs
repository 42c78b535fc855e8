//! Search over the tools of a server: two tools, one that finds the others and one that calls them, in place of a long listing.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use oxmcp_json::Text;
use oxmcp_protocol::{
    CallToolResult, RawJson, TaskSupport, ToolAnnotations, ToolExecution, ToolIndex,
    internal::RequestParams,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use super::{RegisteredTool, Tool, ToolError};
use crate::{
    error::Error,
    server::registry::{Callable, Feature, Registry},
    session::connection::RequestContext,
};

/// The default number of tools that a search returns: more cost a model more than another search.
const MAX_RESULTS: usize = 8;

/// The options of [`Server::search_tools`](crate::Server::search_tools).
///
/// ```
/// use oxmcp::SearchOptions;
///
/// let options = SearchOptions::default().max_results(5).list(["help"]);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct SearchOptions {
    search: String,
    call: String,
    max_results: usize,
    listed: BTreeSet<String>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            search: "search_tools".to_owned(),
            call: "call_tool".to_owned(),
            max_results: MAX_RESULTS,
            listed: BTreeSet::new(),
        }
    }
}

impl SearchOptions {
    /// Sets the names of the tool that searches and of the tool that calls. Default: `search_tools` and `call_tool`.
    #[must_use]
    pub fn names(mut self, search: impl Into<String>, call: impl Into<String>) -> Self {
        (self.search, self.call) = (search.into(), call.into());
        self
    }

    /// Sets the maximum number of tools that a search returns. Default: 8.
    #[must_use]
    pub fn max_results(mut self, tools: usize) -> Self {
        self.max_results = tools;
        self
    }

    /// Lists these tools as well, so that clients need not search for them.
    #[must_use]
    pub fn list<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.listed.extend(names.into_iter().map(Into::into));
        self
    }

    /// The names of all tools that are listed.
    pub(crate) fn listed(&self) -> impl Iterator<Item = String> {
        let own = [self.search.clone(), self.call.clone()];
        own.into_iter().chain(self.listed.iter().cloned())
    }

    /// The tool that searches, and the tool that calls.
    pub(crate) fn tools(&self) -> [Tool; 2] {
        let (search, call) = (&self.search, &self.call);
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "words that describe the tool: its purpose, its input"},
            },
            "required": ["query"],
        });
        let about = format!(
            "Find tools by words. Returns the names, descriptions and input schemas of the tools that fit best. \
             Call one of them with {call}."
        );
        let searching = Tool::dynamic(search, about, schema, |cx, arguments| async move {
            find(&cx, &arguments)
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": format!("the name of a tool that {search} has found")},
                "arguments": {"type": "object", "description": "the arguments, by the input schema of that tool"},
            },
            "required": ["name"],
        });
        let about = format!("Call a tool that {search} has found.");
        let calling = Tool::dynamic(call, about, schema, |cx, arguments| async move {
            Err::<CallToolResult, _>(refuse(&cx, &arguments))
        });
        let searching = searching.read_only().idempotent().open_world(false);
        [searching, calling]
    }
}

/// The search over the tools of one state of a server.
#[derive(Debug)]
pub(crate) struct ToolSearch {
    options: SearchOptions,
    /// The tools that can be found.
    tools: Vec<Arc<RegisteredTool>>,
    /// Made when it is first needed.
    index: OnceLock<ToolIndex>,
}

impl ToolSearch {
    pub(crate) fn new(options: SearchOptions) -> Self {
        Self {
            options,
            tools: Vec::new(),
            index: OnceLock::new(),
        }
    }

    /// The search over these tools. Updates the entry of the tool that calls the others.
    pub(crate) fn renewed(&self, registry: &mut Registry<RegisteredTool>) -> Self {
        let options = self.options.clone();
        let is_own = |name: &str| name == options.search || name == options.call;
        let tools = registry.after(None).filter(|tool| !is_own(tool.id()));
        let tools: Vec<_> = tools.cloned().collect();
        if let Some(call) = registry.get_any(&options.call) {
            // A client that asks for a task must get one, whichever tool it calls.
            let can_be_task = !tools.is_empty() && tools.iter().all(|tool| tool.can_be_task());
            let call = call.with_entry(|entry| {
                entry.annotations = Some(most_careful(&tools));
                entry.execution = can_be_task.then(|| {
                    let mut execution = ToolExecution::default();
                    execution.task_support = Some(TaskSupport::Optional);
                    execution
                });
            });
            registry.insert(call);
        }
        Self {
            options,
            tools,
            index: OnceLock::new(),
        }
    }

    /// The tools that fit a query, and that the caller's listing would have.
    fn find(&self, query: &str, cx: &RequestContext) -> impl Iterator<Item = &Arc<RegisteredTool>> {
        let definitions = self.tools.iter().map(|tool| tool.definition());
        let index = self.index.get_or_init(|| ToolIndex::new(definitions));
        let found = index.search(query, self.tools.len());
        let found = found.into_iter().filter_map(|at| self.tools.get(at));
        let listed = found.filter(|tool| tool.is_listed(cx));
        listed.take(self.options.max_results)
    }

    /// The tool that a call through the calling tool names, and its arguments. `None` for other calls, and for arguments that
    /// the calling tool refuses.
    pub(crate) fn target<'a>(
        &self,
        params: &RequestParams<'a>,
        is_strict: bool,
    ) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
        if params.name?.as_str()? != self.options.call {
            return None;
        }
        let sent = params.arguments.filter(|sent| sent.is_object())?;
        if sent.duplicate_key().is_some() {
            return None;
        }
        let member = |name: &str| {
            let mut members = sent.members();
            members.find_map(|(key, value)| key.is_str(name).then_some(value))
        };
        let tool = member("name")?.as_str()?;
        let arguments = member("arguments").filter(|it| !it.is_null());
        let Some(arguments) = arguments else {
            return Some((tool, "{}".into()));
        };
        if arguments.is_object() {
            return Some((tool, arguments.get().into()));
        }
        // Weak models put the object in quotes, which tools repair, too.
        let quoted = arguments.as_str().filter(|_| !is_strict)?;
        let object: &RawValue = serde_json::from_str(&quoted).ok()?;
        Text::from(object)
            .is_object()
            .then(|| (tool, object.get().to_owned().into()))
    }

    /// The params of a call through the calling tool, as those of a call of the tool that it names. `None` for other calls, and if
    /// the caller `sees` no such tool.
    pub(crate) fn redirected(
        &self,
        params: &RequestParams<'_>,
        is_strict: bool,
        sees: impl FnOnce(&RegisteredTool) -> bool,
    ) -> Option<Box<str>> {
        let (name, arguments) = self.target(params, is_strict)?;
        let tools = &self.tools;
        let at = tools.binary_search_by(|tool| tool.id().cmp(&*name)).ok()?;
        if !sees(tools.get(at)?) {
            return None;
        }
        let name = serde_json::to_string(&*name).ok()?;
        let mut text = format!(r#"{{"name":{name},"arguments":{arguments}"#);
        let others = params.raw.members();
        for (key, value) in
            others.filter(|(key, _)| !key.is_str("name") && !key.is_str("arguments"))
        {
            text.push(',');
            text.push_str(key.get());
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        Some(text.into())
    }
}

/// The annotations of a tool that can call any of these: each hint is the most careful one.
fn most_careful(tools: &[Arc<RegisteredTool>]) -> ToolAnnotations {
    let hints = |hint: fn(&ToolAnnotations) -> Option<bool>| {
        tools.iter().map(move |tool| {
            let annotations = tool.definition().annotations.as_ref();
            annotations.and_then(hint)
        })
    };
    let is_read_only = hints(|it| it.read_only_hint).all(|it| it == Some(true));
    let is_idempotent = hints(|it| it.idempotent_hint).all(|it| it == Some(true));
    // A tool that changes nothing destroys nothing, whether or not it says so.
    let mut destructive = tools.iter().map(|tool| {
        let annotations = tool.definition().annotations.as_ref();
        let is_read_only = annotations.and_then(|it| it.read_only_hint) == Some(true);
        !is_read_only && annotations.and_then(|it| it.destructive_hint) != Some(false)
    });
    ToolAnnotations::default()
        .with_read_only_hint(is_read_only)
        .with_destructive_hint(destructive.any(|it| it))
        .with_idempotent_hint(is_idempotent)
        .with_open_world_hint(hints(|it| it.open_world_hint).any(|it| it != Some(false)))
}

/// The result of a search.
fn find(cx: &RequestContext, arguments: &RawValue) -> Result<CallToolResult, ToolError> {
    #[derive(Deserialize)]
    struct Query {
        query: String,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Found<'a> {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: &'a RawJson,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a ToolAnnotations>,
    }
    let Query { query } = serde_json::from_str(arguments.get())?;
    let features = cx.server()?.features().clone();
    let Some(search) = &features.tool_search else {
        return Err(Error::internal("the server has no search over its tools").into());
    };
    let found: Vec<_> = search
        .find(&query, cx)
        .map(|tool| tool.definition())
        .map(|tool| Found {
            name: &tool.name,
            description: tool.description.as_deref(),
            input_schema: &tool.input_schema,
            annotations: tool.annotations.as_ref(),
        })
        .collect();
    if found.is_empty() {
        return Ok(CallToolResult::text(
            "No tool fits. Try other words, such as synonyms or the kind of data.",
        ));
    }
    Ok(CallToolResult::structured(&json!({"tools": found}))?)
}

/// The error of a call through the calling tool that names no tool.
fn refuse(cx: &RequestContext, arguments: &RawValue) -> ToolError {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named: Named = match serde_json::from_str(arguments.get()) {
        Ok(named) => named,
        Err(error) => return error.into(),
    };
    let name = crate::logged::cut(&named.name, 128).into_owned();
    let features = match cx.server() {
        Ok(server) => server.features().clone(),
        Err(error) => return error.into(),
    };
    let Some(search) = &features.tool_search else {
        return Error::internal("the server has no search over its tools").into();
    };
    if features.tools.get(&named.name, cx).is_some() {
        return ToolError::new(format!("The arguments of {name} must be an object."));
    }
    let similar: Vec<_> = search.find(&name, cx).map(|tool| tool.id()).collect();
    let similar = match similar.as_slice() {
        [] => String::new(),
        similar => format!(" Similar tools: {}.", similar.join(", ")),
    };
    let search = &search.options.search;
    ToolError::new(format!(
        "There is no tool {name:?}. Find tools with {search}.{similar}"
    ))
}

//! Search over the tools of a group for models: two tools in place of all, one that finds the others and one that calls them.

use oxmcp::{
    Error, Result,
    protocol::{CallToolResult, JsonObject, Tool, ToolAnnotations},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::session::GroupSession;

/// The name of the tool that searches.
const SEARCH: &str = "search_tools";

/// The name of the tool that calls.
const CALL: &str = "call_tool";

/// The default number of tools that a search returns: more cost a model more than another search.
const MAX_RESULTS: usize = 8;

/// A search over the tools of a group, for models that are not to see hundreds of tools: they see only two, one that searches and
/// one that calls. [`GroupSession::tool_search`] creates it.
///
/// ```
/// use oxmcp_group::ModelApi;
/// use serde_json::json;
///
/// # async fn run(group: oxmcp_group::GroupSession) -> oxmcp::Result<()> {
/// let search = group.tool_search().max_results(5);
/// let definitions = ModelApi::AnthropicMessages.tools(search.tools().iter());
/// // The calls of the model:
/// let found = search.call("search_tools", json!({"query": "create an issue"})).await?;
/// let created = search.call("call_tool", json!({"name": "git_create_issue", "arguments": {"title": "tea"}})).await?;
/// # let _ = (definitions, found, created);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ToolSearch {
    group: GroupSession,
    max_results: usize,
}

/// A tool that was found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found<'a, Schema> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a Schema,
}

impl GroupSession {
    /// Creates a search over the tools, with two tools for a model.
    #[must_use]
    pub fn tool_search(&self) -> ToolSearch {
        ToolSearch {
            group: self.clone(),
            max_results: MAX_RESULTS,
        }
    }
}

impl ToolSearch {
    /// Sets the maximum number of tools that a search returns. Default: 8.
    #[must_use]
    pub fn max_results(mut self, tools: usize) -> Self {
        self.max_results = tools;
        self
    }

    /// Returns the two tools: `search_tools` and `call_tool`. The hints of the calling tool are the most careful of all tools: it is
    /// read-only only if all of them are.
    #[must_use]
    pub fn tools(&self) -> [Tool; 2] {
        let query = json!({"type": "string", "description": "words that describe the tool: its purpose, its input"});
        let schema =
            json!({"type": "object", "properties": {"query": query}, "required": ["query"]});
        let about = format!(
            "Find tools by words. Returns the names, descriptions and input schemas of the tools that fit best. Call one of them with {CALL}."
        );
        let hints = ToolAnnotations::default()
            .with_read_only_hint(true)
            .with_open_world_hint(false);
        let search = Tool::new(SEARCH, schema).with_description(about);
        let name = json!({"type": "string", "description": format!("the name of a tool that {SEARCH} has found")});
        let arguments = json!({"type": "object", "description": "the arguments, by the input schema of that tool"});
        let schema = json!({
            "type": "object",
            "properties": {"name": name, "arguments": arguments},
            "required": ["name"],
        });
        let call = Tool::new(CALL, schema)
            .with_description(format!("Call a tool that {SEARCH} has found."))
            .with_annotations(self.most_careful());
        [search.with_annotations(hints), call]
    }

    fn most_careful(&self) -> ToolAnnotations {
        let tools = self.group.tools();
        let all = |hint: fn(&ToolAnnotations) -> Option<bool>, safe: bool| {
            let mut hints = tools
                .iter()
                .map(|it| it.annotations.as_ref().and_then(hint));
            hints.all(|it| it == Some(safe))
        };
        ToolAnnotations::default()
            .with_read_only_hint(all(|it| it.read_only_hint, true))
            .with_destructive_hint(!all(|it| it.destructive_hint, false))
            .with_idempotent_hint(all(|it| it.idempotent_hint, true))
            .with_open_world_hint(!all(|it| it.open_world_hint, false))
    }

    /// Makes a call of a model: of one of the two tools, or of any tool of the group, since models remember names. A call through
    /// `call_tool` is [one of the group](GroupSession::call_tool). Arguments that do not fit are an error of the tool, for the model.
    ///
    /// # Errors
    /// Those of [`GroupSession::call_tool`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<CallToolResult> {
        let member = |name: &str| arguments.get(name).cloned();
        match name {
            SEARCH => match member("query") {
                Some(Value::String(query)) => self.find(&query),
                _ => Ok(CallToolResult::error("query: expected a string")),
            },
            CALL => match (member("name"), member("arguments")) {
                (Some(Value::String(name)), Some(arguments @ Value::Object(_))) => {
                    self.group.call_tool(name, arguments).await
                }
                (Some(Value::String(name)), None | Some(Value::Null)) => {
                    self.group.call_tool(name, JsonObject::new()).await
                }
                (Some(Value::String(_)), Some(_)) => {
                    Ok(CallToolResult::error("arguments: expected an object"))
                }
                _ => Ok(CallToolResult::error("name: expected a string")),
            },
            name => self.group.call_tool(name, arguments).await,
        }
    }

    fn find(&self, query: &str) -> Result<CallToolResult> {
        let found = self.group.search_tools(query, self.max_results);
        let entries = found.iter().map(|tool| Found {
            name: &tool.name,
            description: tool.description.as_deref(),
            input_schema: &tool.input_schema,
        });
        let text = serde_json::to_string(&entries.collect::<Vec<_>>());
        text.map(CallToolResult::text)
            .map_err(|error| Error::internal(format!("could not write the tools: {error}")))
    }
}

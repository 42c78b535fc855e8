//! Methods of a server to add and remove tools.

use std::sync::Arc;

use oxmcp_protocol::CacheHint;

use super::{RegisteredTool, SearchOptions, Tool, ToolSearch};
use crate::{
    error::Result,
    server::{registry::IntoFeature, server::Server},
    session::handler::state_scope::{OfState, StateScope},
};

impl Server {
    /// Adds a tool. The names of a server's tools must be unique.
    ///
    /// Mistakes in the tool are reported by [`check`](Self::check), and when the server begins to serve.
    #[must_use]
    #[doc(alias("tools/list", "tools/call"))]
    pub fn tool(self, tool: impl IntoFeature<Tool>) -> Self {
        self.tools([tool.into_feature()])
    }

    /// Adds tools, like [`tool`](Self::tool). Clients list them sorted by name. `tools([])` declares the capability without any
    /// tools, so that they can be added later.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.extended(registered(tools))
    }

    /// Adds tools to a server that may be running, and notifies connected clients. Replaces tools with the same names.
    ///
    /// # Errors
    /// If the name or the schema of a tool is invalid, or, on a server that may be running, its `_meta`. Then no tool is added.
    ///
    /// ```
    /// use oxmcp::{Server, Tool};
    ///
    /// let server = Server::new("clock", "1.0.0");
    /// // … and later, while it serves:
    /// server.add_tools([Tool::new("now", "Tell the time", || async { "ten past two" })])?;
    /// server.remove_tools(["now"]);
    ///
    /// let error = server.add_tools([Tool::new("right now", "Tell the time", || async { "" })]);
    /// assert!(error.unwrap_err().to_string().contains("' ' is not allowed"));
    /// # Ok::<(), oxmcp::Error>(())
    /// ```
    pub fn add_tools(&self, tools: impl IntoIterator<Item = Tool>) -> Result<()> {
        self.add(registered(tools)?)
    }

    /// Removes tools by name, and notifies connected clients of the change. Unknown names are ignored.
    pub fn remove_tools<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.remove::<RegisteredTool>(names);
    }

    /// Returns the names of all tools, also of those that only some callers see.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.ids::<RegisteredTool>()
    }

    /// Replaces the listing of tools by a search: clients list only two tools, one that finds the others by words, and one that
    /// calls them.
    ///
    /// It is for servers with so many tools that their listing would fill the context of a model, or exceed what a host allows.
    /// The search ranks the tools that the caller would list by the words of their names, descriptions and arguments. A call
    /// through the calling tool is a call of the tool found: its visibility, scopes, validation, layers, questions, tasks, result
    /// and span are those of that tool, and so is what [middleware](crate::middleware) sees. The annotations of the calling tool are
    /// the most careful of all tools: it is read-only only if all of them are. The other tools can also be called directly.
    ///
    /// ```
    /// use oxmcp::{SearchOptions, Server, Tool, testing};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> oxmcp::Result<()> {
    /// let now = Tool::new("now", "Tell the time of day", || async { "ten past two" });
    /// let dice = Tool::new("dice", "Roll a die", || async { 4 });
    /// let server = Server::new("many", "1.0.0").tools([now, dice]).search_tools(SearchOptions::default());
    /// let client = testing::connect(&server).await?;
    /// let found = client.call_tool("search_tools", json!({"query": "what time is it"})).await?;
    /// assert!(found.to_text().contains("now"));
    /// let time = client.call_tool("call_tool", json!({"name": "now"})).await?;
    /// assert_eq!(time.to_text(), "ten past two");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn search_tools(self, options: SearchOptions) -> Self {
        let tools = options.tools();
        self.tools(tools).with(|features| {
            features.tools.list_only(options.listed());
            features.tool_search = Some(Arc::new(ToolSearch::new(options)));
        })
    }

    /// Sets the cache hint of the listing of tools: how long it stays fresh, and whether it may be shared. If some tools are
    /// [visible only to some callers](Tool::visible_to), the listing is private, regardless of the hint.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_tools(self, hint: CacheHint) -> Self {
        self.with(|features| features.tools.cache = hint)
    }
}

impl<State: Clone + Send + Sync + 'static> StateScope<Server, State> {
    /// Adds a tool: a [`Tool`], or a function like `query::tool` that makes one from the state. See [`Server::tool`].
    pub fn tool<Marker>(&self, tool: impl OfState<Tool, State, Marker>) -> &Self {
        self.role()
            .build(|server| server.tool(tool.of_state(self.state())));
        self
    }

    /// Adds tools, like [`tool`](Self::tool).
    pub fn tools<Marker, T: OfState<Tool, State, Marker>>(
        &self,
        tools: impl IntoIterator<Item = T>,
    ) -> &Self {
        for tool in tools {
            self.tool(tool);
        }
        self
    }
}

fn registered(tools: impl IntoIterator<Item = Tool>) -> Result<Vec<Arc<RegisteredTool>>> {
    tools.into_iter().map(RegisteredTool::new).collect()
}

#[cfg(feature = "http-server")]
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(schema: serde_json::Value) -> Tool {
        Tool::dynamic("move", "Move it", schema, |_, _| async { Ok("moved") })
    }

    #[test]
    fn argument_headers_are_checked_when_tool_is_added() {
        let annotated = |name: &str| {
            let region = json!({"type": "string", "x-mcp-header": name});
            json!({"type": "object", "properties": {"region": region}})
        };
        let server = Server::new("mover", "1.0.0");
        server.add_tools([tool(annotated("Region"))]).unwrap();
        assert!(server.features().param_headers("move").is_some());
        assert!(server.features().param_headers("stay").is_none());
        let error = server.add_tools([tool(annotated("Re gion"))]).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("\"move\"") && message.contains("/properties/region"),
            "{message}"
        );
        server.add_tools([tool(json!({"type": "object"}))]).unwrap();
        assert!(server.features().param_headers("move").is_none());
    }
}

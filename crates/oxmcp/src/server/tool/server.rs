//! Methods of a server that add and remove tools.

use std::sync::Arc;

use oxmcp_protocol::CacheHint;

use super::{RegisteredTool, Tool};
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

    /// Adds tools, as [`tool`](Self::tool) does. Clients get them sorted by name. `tools([])`, with no tools, declares the
    /// capability, so that tools can be added later.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.extended(registered(tools))
    }

    /// Adds tools to a server that may be serving already. A tool with the same name is replaced. Connected clients are
    /// notified that the list has changed.
    ///
    /// # Errors
    /// If the name or the schema of a tool is not allowed, or, on a server that may be serving, its `_meta`. Then none of the
    /// tools is added.
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

    /// Removes tools by name; unknown names are ignored. Connected clients are notified if the list has changed.
    pub fn remove_tools<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.remove::<RegisteredTool>(names);
    }

    /// Sets the cache hint of the list of tools: how long it stays fresh, and whether it may be shared. If some tools are
    /// [visible to some callers only](Tool::visible_to), the list is private, regardless of the hint.
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

    /// Adds tools, as [`tool`](Self::tool) does.
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
    fn headers_of_arguments_are_found_out_when_a_tool_is_added() {
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

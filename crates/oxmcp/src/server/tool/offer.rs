//! The tools of a server: adding them, removing them, calling them.

use std::sync::Arc;

use super::{RegisteredTool, Tool};
#[cfg(feature = "http-server")]
use crate::protocol::http_headers::ParamHeaders;
use crate::{
    Result,
    json::Text,
    protocol::{CacheHint, ListToolsResult, SubscriptionFilter, Tool as Definition, method},
    server::{
        Server,
        ask::Asks,
        by_name::Named,
        features::Features,
        registry::{Feature, Registry, Visibility},
    },
    session::{RequestContext, Work},
};

impl Feature for RegisteredTool {
    type Definition = Definition;
    type Page = ListToolsResult;

    fn id(&self) -> &str {
        &self.definition.name
    }

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn visibility(&self) -> Option<&Visibility> {
        self.visibility.as_ref()
    }

    fn changed() -> SubscriptionFilter {
        SubscriptionFilter::default().with_tools_list_changed(true)
    }

    fn registry(features: &Features) -> &Registry<Self> {
        &features.tools
    }

    fn registry_mut(features: &mut Features) -> &mut Registry<Self> {
        &mut features.tools
    }
}

impl Named for RegisteredTool {
    type Request = method::CallTool;
    const KIND: &'static str = "tool";

    fn asks(&self) -> Asks {
        self.asks
    }

    fn work(self: &Arc<Self>, context: RequestContext, arguments: Text<'_>) -> Work {
        self.call(context, arguments)
    }
}

/// What the headers of a tool's calls have to say.
#[cfg(feature = "http-server")]
pub(crate) struct Expected<'a> {
    pub(crate) headers: &'a ParamHeaders,
    /// Whether every caller sees the tool.
    pub(crate) is_for_all: bool,
}

#[cfg(feature = "http-server")]
impl Features {
    /// Which arguments of a tool headers repeat. `None` where there are none, and where there is no such tool.
    pub(crate) fn param_headers(&self, tool: &str) -> Option<Expected<'_>> {
        let tool = self.tools.find(tool)?;
        let headers = tool.param_headers()?;
        let is_for_all = tool.visibility.is_none();
        Some(Expected {
            headers,
            is_for_all,
        })
    }
}

impl Server {
    /// Adds a tool, in place of one with the same name.
    ///
    /// What is wrong with it is reported by [`run`](Self::run) and [`connect`](Self::connect).
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.tools([tool])
    }

    /// Adds tools, as [`tool`](Self::tool) does. With none, `tools([])` tells clients that there may be tools later.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.note(self.add_tools(tools));
        self
    }

    /// Adds tools to a server that may be serving already, each in place of one with the same name. Connected clients
    /// are told that the list has changed.
    ///
    /// # Errors
    /// Where a tool's name or schema is not allowed. Then none of them is added.
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
        let tools = tools
            .into_iter()
            .map(RegisteredTool::new)
            .collect::<Result<Vec<_>>>()?;
        self.offer(tools);
        Ok(())
    }

    /// Removes tools by name; names that are unknown are ignored. Connected clients are told if the list has changed.
    pub fn remove_tools<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) {
        self.withdraw::<RegisteredTool>(names);
    }

    /// What clients are told of the list of tools: how long it stays fresh, and who may share it. Where some tools are
    /// [not for everybody](Tool::visible_to), nobody may share it, whatever is said here.
    /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
    #[must_use]
    pub fn cache_tools(self, hint: CacheHint) -> Self {
        self.change(|features| features.tools.cache = hint);
        self
    }
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

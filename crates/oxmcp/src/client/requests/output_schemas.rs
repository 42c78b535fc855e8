//! The output schemas of a session's tools, as they were listed last, and the validation of results against them.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use oxmcp_protocol::{CallToolResult, ListToolsResult, RawJson};
use oxmcp_schema::Schema;

use crate::{
    error::{Error, Result},
    logged::Logged,
    sync::Mutex,
};

/// The approximate bytes that the map and the allocator take for an entry.
const ENTRY_BYTES: usize = 128;

/// The output schemas, by the names of their tools.
#[derive(Debug, Default)]
pub(crate) struct OutputSchemas {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    by_tool: HashMap<String, Arc<OutputSchema>>,
    /// The sum of the [weights](weight) of the entries.
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct OutputSchema {
    raw: RawJson,
    /// The schema, compiled for the first result. `None` if it cannot be compiled.
    compiled: OnceLock<Option<Schema>>,
}

impl OutputSchemas {
    /// Learns the schemas of a page of listed tools. All schemas together take no more bytes than a list may have
    /// (`limit`).
    pub(crate) fn learn(&self, page: &ListToolsResult, limit: usize) {
        let mut state = self.state.lock();
        for tool in &page.tools {
            if state.knows(&tool.name, tool.output_schema.as_ref()) {
                continue;
            }
            state.remove(&tool.name);
            let Some(raw) = tool.output_schema.clone() else {
                continue;
            };
            let bytes = weight(&tool.name, &raw);
            if state.bytes.saturating_add(bytes) > limit {
                tracing::debug!(tool = %Logged(&tool.name), "not validating the results of a tool: output schemas exceed the limit");
                continue;
            }
            state.bytes += bytes;
            let schema = OutputSchema {
                raw,
                compiled: OnceLock::new(),
            };
            state.by_tool.insert(tool.name.clone(), Arc::new(schema));
        }
    }

    /// Forgets all schemas, after the tools have changed.
    pub(crate) fn forget(&self) {
        *self.state.lock() = State::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.lock().by_tool.is_empty()
    }

    pub(crate) fn get(&self, tool: &str) -> Option<Arc<OutputSchema>> {
        self.state.lock().by_tool.get(tool).cloned()
    }
}

impl State {
    fn remove(&mut self, tool: &str) {
        if let Some(schema) = self.by_tool.remove(tool) {
            self.bytes -= weight(tool, &schema.raw);
        }
    }

    /// Whether a tool has this very schema already. It may be compiled, or a warning may have been logged that it cannot
    /// be.
    fn knows(&self, tool: &str, raw: Option<&RawJson>) -> bool {
        let known = self.by_tool.get(tool).map(|it| it.raw.get());
        known.is_some() && known == raw.map(|it| it.get())
    }
}

/// The size of an entry in bytes: the schema as text and compiled, which is about as long, its name, and its place in the
/// map.
fn weight(tool: &str, raw: &RawJson) -> usize {
    tool.len() + 2 * raw.get().len() + size_of::<OutputSchema>() + ENTRY_BYTES
}

impl OutputSchema {
    /// Validates the structured content of a result against the schema. The result of a tool that failed is not checked.
    ///
    /// # Errors
    /// If the content does not match the schema. The error names the tool, the violated rule, and its place.
    pub(crate) fn check(&self, tool: &str, result: &CallToolResult) -> Result<()> {
        let (Some(content), false) = (&result.structured_content, result.is_error) else {
            return Ok(());
        };
        let compiled = self.compiled.get_or_init(|| {
            Schema::from_raw(&self.raw)
                .inspect_err(|error| {
                    tracing::warn!(tool = %Logged(tool), error = %Logged(error), "not validating the results of a tool: unusable output schema");
                })
                .ok()
        });
        let Some(schema) = compiled else {
            return Ok(());
        };
        schema.validate(content).map_err(|broken| {
            Error::decode(format!(
                "the result of tool {tool:?} does not match its output schema: {broken}; \
                 `Client::validate_results(false)` accepts it"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn learn(schemas: &OutputSchemas, schema: &str, limit: usize) {
        let page = json!({"tools": [{
            "name": "t",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": schema},
        }]});
        let page: ListToolsResult = serde_json::from_str(&page.to_string()).unwrap();
        schemas.learn(&page, limit);
    }

    #[test]
    fn unchanged_schema_is_kept() {
        let schemas = OutputSchemas::default();
        learn(&schemas, "object", 10_000);
        let first = schemas.get("t").unwrap();
        learn(&schemas, "object", 10_000);
        assert!(Arc::ptr_eq(&first, &schemas.get("t").unwrap()));
        learn(&schemas, "string", 10_000);
        assert!(!Arc::ptr_eq(&first, &schemas.get("t").unwrap()));
    }

    #[test]
    fn cached_schema_counts_more_than_its_text() {
        let schemas = OutputSchemas::default();
        learn(&schemas, "object", 150);
        assert!(schemas.get("t").is_none());
        learn(&schemas, "object", 10_000);
        let bytes = schemas.state.lock().bytes;
        schemas.state.lock().remove("t");
        assert!(bytes > 150 && schemas.state.lock().bytes == 0);
    }
}

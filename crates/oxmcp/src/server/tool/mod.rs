//! Tools: functions that a model can call.
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).
//!
//! # Where it is decided
//!
//! - Structured results for older revisions: `Structured` (`output.rs`) adds the text in every revision; `structured_content` in
//!   oxmcp-protocol `revision/projection/tools.rs` drops the rest (up to 2025-03-26) or wraps it, and `CallToolResult::project`
//!   marks wrapped content in `_meta`. Output schemas: `Tool::project`. Clients read with `read_structured`
//!   (`client/requests/results.rs`).
//! - Error texts that a model reads. Invalid arguments: oxmcp-schema `explain/rules.rs`, and `refusal.rs` for types that accept
//!   less than their schema, called by `ToolSchemas::refused` (`handler.rs`), which first tries to repair them with oxmcp-schema
//!   `mend.rs`. Misspelled names: `explain/misspelt.rs`. Duplicate keys: `duplicate_key` in `server/registry.rs`. Failures:
//!   `error.rs`. An unknown tool is a protocol error: `Call::unknown` in `server/dispatch/call.rs`.

pub(crate) mod attribute;
mod definition;
mod error;
mod handler;
mod layer;
mod output;
mod registered;
mod search;
mod server;
mod stored_call;
mod transform;

pub use definition::Tool;
pub use error::{IntoToolError, OrToolError, ToolError};
pub use handler::{ToolArguments, ToolInput};
pub use layer::{DetachableCall, ToolCall, ToolResponse};
pub(crate) use output::CheckedResult;
pub use output::{IntoToolResult, Structured, StructuredContent, Wrapped};
#[cfg(feature = "http-server")]
pub(crate) use registered::ExpectedHeaders;
pub(crate) use registered::RegisteredTool;
pub use search::SearchOptions;
pub(crate) use search::ToolSearch;
pub(crate) use stored_call::StoredCall;
pub use transform::{ArgumentTransform, ToolTransform};

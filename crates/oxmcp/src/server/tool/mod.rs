//! Tools: functions that a model can call.
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).
//!
//! | file | contents |
//! |---|---|
//! | `definition.rs` | [`Tool`] |
//! | `handler.rs` | the functions that can be handlers, their arguments, and the validation of arguments and results |
//! | `output.rs` | the types that a handler may return |
//! | `layer.rs` | layers around the calls of a tool, which can answer differently, and detach a call from its request |
//! | `stored_call.rs` | a call in its stored form, which can be repeated |
//! | `error.rs` | the error of a tool |
//! | `registered.rs` | a tool in a server's registry, which requests can call |
//! | `attribute.rs` | the attribute `#[tool]` |
//! | `server.rs` | adding and removing the tools of a server |

pub(super) mod attribute;
mod definition;
mod error;
mod handler;
mod layer;
mod output;
mod registered;
mod server;
mod stored_call;

pub use definition::Tool;
pub use error::{IntoToolError, OrToolError, ToolError};
pub use handler::{ToolArguments, ToolInput};
pub use layer::{DetachableCall, ToolCall, ToolResponse};
pub(super) use output::CheckedResult;
pub use output::{IntoToolResult, Structured, StructuredContent, Wrapped};
#[cfg(feature = "http-server")]
pub(crate) use registered::ExpectedHeaders;
pub(crate) use registered::RegisteredTool;
pub(crate) use stored_call::StoredCall;

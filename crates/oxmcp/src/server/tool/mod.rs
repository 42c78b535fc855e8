//! Tools: functions that a model may call.
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).
//!
//! | file | what is in it |
//! |---|---|
//! | `definition.rs` | [`Tool`] |
//! | `handler.rs` | the functions that can be a handler, their arguments, and the validation of both ends |
//! | `output.rs` | what a handler may return |
//! | `layer.rs` | code around the calls of a tool, which can answer otherwise, and go on when the call was answered |
//! | `stored_call.rs` | a call as it is stored, to be made again |
//! | `error.rs` | what it may fail with |
//! | `registered.rs` | a tool in a server's registry, which requests call |
//! | `attribute.rs` | `#[tool]`, which makes one of a function |
//! | `server.rs` | adding tools to a server and removing them |

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

//! Tools: what a model may call.
//! See [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools).

mod definition;
mod error;
mod handler;
mod name;
mod offer;
mod output;
mod registered;

pub use definition::Tool;
pub use error::{IntoToolError, ToolError};
pub use handler::{ToolArguments, ToolInput};
pub use output::{IntoToolResult, Structured};
pub(crate) use registered::RegisteredTool;

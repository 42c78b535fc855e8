//! The server: what it offers, to whom, and how requests are served.

mod changes;
mod features;
mod handle;
mod listen;
mod lists;
mod methods;
mod peer;
mod registry;
mod session;
mod span;
mod tool;

use crate::session::{failure, handler};
pub use handle::Server;
pub use session::ServerSession;
pub use tool::{
    IntoToolError, IntoToolResult, Structured, Tool, ToolArguments, ToolError, ToolInput,
};

//! The server: what it offers, to whom, and how requests are served.

mod changes;
mod features;
mod handle;
mod lists;
mod methods;
mod peer;
mod registry;
mod session;
pub mod tool;

pub use handle::Server;
pub use session::ServerSession;
pub use tool::{IntoToolResult, Structured, Tool, ToolError, ToolHandler, ToolInput};

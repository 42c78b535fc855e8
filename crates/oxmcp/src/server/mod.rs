//! The server: what it offers, to whom, and how requests are served.

mod changes;
mod failure;
mod features;
mod handle;
mod handler;
mod listen;
mod lists;
mod methods;
mod peer;
mod registry;
mod session;
mod span;
mod tool;

pub use failure::IntoError;
pub use handle::Server;
pub use handler::{Handler, HandlerContext, HandlerFuture};
pub use session::ServerSession;
pub use tool::{
    IntoToolError, IntoToolResult, Structured, Tool, ToolArguments, ToolError, ToolInput,
};

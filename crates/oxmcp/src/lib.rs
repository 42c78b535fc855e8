//! The Model Context Protocol SDK for Rust.

mod client;
mod codec;
mod error;
mod jsonrpc;
mod limits;
pub mod protocol;
mod schema;
mod server;
mod session;
pub mod testing;
pub mod transport;

pub use client::{Call, Client, ClientSession, Listing};
pub use error::{Error, Result};
pub use jsonrpc::{ErrorCode, ErrorObject, RequestId};
pub use limits::Limits;
pub use oxmcp_macros::JsonSchema;
pub use protocol::Revision;
pub use schema::{JsonSchema, Schema, SchemaOptions, Violation, Violations};
pub use server::{
    IntoToolResult, Server, ServerSession, Structured, Tool, ToolError, ToolHandler, ToolInput,
};
pub use session::{Progress, ReportProgress, RequestContext, middleware};
pub use transport::{Command, in_memory, stdio};

// So that derived code finds the crate from within it, too.
extern crate self as oxmcp;

/// What derived code needs. Not for use by hand: it can change with any release.
#[doc(hidden)]
pub mod __private {
    pub use oxmcp_macros::__erase;
    pub use schemars;

    pub use crate::schema::declared;
}

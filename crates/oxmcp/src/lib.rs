//! The Model Context Protocol SDK for Rust.

mod codec;
mod error;
mod jsonrpc;
mod limits;
pub mod protocol;
mod schema;
pub mod transport;

pub use error::{Error, Result};
pub use jsonrpc::{ErrorCode, ErrorObject, RequestId};
pub use limits::Limits;
pub use oxmcp_macros::JsonSchema;
pub use protocol::Revision;
pub use transport::{in_memory, stdio};
pub use schema::{JsonSchema, Schema, SchemaOptions, Violation, Violations};
// So that derived code finds the crate from within it, too.
extern crate self as oxmcp;
/// What derived code needs. Not for use by hand: it can change with any release.
#[doc(hidden)]
pub mod __private {
    pub use oxmcp_macros::__erase;
    pub use schemars;
    pub use crate::schema::declared;
}
pub use transport::{Command, in_memory, stdio};

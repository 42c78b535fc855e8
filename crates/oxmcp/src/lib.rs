//! The Model Context Protocol SDK for Rust.

mod codec;
mod error;
mod jsonrpc;
mod limits;
pub mod protocol;
pub mod transport;

pub use error::{Error, Result};
pub use jsonrpc::{ErrorCode, ErrorObject, RequestId};
pub use limits::Limits;
pub use protocol::Revision;
pub use transport::{in_memory, stdio};

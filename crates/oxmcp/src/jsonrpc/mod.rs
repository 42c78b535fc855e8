//! [JSON-RPC 2.0](https://www.jsonrpc.org/specification) as MCP uses it: ids, codes, error objects and the
//! envelope of a message. What is inside `params` and `result` is none of this module's business: it stays
//! raw JSON until somebody who knows the type asks for it.

mod answered;
mod code;
mod envelope;
mod error_object;
mod id;
mod members;
mod write;

pub(crate) use answered::answered;
pub use code::ErrorCode;
pub(crate) use envelope::{Envelope, Malformed, Params, RawNotification, RawResponse};
pub use error_object::ErrorObject;
pub use id::RequestId;
pub(crate) use write::{ExtraMeta, write_error, write_notification, write_request, write_response};

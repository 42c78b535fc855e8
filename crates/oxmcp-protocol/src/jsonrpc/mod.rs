//! [JSON-RPC 2.0](https://www.jsonrpc.org/specification) as used by MCP: ids, codes, error objects and the envelope of
//! a message. `params` and `result` stay raw JSON here until code that knows their type parses them.
//!
//! | | |
//! |---|---|
//! | `id`, `error` | [`RequestId`](crate::RequestId), [`ErrorCode`](crate::ErrorCode), [`ErrorObject`](crate::ErrorObject) |
//! | `envelope` | a message, read in one pass |
//! | `answered_ids` | the ids of the requests that a message answers, even if it is malformed |
//! | `write` | messages as lines |

pub(crate) mod answered_ids;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod write;

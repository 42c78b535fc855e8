//! [JSON-RPC 2.0](https://www.jsonrpc.org/specification) as MCP uses it: ids, codes, error objects and the envelope of a
//! message. `params` and `result` stay raw JSON here until code that knows their type asks for it.
//!
//! | | |
//! |---|---|
//! | `id`, `error` | [`RequestId`](crate::RequestId), [`ErrorCode`](crate::ErrorCode), [`ErrorObject`](crate::ErrorObject) |
//! | `envelope` | a message, read in one pass |
//! | `answered_ids` | the ids that a message answers, even one that is broken |
//! | `write` | messages as lines |

pub(crate) mod answered_ids;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod write;

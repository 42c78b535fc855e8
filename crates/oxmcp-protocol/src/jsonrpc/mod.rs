//! [JSON-RPC 2.0](https://www.jsonrpc.org/specification) as used by MCP: ids, codes, error objects and the envelope of
//! a message. `params` and `result` stay raw JSON here until code that knows their type parses them.

pub(crate) mod answered_ids;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod id;
pub(crate) mod write;

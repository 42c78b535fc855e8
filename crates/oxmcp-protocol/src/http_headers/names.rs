//! Header names of the protocol, in lower case as in HTTP/2, and the delimiters of an encoded value.

/// The protocol revision of a message.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of a request.
pub const MCP_METHOD: &str = "mcp-method";
/// The name or URI of the request's subject: see [`Row::named`](crate::method::Row::named).
pub const MCP_NAME: &str = "mcp-name";
/// The prefix of the headers that mirror arguments of a tool.
pub const MCP_PARAM: &str = "mcp-param-";
/// The id of the session that `initialize` opened (2025-11-25 and earlier).
pub const MCP_SESSION_ID: &str = "mcp-session-id";
/// The ID of the last event that a client received before its stream was interrupted (2025-11-25 and earlier).
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The prefix of an encoded value.
pub(crate) const OPEN: &str = "=?base64?";
/// The suffix of an encoded value.
pub(crate) const CLOSE: &str = "?=";

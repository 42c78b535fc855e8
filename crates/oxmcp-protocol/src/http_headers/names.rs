//! Header names of the protocol, in lower case, as HTTP/2 has them, and the marks of an encoded value.

/// The revision of a message.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of a request.
pub const MCP_METHOD: &str = "mcp-method";
/// What a request names: see [`Row::named`](crate::method::Row::named).
pub const MCP_NAME: &str = "mcp-name";
/// How the headers begin that repeat arguments of a tool.
pub const MCP_PARAM: &str = "mcp-param-";
/// The session that `initialize` opened (2025-11-25 and earlier).
pub const MCP_SESSION_ID: &str = "mcp-session-id";
/// The last event that a reader has seen of a stream that broke off (2025-11-25 and earlier).
pub const LAST_EVENT_ID: &str = "last-event-id";

/// What stands before a value that is encoded.
pub(super) const OPEN: &str = "=?base64?";
/// What stands behind it.
pub(super) const CLOSE: &str = "?=";

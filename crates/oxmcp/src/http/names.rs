//! The names of the headers that client and server look up, as `http` types.

use http::HeaderName;
use oxmcp_protocol::http_headers::names;

pub(crate) const METHOD: HeaderName = HeaderName::from_static(names::MCP_METHOD);
pub(crate) const NAME: HeaderName = HeaderName::from_static(names::MCP_NAME);
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static(names::MCP_SESSION_ID);
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static(names::LAST_EVENT_ID);
pub(crate) const PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static(names::MCP_PROTOCOL_VERSION);

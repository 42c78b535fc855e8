//! The names of headers, as the crate http has them.

use http::HeaderName;

use crate::protocol::http_headers::names;

pub(in crate::http::server) const SESSION_ID: HeaderName =
    HeaderName::from_static(names::MCP_SESSION_ID);
pub(in crate::http::server) const LAST_EVENT_ID: HeaderName =
    HeaderName::from_static(names::LAST_EVENT_ID);

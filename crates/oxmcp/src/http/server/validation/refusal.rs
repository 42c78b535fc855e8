//! The refusal of a request that failed a check.

use http::{HeaderValue, header};
use oxmcp_protocol::{ErrorCode, ErrorObject, RequestId, internal::Malformed};

use super::check::{Check, Failure};
use crate::http::server::response::{self, Refused};

/// The refusal of a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The check that the request failed.
    pub(crate) check: Check,
    /// The error for the response body. The request ID is added to it, if known.
    pub(crate) error: ErrorObject,
    /// The value of the header `Allow`.
    pub(crate) allow: Option<&'static str>,
}

impl Refusal {
    pub(crate) fn new(check: Check, failure: Failure) -> Self {
        let mut error = ErrorObject::new(check.code(), failure.message);
        error.data = failure.data;
        Self {
            check,
            error,
            allow: failure.allow,
        }
    }

    /// Refuses a body that exceeded the limit while it was read.
    pub(crate) fn too_long(limit: usize) -> Self {
        Self::new(Check::BodyLength, Failure::too_long(limit))
    }

    /// Refuses a GET without a session. Modern servers do not support GET either.
    pub(crate) fn no_stream() -> Self {
        let failure = Failure::from(
            "this is an MCP endpoint: send messages with POST; GET only opens event streams, with `Mcp-Session-Id` or `Accept: \
             text/event-stream`",
        );
        Self::new(Check::HttpMethod, failure.with_allow("POST"))
    }

    /// Refuses a GET or DELETE if there are no sessions. Modern revisions have only POST.
    pub(crate) fn no_sessions() -> Self {
        let failure = Failure::from("sessions are not supported here: send each request with POST");
        Self::new(Check::HttpMethod, failure.with_allow("POST"))
    }

    /// Refuses a body that is not a message. The caller adds the request ID, if it could be parsed.
    pub(crate) fn malformed(malformed: &Malformed) -> Self {
        let check = match malformed.error.code {
            ErrorCode::PARSE_ERROR => Check::Json,
            _ => Check::Shape,
        };
        Self::new(check, malformed.error.message.clone().into())
    }

    /// The response to the client.
    pub(crate) fn response(&self, id: Option<&RequestId>) -> Refused {
        let Self { check, error, .. } = self;
        tracing::debug!(?check, error = error.message, "rejected request");
        let mut response = Box::new(response::error(check.status(), id, error));
        if let Some(allow) = self.allow {
            let allow = HeaderValue::from_static(allow);
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        refusal.response(None)
    }
}

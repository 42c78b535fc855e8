//! Refusal of a request that failed a check.

use http::{HeaderValue, header};
use oxmcp_protocol::{ErrorCode, ErrorObject, RequestId, internal::Malformed};

use super::check::{Check, Failure};
use crate::http::server::response::{self, Refused};

/// The refusal of a request.
#[derive(Debug)]
pub(in crate::http::server) struct Refusal {
    /// The check that the request failed.
    pub(super) check: Check,
    /// The error for the response body. The id of the request is added to it, if there is one.
    pub(super) error: ErrorObject,
    /// The value of the header `Allow`.
    pub(super) allow: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(check: Check, failure: Failure) -> Self {
        let mut error = ErrorObject::new(check.code(), failure.message);
        error.data = failure.data;
        Self {
            check,
            error,
            allow: failure.allow,
        }
    }

    /// The refusal of a body that turned out to be too long while it was read.
    pub(in crate::http::server) fn too_long(limit: usize) -> Self {
        Self::new(Check::BodyLength, Failure::too_long(limit))
    }

    /// The refusal of a GET without a session: modern servers have no GET, either.
    pub(in crate::http::server) fn no_stream() -> Self {
        let failure = Failure::from(
            "this is an MCP endpoint, to which messages are sent by POST: GET opens the stream of a session, which Mcp-Session-Id \
             must name, or one of HTTP with SSE, if `Accept` names text/event-stream and the endpoint has streams",
        );
        Self::new(Check::HttpMethod, failure.with_allow("POST"))
    }

    /// The refusal of a GET or DELETE if there are no sessions: modern revisions have only POST.
    pub(in crate::http::server) fn no_sessions() -> Self {
        let failure = Failure::from(
            "there are no sessions here: every request stands for itself, and is sent by POST",
        );
        Self::new(Check::HttpMethod, failure.with_allow("POST"))
    }

    /// The refusal of a body that is no message. The caller adds the id, if it could be parsed.
    pub(in crate::http::server) fn malformed(malformed: &Malformed) -> Self {
        let check = match malformed.error.code {
            ErrorCode::PARSE_ERROR => Check::Json,
            _ => Check::Shape,
        };
        Self::new(check, malformed.error.message.clone().into())
    }

    /// The response to the client.
    pub(in crate::http::server) fn response(&self, id: Option<&RequestId>) -> Refused {
        let Self { check, error, .. } = self;
        tracing::debug!(?check, error = error.message, "a request was refused");
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

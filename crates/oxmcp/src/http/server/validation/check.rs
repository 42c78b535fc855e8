//! The checks of a request, in order, with the status and error code of each.

use http::StatusCode;
use oxmcp_protocol::{ErrorCode, ErrorObject};
use serde_json::value::RawValue;

use crate::error::Error;

/// A check of a request. [`run`](super::run) makes them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Check {
    /// `Host` is allowed.
    Host,
    /// `Origin`, which browsers send, is allowed.
    Origin,
    /// The HTTP method is POST, or for sessions GET or DELETE.
    HttpMethod,
    /// The body is JSON.
    ContentType,
    /// The client accepts JSON or event streams: both, if the server is strict.
    Accept,
    /// The body is not too long.
    BodyLength,
    /// The body can be parsed.
    Json,
    /// The body is a message that clients of its revision send.
    Shape,
    /// Headers that route messages are not repeated.
    RepeatedHeader,
    /// The params are unambiguous.
    AmbiguousParams,
    /// `MCP-Protocol-Version` names the revision that the message names.
    RevisionHeader,
    /// The revision is served.
    Revision,
    /// A modern request has all required `_meta`.
    Meta,
    /// The revision has the method.
    Method,
    /// `Mcp-Method` repeats the method.
    MethodHeader,
    /// `Mcp-Name`, and the additional headers of extensions, repeat the names in the params.
    NameHeader,
    /// The `Mcp-Param-` headers of a tool repeat its arguments.
    ParamHeaders,
}

impl Check {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 17] = [
        Self::Host,
        Self::Origin,
        Self::HttpMethod,
        Self::ContentType,
        Self::Accept,
        Self::BodyLength,
        Self::Json,
        Self::Shape,
        Self::RepeatedHeader,
        Self::AmbiguousParams,
        Self::RevisionHeader,
        Self::Revision,
        Self::Meta,
        Self::Method,
        Self::MethodHeader,
        Self::NameHeader,
        Self::ParamHeaders,
    ];

    /// The status of the response to a request that fails the check.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::HttpMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Accept => StatusCode::NOT_ACCEPTABLE,
            Self::BodyLength => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Method => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// The code of the error in the response body.
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            Self::Json => ErrorCode::PARSE_ERROR,
            Self::AmbiguousParams | Self::Meta => ErrorCode::INVALID_PARAMS,
            Self::Revision => ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            Self::Method => ErrorCode::METHOD_NOT_FOUND,
            Self::RepeatedHeader
            | Self::RevisionHeader
            | Self::MethodHeader
            | Self::NameHeader
            | Self::ParamHeaders => ErrorCode::HEADER_MISMATCH,
            _ => ErrorCode::INVALID_REQUEST,
        }
    }
}

/// The outcome of a check.
pub(crate) type Checked = Result<(), Failure>;

/// The description of a failed check.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
    /// The HTTP methods that are allowed.
    pub(crate) allow: Option<&'static str>,
}

impl Failure {
    pub(crate) fn with_allow(mut self, allow: &'static str) -> Self {
        self.allow = Some(allow);
        self
    }

    /// The failure of a body with more than `limit` bytes.
    pub(crate) fn too_long(limit: usize) -> Self {
        format!("request body exceeds the limit of {limit} bytes").into()
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            data: None,
            allow: None,
        }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        ErrorObject::from(&error).into()
    }
}

impl From<ErrorObject> for Failure {
    fn from(error: ErrorObject) -> Self {
        let ErrorObject { message, data, .. } = error;
        Self {
            data,
            ..message.into()
        }
    }
}

//! JSON-RPC error objects and their codes.

use std::fmt;

use oxmcp_json::Text;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The `error` member of a JSON-RPC error response.
///
/// This is the form of errors on the wire. The SDK converts its errors to error objects when it sends them, and back when
/// it receives them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The kind of error, for programs.
    pub code: ErrorCode,
    /// The description of the error, for people.
    pub message: String,
    /// Further information, in a form that depends on the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Creates an error object without `data`.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Creates an error with the code [`ErrorCode::INVALID_PARAMS`].
    #[must_use]
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Adds `data` for the peer's program to read. Data that cannot be serialized is left out, so that the original error is
    /// sent and not a second one.
    #[must_use]
    pub fn with_data(mut self, data: impl Serialize) -> Self {
        self.data = to_raw_value(&data).ok();
        self
    }

    /// Reads an error object. Its deserializer is compiled only once, in this crate.
    pub(crate) fn read(text: Text<'_>) -> serde_json::Result<Self> {
        text.parse()
    }
}

/// The code of a JSON-RPC error.
///
/// The constants are the codes that the [specification] gives a meaning. An application's own codes lie outside
/// `-32768..=-32000`.
///
/// ```
/// use oxmcp_protocol::ErrorCode;
///
/// assert_eq!(ErrorCode::METHOD_NOT_FOUND.to_string(), "-32601");
/// assert_eq!(ErrorCode::from(-32601), ErrorCode::METHOD_NOT_FOUND);
/// ```
///
/// [specification]: https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(i64);

impl ErrorCode {
    /// The received text is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The received text is JSON, but not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist in the revision in use.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are wrong, or name something that does not exist.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed internally.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// HTTP headers and body disagree (2026-07-28 and later).
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a client capability that was not declared (2026-07-28 and later).
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The requested revision is not supported (2026-07-28 and later).
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// A resource does not exist (2025-11-25 and earlier).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The user must visit a URL first (2025-11-25 only).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);

    /// Returns the number on the wire.
    #[must_use]
    pub const fn value(self) -> i64 {
        self.0
    }
}

impl From<i64> for ErrorCode {
    fn from(value: i64) -> Self {
        Self(value)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

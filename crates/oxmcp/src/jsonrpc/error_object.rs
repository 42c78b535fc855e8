use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ErrorCode;

/// The `error` member of a JSON-RPC error response.
///
/// It is what crosses the wire. In an application, errors are [`Error`](crate::Error)s, which turn into this when
/// they leave and come from this when they arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of error it is, for programs.
    pub code: ErrorCode,
    /// What happened, for people.
    pub message: String,
    /// What else there is to say, in a form that depends on the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// An error object without `data`.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

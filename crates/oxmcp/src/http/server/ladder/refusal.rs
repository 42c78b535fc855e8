//! How a request is refused.

use http::StatusCode;
use serde_json::value::RawValue;

use super::rungs::Rung;
use crate::{
    Error, ErrorCode,
    jsonrpc::{ErrorObject, Malformed},
};

/// What is wrong, before the table says what that means.
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    data: Option<Box<RawValue>>,
    allow: Option<&'static str>,
}

impl Fault {
    /// The methods of HTTP that would do.
    pub(super) fn with_allow(mut self, allow: &'static str) -> Self {
        self.allow = Some(allow);
        self
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self {
            message,
            data: None,
            allow: None,
        }
    }
}

impl From<&str> for Fault {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let ErrorObject { message, data, .. } = ErrorObject::from(&error);
        Self {
            data,
            ..message.into()
        }
    }
}

/// A request that is not served, and what its sender is told.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Where it failed.
    pub(crate) rung: Rung,
    pub(crate) status: StatusCode,
    /// The error for the body. Its sender's id belongs to it, where there is one.
    pub(crate) error: ErrorObject,
    /// What the header `Allow` says.
    pub(crate) allow: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(rung: Rung, fault: Fault) -> Self {
        let row = rung.row();
        let mut error = ErrorObject::new(row.code, fault.message);
        error.data = fault.data;
        Self {
            rung,
            status: row.status,
            error,
            allow: fault.allow,
        }
    }

    /// The body turned out to be longer than allowed while it was read.
    pub(crate) fn too_long(limit: usize) -> Self {
        let message = format!("the body is longer than {limit} bytes, which is the limit");
        Self::new(Rung::Length, message.into())
    }

    /// The body, or an element of a batch, is no message. The id, where it could be read, is the caller's to echo.
    pub(crate) fn malformed(malformed: &Malformed) -> Self {
        let rung = match malformed.error.code {
            ErrorCode::PARSE_ERROR => Rung::Json,
            _ => Rung::Shape,
        };
        Self::new(rung, malformed.error.message.clone().into())
    }
}

/// The status of a modern answer that is an error, by its code, where whoever serves a request refuses it: the same that the
/// ladder has for these. Any other is an answer like all others, and so is every error in a session.
const ANSWERS: &[(ErrorCode, StatusCode)] = &[
    (ErrorCode::METHOD_NOT_FOUND, StatusCode::NOT_FOUND),
    (
        ErrorCode::MISSING_CLIENT_CAPABILITY,
        StatusCode::BAD_REQUEST,
    ),
    (ErrorCode::HEADER_MISMATCH, StatusCode::BAD_REQUEST),
    (
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        StatusCode::BAD_REQUEST,
    ),
];

/// The status of an answer to a modern request that came from behind the ladder.
pub(crate) fn status_of_answer(code: ErrorCode) -> StatusCode {
    let mut answers = ANSWERS.iter();
    let answer = answers.find(|(known, _)| *known == code);
    answer.map_or(StatusCode::OK, |(_, status)| *status)
}

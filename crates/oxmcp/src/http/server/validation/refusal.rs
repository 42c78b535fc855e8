//! How a request is refused.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::value::RawValue;

use super::rungs::Rung;
use crate::{
    Error, ErrorCode,
    http::server::{ResponseBody, answer},
    jsonrpc::{ErrorObject, Malformed, RequestId},
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
pub(in crate::http::server) struct Refusal {
    /// Where it failed.
    pub(super) rung: Rung,
    pub(super) status: StatusCode,
    /// The error for the body. Its sender's id belongs to it, where there is one.
    pub(super) error: ErrorObject,
    /// What the header `Allow` says.
    pub(super) allow: Option<&'static str>,
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
    pub(in crate::http::server) fn too_long(limit: usize) -> Self {
        let message = format!("the body is longer than {limit} bytes, which is the limit");
        Self::new(Rung::Length, message.into())
    }

    /// Who has no session cannot listen: modern servers, too, have no GET.
    pub(in crate::http::server) fn no_stream() -> Self {
        let fault = Fault::from("GET is for the streams of sessions, and no session is named");
        Self::new(Rung::Verb, fault.with_allow("POST"))
    }

    /// Modern revisions have nothing but POST.
    pub(in crate::http::server) fn no_sessions() -> Self {
        let fault = Fault::from(
            "there are no sessions here: every request stands for itself, and is sent by POST",
        );
        Self::new(Rung::Verb, fault.with_allow("POST"))
    }

    /// The body is no message. The id, where it could be read, is the caller's to echo.
    pub(in crate::http::server) fn malformed(malformed: &Malformed) -> Self {
        let rung = match malformed.error.code {
            ErrorCode::PARSE_ERROR => Rung::Json,
            _ => Rung::Shape,
        };
        Self::new(rung, malformed.error.message.clone().into())
    }

    /// What the sender is told.
    pub(in crate::http::server) fn response(
        &self,
        id: Option<&RequestId>,
    ) -> Response<ResponseBody> {
        let Self { rung, error, .. } = self;
        tracing::debug!(
            ?rung,
            must = rung.row().must,
            error = error.message,
            "a request was refused"
        );
        let mut response = answer::error(self.status, id, error);
        if let Some(allow) = self.allow {
            let allow = HeaderValue::from_static(allow);
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }
}

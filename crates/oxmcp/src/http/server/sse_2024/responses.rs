//! The refusals.

use http::{HeaderValue, Response, StatusCode, header};

use crate::{Error, http::server::ResponseBody};

/// A response that is known when it is refused; boxed, since most requests are not.
pub(super) type Refused = Box<Response<ResponseBody>>;

/// A request is refused, for a reason that whoever made it can act on.
pub(super) fn refuse(status: StatusCode, why: impl Into<String>) -> Refused {
    let mut response = Response::new(ResponseBody::full(why.into()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    Box::new(response)
}

/// There is no such session, or it belongs to somebody else: which of both is nobody's business.
pub(super) fn unknown() -> Refused {
    refuse(
        StatusCode::NOT_FOUND,
        "there is no such session; open a stream with GET for a new one",
    )
}

/// Another method of HTTP.
pub(super) fn not_allowed() -> Refused {
    let mut refused = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        "GET opens a stream of events, and POST sends a message to its session",
    );
    let allowed = HeaderValue::from_static("GET, POST");
    refused.headers_mut().insert(header::ALLOW, allowed);
    refused
}

/// Nothing is begun any more.
pub(super) fn closing() -> Refused {
    refuse(
        StatusCode::SERVICE_UNAVAILABLE,
        "the service is being closed; try another time",
    )
}

/// What went wrong on this side is told to its log.
pub(super) fn failed(error: &Error) -> Refused {
    tracing::error!(%error, "no session can be opened");
    refuse(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server failed; its log says how",
    )
}

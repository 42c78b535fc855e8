//! The responses.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::http::server::ResponseBody;

/// A proxy must not hold back the events of a stream until it has many.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response that is known when it is refused; boxed, since most requests are not.
pub(super) type Refused = Box<Response<ResponseBody>>;

/// A stream of events.
pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, value("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, value("no"));
    response
}

/// A message was taken.
pub(super) fn accepted() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

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

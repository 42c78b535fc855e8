//! The responses that are whole at once, and when they are there.

use std::{future::Future, pin::Pin};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use crate::{
    Error, ErrorObject,
    http::server::ResponseBody,
    jsonrpc::{RequestId, write_error},
};

/// A proxy must not hold back the events of a stream until it has many.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How what was posted is answered.
pub(super) enum Answer {
    /// It was answered while it was taken, as most is: nothing of it has to be kept.
    Plain(Plain),
    /// The same with another head.
    Now(Response<ResponseBody>),
    Later(Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>),
}

impl Answer {
    pub(super) fn later(
        response: impl Future<Output = Response<ResponseBody>> + Send + 'static,
    ) -> Self {
        Self::Later(Box::pin(response))
    }
}

/// One message, as it lies in an outbox: a line; or none.
pub(super) struct Plain {
    pub(super) status: StatusCode,
    pub(super) line: Vec<u8>,
}

impl Plain {
    pub(super) fn response(self) -> Response<ResponseBody> {
        self.response_in(HeaderMap::new())
    }

    /// The response, with the room for headers that is there.
    pub(super) fn response_in(self, headers: HeaderMap) -> Response<ResponseBody> {
        let Self { status, mut line } = self;
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let is_json = !line.is_empty();
        let mut response = with_status(ResponseBody::full(line), status);
        if is_json {
            let json = HeaderValue::from_static("application/json");
            *response.headers_mut() = headers;
            response.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        response
    }
}

/// No body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    with_status(ResponseBody::empty(), status)
}

/// One message, as it lies in an outbox: a line.
pub(super) fn json(status: StatusCode, line: Vec<u8>) -> Response<ResponseBody> {
    Plain { status, line }.response()
}

/// An error that answers a request, or where there is no id, what was no request.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Response<ResponseBody> {
    let mut line = Vec::new();
    write_error(&mut line, id, error);
    json(status, line)
}

/// The same for an error of this side.
pub(super) fn refuse(
    status: StatusCode,
    id: Option<&RequestId>,
    why: &Error,
) -> Response<ResponseBody> {
    error(status, id, &ErrorObject::from(why))
}

/// The endpoint is being closed.
pub(super) fn closing() -> Response<ResponseBody> {
    let why = Error::internal("the endpoint is being closed; try another time");
    refuse(StatusCode::SERVICE_UNAVAILABLE, None, &why)
}

/// Events.
pub(super) fn events(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = with_status(body, StatusCode::OK);
    // What hyper keeps of it for as long as the stream lasts.
    *response.headers_mut() = HeaderMap::with_capacity(3);
    let headers = response.headers_mut();
    let value = HeaderValue::from_static;
    headers.insert(header::CONTENT_TYPE, value("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, value("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, value("no"));
    response
}

fn with_status(body: ResponseBody, status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

//! What is asked of a request before anything is done for it.

use crate::{
    Error, ErrorObject,
    http::server::{ResponseBody, answer},
    jsonrpc::{Envelope, RequestId},
    protocol::{Era, RequestParams},
    server::Features,
};
use http::{HeaderMap, HeaderName, Response, StatusCode, request::Parts};
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
#[derive(Clone, Debug, Default)]
pub(super) struct Policy;
impl Policy {
    pub(super) fn allow_hosts(&mut self, _h: impl IntoIterator<Item = impl Into<String>>) {}
    pub(super) fn allow_origins(&mut self, _h: impl IntoIterator<Item = impl Into<String>>) {}
}
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: ErrorObject,
}
impl Refusal {
    pub(super) fn response(&self, id: Option<&RequestId>) -> Response<ResponseBody> {
        answer::error(self.status, id, &self.error)
    }
}
pub(super) enum Admitted {
    Modern,
    Legacy,
}
pub(super) fn head(_: &Policy, _: &Parts) -> Result<(), Refusal> {
    Ok(())
}
pub(super) fn batch(_: &HeaderMap, _: &[u8]) -> Result<(), Refusal> {
    Ok(())
}
pub(super) fn message(
    f: &Features,
    _: &HeaderMap,
    e: &Envelope<'_, RequestParams<'_>>,
) -> Result<Admitted, Refusal> {
    let params = match e {
        Envelope::Request(r) => r.params,
        Envelope::Notification(n) => n.params,
        Envelope::Response(_) => None,
    };
    match params.map(|p| p.meta.classify(&f.revisions)) {
        Some(Ok(Era::Modern(_))) => Ok(Admitted::Modern),
        None | Some(Ok(Era::Legacy)) => Ok(Admitted::Legacy),
        Some(Err(error)) => Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            error: ErrorObject::from(&error),
        }),
    }
}
pub(super) fn no_stream() -> Error {
    Error::invalid_request("no stream")
}

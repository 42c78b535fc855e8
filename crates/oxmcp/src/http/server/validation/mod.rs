//! Validation of an HTTP request before it is served: the checks, in order.
//!
//! See [server validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation).
//!
//! # Where it is decided
//!
//! - `run.rs` has the order of the checks, `check.rs` the status and code of each, and `access.rs` `Host` and `Origin`, which
//!   come before all others and before the body is read: 403. What browsers are allowed: `cors.rs`. Of these, the
//!   transport of 2024-11-05 makes `check_access` only.
//! - Headers that repeat a message: clients send them in `transport/mirror.rs`, and once more in
//!   `CallRequest::wants_other_headers` (`client/requests/call_request.rs`); servers check them in `mirrored_headers.rs`, for
//!   hidden tools in `ServerRole::check_deferred`.
//! - Malformed messages are refused by `Refusal::malformed` (`refusal.rs`) and `check_batch` (`run.rs`); `respond` in
//!   `http/server/routing.rs` removes a byte order mark.

mod access;
mod body;
mod check;
mod cors;
mod head;
mod message;
mod mirrored_headers;
mod refusal;
mod run;
#[cfg(test)]
mod tests;
#[cfg(feature = "auth")]
mod token;

pub(crate) use access::Policy;
pub(crate) use body::{discard_body, read_body};
#[cfg(test)]
pub(crate) use check::Check;
pub(crate) use cors::Cors;
pub(crate) use head::{Accepted, asks_for_events, is_json, single};
pub(crate) use message::Message;
pub(crate) use refusal::Refusal;
#[cfg(test)]
pub(crate) use run::check_access;
pub(crate) use run::{
    check_accept, check_batch, check_head, check_message, check_session, check_target,
};
#[cfg(feature = "auth")]
pub(crate) use token::{ScopeCheck, admit};

//! Validation of a request over HTTP before it is served: the checks, in the order in which they are made.
//!
//! | | |
//! |---|---|
//! | `run` | the order of the checks |
//! | `check` | the checks, and the status and error code of each |
//! | `access` | `Host` and `Origin` |
//! | `head` | the headers that describe the body |
//! | `token` | the access token, and its scopes |
//! | `body` | reading the body within its limits |
//! | `message` | the message, its era, and its checks |
//! | `mirrored_headers` | headers that repeat members of the body |
//! | `refusal` | the response to a request that failed a check |
//!
//! See [server validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation).

mod access;
mod body;
mod check;
mod head;
mod message;
mod mirrored_headers;
mod refusal;
mod run;
#[cfg(test)]
mod tests;
#[cfg(feature = "auth")]
mod token;

pub(super) use access::Policy;
pub(super) use body::{discard_body, read_body};
#[cfg(test)]
pub(super) use check::Check;
pub(super) use head::{asks_for_events, is_json, single};
pub(super) use message::Message;
pub(super) use refusal::Refusal;
pub(super) use run::{
    check_access, check_batch, check_head, check_message, check_session, check_target,
};
#[cfg(feature = "auth")]
pub(super) use token::{ScopeCheck, admit};

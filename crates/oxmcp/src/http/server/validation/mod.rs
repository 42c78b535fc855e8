//! What a request over HTTP must be before anybody serves it: a ladder of checks, in the order in which they are made.
//!
//! See [server validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation).

mod allowed;
#[path = "run.rs"]
mod climb;
#[path = "access.rs"]
mod guard;
mod head;
mod media;
mod message;
#[path = "mirrored_headers.rs"]
mod mirrored;
mod refusal;
#[path = "check.rs"]
mod rungs;
#[cfg(test)]
mod tests;

pub(super) use climb::guard;
pub(super) use climb::{batch, head, message, session};
pub(super) use guard::Policy;
pub(super) use media::{accepts, is_json};
pub(super) use message::Admitted;
pub(super) use refusal::Refusal;
#[cfg(test)]
pub(super) use rungs::Rung;

//! What a request over HTTP must be before anybody serves it: a ladder of checks, in the order in which they are made.
//!
//! See [server validation](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-validation).

mod allowed;
mod climb;
mod guard;
mod head;
mod media;
mod message;
mod mirrored;
mod refusal;
mod rungs;
#[cfg(test)]
mod tests;

pub(crate) use climb::{admit, admit_batch, check_params, guard, head};
pub(crate) use guard::Policy;
pub(crate) use message::{Admitted, Served};
pub(crate) use refusal::{Refusal, status_of_answer};
#[cfg(test)]
pub(crate) use rungs::{RUNGS, Rung};

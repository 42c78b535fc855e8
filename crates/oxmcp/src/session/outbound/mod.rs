//! Calls of this side, from the options to the response.
//!
//! # Where it is decided
//!
//! - A call times out in `CallInFlight::answer` (`call.rs`) by its `Deadline` (`deadline.rs`): 60 s by default (`Features::new`
//!   in `client/features.rs`), and waiting for space in the outbox counts (`wait_to_send`). Progress that was asked for, a
//!   legacy server's question to the user or a model, and a login extend the deadline, up to 10 minutes in all, or up to the
//!   call's timeout if that is longer (`options.rs`). `PendingCalls::ring` (`calls.rs`) wakes the call. Each modern round trip
//!   has its own deadline (`client/requests/multi_round_trip.rs`).
//! - Dropping `CallInFlight` (`call.rs`) cancels the call with `notifications/cancelled`, except `initialize`. Over modern HTTP
//!   nothing is sent: `Exchanges::start` (`http/client/exchange/post.rs`) ends the HTTP request.

pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod deadline;
pub(crate) mod options;
pub(crate) mod outgoing;

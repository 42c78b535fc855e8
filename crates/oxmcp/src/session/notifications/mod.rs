//! Notifications in both directions.
//!
//! # Where it is decided
//!
//! - Order: changes take effect in the reader (`Role::notification`); users' handlers run in `queue.rs`, one at a time. The
//!   answer of a call waits until the handlers of the notifications before it have begun (`answer_in_order` in
//!   `inbound/receive.rs`).
//! - Progress that is sent: `progress_out.rs`, at the rate of `progress_rate.rs`; outside of the handler `Connection::report`
//!   finds the token. Over HTTP it goes on the stream of its request. Progress that arrives: `take_notification`
//!   (`inbound/receive.rs`), the bounded queue of `progress_in.rs`, and `report` in `outbound/call.rs`.

pub(crate) mod of_request;
pub(crate) mod progress_in;
pub(crate) mod progress_out;
pub(crate) mod progress_rate;
pub(crate) mod progress_tokens;
pub(crate) mod queue;

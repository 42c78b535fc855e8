//! Requests and notifications of the peer, from the message to the response.
//!
//! # Where it is decided
//!
//! - Malformed messages: `Envelope::parse` of oxmcp-protocol reads a message; `Connection::take_malformed` and `take_batch`
//!   (`receive.rs`) answer malformed messages; `batch.rs` joins the responses of a batch. `Driver::take` removes one byte order
//!   mark. `take_error_without_id` (`receive.rs`) finds the call that an error without an ID answers. Over HTTP all of this
//!   happens before a connection sees the message, in `http/server/validation/`.
//! - A duplicate ID, or too many requests: `Connection::dispatch` (`receive.rs`) asks `InFlight::admit`, and `run.rs` asks
//!   `InFlight::enter`; the error is -32600 or -32603 under that ID, and the first request continues. A request that is answered
//!   at its first poll never enters the table. All messages of an HTTP session share one table; modern requests never meet.
//! - A cancelled handler: `InFlight::cancel` notifies it, and `unless_cancelled` (`run.rs`) drops it after
//!   `Limits::cancel_grace`, 1 s. Middleware around it learns of the end and has one more second (`handle_within_middleware`);
//!   for outgoing calls that is `HeardCall` in `outbound/call.rs`. No response is sent, except an error when the session ends
//!   (`cut_short`, `finish_cancelled`). A handler that blocks its thread: `watchdog.rs`. Without a session, dropping the HTTP
//!   response cancels with the same grace; within one it does not.
//! - A message that exceeds `Limits::max_message_bytes` is skipped by oxmcp-protocol `framing/lines.rs` and answered by
//!   `take_too_long` (`receive.rs`); nesting is limited by oxmcp-json `cursor.rs`. Over HTTP the limit is in `read_body`
//!   (`http/server/validation/body.rs`), for clients in `read_json` (`http/client/exchange/post.rs`) and `event_stream.rs` next
//!   to it.

pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod in_flight;
pub(crate) mod inline_execution;
mod reading;
pub(crate) mod receive;
pub(crate) mod run;
#[cfg(feature = "server")]
pub(crate) mod watchdog;

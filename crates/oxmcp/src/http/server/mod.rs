//! The server side of HTTP.
//!
//! # Where it is decided
//!
//! - Closing does not reject requests: `StreamableHttp::close_once` (`endpoint.rs`) waits until nothing is in flight, then `end`
//!   (`sessions/lifecycle.rs`) ends the sessions; modern streams end in `StatelessAnswer::next` (`stateless.rs`); the accept loop
//!   in `run` (`serve/accept.rs`). `Connection: close` is set in `response_finisher.rs`. Readiness is `serve/health.rs`, based on
//!   `store/breaker.rs`.
//! - The status of an error: `validation/check.rs` before dispatch, then `status` in `stateless.rs`; within a session it is 200.
//!   503 from `unserved` (`response.rs`) promises that the request was not processed; 500 from `unanswered` does not.
//! - Limits for each client: `READ_AHEAD` (`sessions/streams.rs`), `PART` (`event_encoding.rs`) and `MAX_UNSENT`
//!   (`sessions/session.rs`). Timeouts of connections: `serve/activity.rs` (head, idle, stalled), `serve/watched_body.rs`, and
//!   `StreamReader::send` (`sessions/stream_reader.rs`) for streams of sessions.

mod caller;
mod cluster;
mod endpoint;
mod event_encoding;
mod response;
mod response_finisher;
mod routing;
mod serve;
mod sessions;
mod settings;
mod sse_2024;
mod stateless;
mod streamable_session;
#[cfg(test)]
mod tests;
mod validation;

pub use cluster::Cluster;
pub use endpoint::StreamableHttp;
pub use response::ResponseBody;
pub use serve::{HealthCheck, ServerHandle};
pub use sse_2024::{LegacySse, SseInbox, SseReader, SseTransport, SseWriter};
pub use streamable_session::StreamableSession;

//! The event loop of a connection and its output.
//!
//! # Where it is decided
//!
//! - Limits of output: callers wait in `Outbox::ready` (`outbox.rs`), requests in `inbound/backlog.rs`, where `Driver::take`
//!   puts them; beyond twice `max_unsent_bytes`, `Driver::may_read` reads no more. Responses never wait: `InFlight::admit`
//!   limits their number. All connections of an HTTP endpoint share a `Budget` (`budget.rs`); beyond it, `Outbox::drop_answer`
//!   (`stream_output.rs`) drops responses.
//! - The end: `Driver::arrived` (`event_loop.rs`) sees the end of input; `drain` lets running requests finish within
//!   `Limits::drain`, 10 s, and still starts those in the backlog. `Connection::end_drain` (`shutdown.rs`) answers the rest with
//!   -32603 and the reason `closing`. Writing continues while the peer reads, and for 1 s when it does not (`flush.rs`). Work
//!   without a request ends by `Extension::on_shutdown`, which `StreamableHttp::close` calls, and `Server::run` over stdio unless
//!   it `serves_others`.
//! - Dead peers: `keep_alive.rs` pings legacy peers, if `keep_alive` is set. A process that has exited: `restart.rs` for modern
//!   sessions; legacy sessions end with it, and `client/connect/reconnect.rs` opens others. Over HTTP: `PING_INTERVAL` in
//!   `http/server/serve/connection.rs`; for silent streams `KEEP_ALIVE` in `http/server/event_encoding.rs`.

#[cfg(feature = "http-server")]
pub(crate) mod budget;
pub(crate) mod event_loop;
mod flush;
pub(crate) mod keep_alive;
pub(crate) mod outbox;
#[cfg(feature = "client")]
mod restart;
pub(crate) mod shutdown;
#[cfg(feature = "http-server")]
pub(crate) mod stream_output;

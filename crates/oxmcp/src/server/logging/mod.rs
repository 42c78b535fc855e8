//! Log messages for clients: messages that a handler logs with [`RequestContext::log`](crate::RequestContext::log), and events
//! of [`tracing`] that the `layer` turns into messages.
//!
//! A server that logs to its clients declares it with [`Server::logging`](crate::Server::logging); nothing is advertised by
//! default. The client sets the level: a modern one sets the least severe level with each request, and gets no messages without
//! it; a legacy one sets it for its session with `logging/setLevel`. Messages are limited in rate, by [`LogOptions`].
//!
//! Log messages are for the *user of the client*. Messages for the operator of the server belong on standard error or in
//! OpenTelemetry, for which this crate has [`tracing`] spans. The specification has deprecated messages to clients with
//! revision 2026-07-28 in favour of those two.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
//!
//! # Where it is decided
//!
//! The rate: `LogFilter::admit` (`options.rs`). The level: `Audience::hears` (`message.rs`).

// The files of this module:
//
// | `message` | a message of a handler |
// | `layer` | the layer that turns events of `tracing` into messages |
// | `options` | [`LogOptions`], and the filter of a session: its level and its rate |
// | `server` | the declaration, the level of a session, messages outside of requests |

#[cfg(feature = "tracing-subscriber")]
mod layer;
mod message;
mod options;
mod server;

#[cfg(feature = "tracing-subscriber")]
pub use layer::{LogLayer, layer};
pub use message::Log;
pub(crate) use options::LogFilter;
pub use options::LogOptions;
pub(super) use server::set_level;

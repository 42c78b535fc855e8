//! Log messages for clients: those that handlers send with [`RequestContext::log`](crate::RequestContext::log), and [`tracing`]
//! events that the `layer` turns into messages.
//!
//! A server that logs to its clients declares this with [`Server::logging`](crate::Server::logging). The client sets the least
//! severe level: a modern client with each request, and without a level it gets no messages; a legacy client for its session,
//! with `logging/setLevel`. [`LogOptions`] limit the rate of messages.
//!
//! Log messages are for the *user of the client*. Messages for the operator of the server belong on standard error or in
//! OpenTelemetry, for which this crate has [`tracing`] spans. In revision 2026-07-28, the specification has deprecated log
//! messages to clients in favor of these two.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).
//!
//! # Where it is decided
//!
//! The rate: `LogFilter::admit` (`options.rs`). The level: `Audience::hears` (`message.rs`).

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
pub(crate) use server::set_level;

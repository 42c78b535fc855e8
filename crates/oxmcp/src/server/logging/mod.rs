//! Log messages for clients: what a handler says with [`RequestContext::log`](crate::RequestContext::log), and events of
//! [`tracing`] that become messages by the `layer`.
//!
//! A server that logs to its clients says so with [`Server::logging`](crate::Server::logging); nothing is advertised by
//! default. The level is up to the client: a modern one sets the least severe level with each request, and gets
//! nothing where it does not; a legacy one sets it for its session with `logging/setLevel`. Messages are limited in rate,
//! by [`LogOptions`].
//!
//! This is for what the *user of the client* should read. What the operator of the server should read belongs to standard
//! error or to OpenTelemetry, for which this crate has [`tracing`] spans. The specification has deprecated messages to
//! clients with revision 2026-07-28 in favour of those two.
//!
//! See [logging](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/logging).

// The files of this room:
//
// | `message` | a message of a handler |
// | `layer` | the layer that makes messages of events of `tracing` |
// | `options` | [`LogOptions`], and the filter of a session: its level and its rate |
// | `server` | declaring it, the level of a session, messages outside of requests |

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

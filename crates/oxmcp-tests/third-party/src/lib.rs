//! Tickets, an extension of another vendor: a call of a tool that takes long is answered with a number, under which it is asked for.
//!
//! It is much of what `oxmcp::tasks` is, on what the crate offers everybody: a type of results, calls that go on when they have
//! been answered, methods, a notification, settings with a revision, and requirements. Calls of clients that do not know it are
//! answered as ever.

pub mod client;
pub mod server;
pub mod wire;

//! Tickets, an extension of another vendor: a call of a tool that takes long is answered with a number, by which the client gets
//! the result.
//!
//! It does much of what `oxmcp::tasks` does, with the crate's public API alone: a type of results,
//! calls that continue after they were answered, methods, a notification, settings with a revision,
//! and requirements. Calls of clients that do not declare the extension are answered as without it.

pub mod client;
pub mod server;
pub mod wire;

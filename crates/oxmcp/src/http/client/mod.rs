//! The client's side of HTTP.

mod mirror;
mod outgoing;

//! What a client keeps of a server's answers, and for how long.
//!
//! Deciding is kept apart from doing: `core`, `store` and `flights` are told the time and know nothing of connections;
//! `shared` puts them behind a lock and a clock, and `fetch` makes the calls.

mod core;
mod fetch;
mod flights;
mod options;
#[cfg(test)]
mod properties;
mod question;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use options::{CacheMode, CacheOptions};
pub(in crate::client) use question::{Change, Kind};
pub(in crate::client) use shared::{Cache, Seat};

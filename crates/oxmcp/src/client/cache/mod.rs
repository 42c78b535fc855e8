//! What a client keeps of a server's answers, and for how long.
//!
//! Deciding is kept apart from doing: `core`, `store` and `single_flight` are told the time and know nothing of connections;
//! `shared` puts them behind a lock and a clock, and `fetch` makes the calls.

mod core;
mod fetch;
pub(super) mod key;
pub(super) mod options;
#[cfg(test)]
mod properties;
pub(super) mod shared;
mod single_flight;
mod store;
#[cfg(test)]
mod tests;

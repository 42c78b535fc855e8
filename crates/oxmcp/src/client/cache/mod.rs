//! The answers of servers that a client keeps, for as long as servers declare them fresh.
//!
//! The files that decide take the time as an argument and make no calls: `store.rs`, `single_flight.rs`, and the state in
//! `response_cache.rs`.
//!
//! | | |
//! |-|-|
//! | `options.rs` | the bounds of a cache, and how a call uses it |
//! | `key.rs` | what an answer is found by, and what invalidates it |
//! | `store.rs` | the answers, evicted by use |
//! | `single_flight.rs` | equal requests that are made at once |
//! | `response_cache.rs` | the cache that all sessions of a client share |
//! | `fetch.rs` | calls through the cache |
//! | `properties.rs`, `tests.rs` | tests of the state: properties, and cases |

mod fetch;
pub(super) mod key;
pub(super) mod options;
#[cfg(test)]
mod properties;
pub(super) mod response_cache;
mod single_flight;
mod store;
#[cfg(test)]
mod tests;

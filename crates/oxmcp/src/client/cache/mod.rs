//! The cache of a client: responses that are kept for as long as servers declare them fresh.
//!
//! The files that make decisions take the time as an argument and make no calls: `store.rs`, `single_flight.rs`, and the
//! state in `response_cache.rs`.
//!
//! | | |
//! |-|-|
//! | `options.rs` | the bounds of a cache, and the modes in which calls use it |
//! | `key.rs` | the keys of responses, and the changes that invalidate them |
//! | `store.rs` | the stored responses, and their eviction by use |
//! | `single_flight.rs` | the coalescing of equal requests that are made at once |
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

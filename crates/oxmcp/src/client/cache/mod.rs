//! The cache of a client: responses that are kept for as long as servers declare them fresh.
//!
//! The files that make decisions take the time as an argument and make no calls: `store.rs`, and the state in
//! `response_cache.rs`.

mod fetch;
pub(crate) mod key;
pub(crate) mod options;
#[cfg(test)]
mod properties;
pub(crate) mod response_cache;
mod store;
#[cfg(test)]
mod tests;

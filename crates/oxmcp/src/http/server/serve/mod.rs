//! Serves an address: accepts connections, and hands the requests that come over them to a service.
//!
//! One task accepts and keeps count; each connection is a task of its own. Nothing is shared between connections.

mod accept;
mod connection;
#[cfg(test)]
#[path = "tests/closing.rs"]
mod end_tests;
mod heads;
mod overdue;
mod preface;
#[cfg(test)]
#[path = "tests/script.rs"]
mod script;
mod serving;
#[cfg(test)]
#[path = "tests/connections.rs"]
mod tests;

pub(crate) use accept::serve;
pub use serving::Serving;

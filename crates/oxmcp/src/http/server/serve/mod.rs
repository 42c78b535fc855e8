//! Serves an address: accepts connections, and hands the requests that come over them to a service.
//!
//! One task accepts and keeps count; each connection is a task of its own. Nothing is shared between connections.

mod accept;
mod connection;
#[cfg(test)]
mod end_tests;
mod heads;
mod overdue;
mod preface;
#[cfg(test)]
mod script;
mod serving;
#[cfg(test)]
mod tests;

pub(crate) use accept::serve;
pub use serving::Serving;

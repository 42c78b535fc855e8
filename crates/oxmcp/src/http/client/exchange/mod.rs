//! The exchange of a message with a server.

pub(crate) mod barrier;
pub(crate) mod engine;
#[cfg(test)]
mod engine_tests;
pub(crate) mod event_stream;
pub(crate) mod known;
pub(crate) mod message;
pub(crate) mod mirror;
pub(crate) mod post;
pub(crate) mod requests;
pub(crate) mod response;
pub(crate) mod session;
pub(crate) mod shared;
pub(crate) mod sink;
pub(crate) mod start;

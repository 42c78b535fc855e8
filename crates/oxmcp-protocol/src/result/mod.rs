//! Results of requests: encoded for the revision of the peer, and inspected without full parsing.

pub(crate) mod encode;
pub(crate) mod payload;
pub(crate) mod tool_index;
#[cfg(test)]
mod tool_index_tests;
pub(crate) mod tool_result;

//! Results of requests: encoded for the revision of the peer, and inspected without full parsing.
//!
//! | | |
//! |---|---|
//! | `encode` | the encoder of the protocol's results, and the `resultType` of a result |
//! | `payload` | [`Payload`](crate::Payload): params and results that extensions define |
//! | `tool_result` | the hand-written encoder of tool results, which are most of the data that is sent |
//! | `tool_index` | the positions of the parts of a tool's result, found while its message is checked |

pub(crate) mod encode;
pub(crate) mod payload;
pub(crate) mod tool_index;
#[cfg(test)]
mod tool_index_tests;
pub(crate) mod tool_result;

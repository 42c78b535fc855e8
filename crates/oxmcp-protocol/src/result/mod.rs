//! Results of requests: written for the revision of the peer, and peeked at without being parsed.
//!
//! | | |
//! |---|---|
//! | `encode` | results of the protocol as bytes, and the `resultType` of a result |
//! | `payload` | [`Payload`](crate::Payload): params and results that extensions define |
//! | `tool_result` | the result of a tool, written by hand because it is most of what is ever sent |
//! | `tool_index` | the places of the parts of a tool's result, found while its message is checked |

pub(crate) mod encode;
pub(crate) mod payload;
pub(crate) mod tool_index;
#[cfg(test)]
mod tool_index_tests;
pub(crate) mod tool_result;

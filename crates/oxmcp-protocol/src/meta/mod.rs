//! `_meta`: the metadata of messages.
//!
//! | | |
//! |---|---|
//! | `has_meta` | params and results with `_meta`, with (de)serialization code that is compiled once |
//! | `object` | [`Meta`](crate::Meta), and the keys that the protocol defines |
//! | `progress_token` | the progress token, which is the value of one of the keys |
//! | `request` | the `_meta` and the members of a request's params, found while its message is checked |
//! | `trace_context` | the keys that propagate a trace to the peer |

pub(crate) mod has_meta;
pub(crate) mod object;
pub(crate) mod progress_token;
pub(crate) mod request;
pub(crate) mod trace_context;

//! `_meta`: the metadata of messages.
//!
//! | | |
//! |---|---|
//! | `has_meta` | what has a `_meta`, and is read and written by code that is compiled once |
//! | `object` | [`Meta`](crate::Meta), and the keys that the protocol gives a meaning |
//! | `progress_token` | the token of progress, one of the keys |
//! | `request` | the `_meta` and the members of a request's params, found while its message is checked |
//! | `trace_context` | the keys by which a trace goes on at the peer |

pub(crate) mod has_meta;
pub(crate) mod object;
pub(crate) mod progress_token;
pub(crate) mod request;
pub(crate) mod trace_context;

//! `_meta`: the metadata of messages.
//!
//! | | |
//! |---|---|
//! | `object` | [`Meta`](crate::Meta), and the keys that the protocol gives a meaning |
//! | `progress_token` | the token of progress, one of the keys |
//! | `request` | the `_meta` and the members of a request's params, found while its message is checked |

pub(crate) mod object;
pub(crate) mod progress_token;
pub(crate) mod request;

//! `_meta`: the metadata of messages.
//!
//! | | |
//! |---|---|
//! | `object` | [`Meta`](crate::Meta), and the keys that the protocol gives a meaning |
//! | `request` | the `_meta` and the members of a request's params, found while its message is checked |

pub(crate) mod object;
pub(crate) mod request;

//! Dispatch: from a request to the handler that serves it.
//!
//! | file | what is in it |
//! |---|---|
//! | `role.rs` | the server at its end of one connection |
//! | `requests.rs` | the way of a request, and what a notification changes |
//! | `identity.rs` | the client behind a message; a second `initialize` is refused here |
//! | `call.rs` | a request on its way to the method that serves it |
//! | `lookup.rs` | the tool, prompt, resource or completer that a request names |
//! | `lists.rs` | lists of features, a page at a time |
//! | `span.rs` | the `tracing` span of a request |
//! | `recent.rs` | a cache for clients that say the same again and again |
//!
//! The table of the methods is `../methods.rs`.

mod call;
mod identity;
mod lists;
mod lookup;
mod recent;
mod requests;
mod role;
pub(super) mod span;

pub(super) use call::{Call, Served};
pub(crate) use identity::{ClientCache, LegacySession};
pub(super) use lists::list;
pub(super) use lookup::{call_by_name, complete, read_resource};
pub(crate) use recent::RecentCache;
#[cfg(test)]
pub(super) use recent::{MAX_ENTRIES, MAX_KEY_BYTES};
pub(crate) use role::ServerRole;

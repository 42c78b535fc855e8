//! Dispatch: from a request to the handler that serves it.
//!
//! | file | what is in it |
//! |---|---|
//! | `role.rs` | the server at its end of one connection |
//! | `requests.rs` | the way of a request, and what a notification changes |
//! | `identity.rs` | the client behind a message; a second `initialize` is refused here |
//! | `client_bounds.rs` | the bound on what is kept of what a client says of itself |
//! | `call.rs` | a request on its way to the method that serves it |
//! | `lookup.rs` | the tool, prompt, resource or completer that a request names |
//! | `scopes.rs` | the scopes of access tokens that a request needs, by what it names |
//! | `lists.rs` | lists of features, a page at a time |
//! | `replay.rs` | a call of a tool that is made again without its client |
//! | `session_hook.rs` | a function of the author that takes a session |
//! | `recent.rs` | a cache for clients that say the same again and again |
//!
//! The table of the methods is `../methods.rs`.

mod call;
mod client_bounds;
mod identity;
mod lists;
mod lookup;
mod recent;
mod replay;
mod requests;
mod role;
#[cfg(all(feature = "auth", feature = "http-server"))]
mod scopes;
mod session_hook;

pub(super) use call::{Call, Served};
pub(super) use client_bounds::keep_within;
pub(crate) use identity::{ClientCache, LegacySession};
pub(super) use lists::{list, list_resources};
pub(super) use lookup::{call_by_name, complete, read_resource};
pub(crate) use recent::RecentCache;
#[cfg(test)]
pub(super) use recent::{MAX_ENTRIES, MAX_KEY_BYTES};
pub(crate) use replay::Replay;
pub(crate) use role::ServerRole;
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) use scopes::needed_scopes;
pub(crate) use session_hook::SessionHook;

//! Dispatch of requests to the handlers that serve them.
//!
//! | file | content |
//! |---|---|
//! | `role.rs` | the server at its end of one connection |
//! | `requests.rs` | dispatch of requests, and the effects of notifications |
//! | `identity.rs` | the client that sent a message; a second `initialize` is refused here |
//! | `client_bounds.rs` | the bound on the client's description of itself that is kept |
//! | `call.rs` | a request, as the function of its method gets it |
//! | `lookup.rs` | the tool, prompt, resource or completer that a request names |
//! | `scopes.rs` | the access token scopes that a request needs, by the features that it names |
//! | `lists.rs` | lists of features, in pages |
//! | `replay.rs` | a tool call that is made again without its client |
//! | `session_hook.rs` | a function of the server's author that takes a session |
//! | `recent.rs` | a cache of recent values, for clients that repeat their identity in each request |
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

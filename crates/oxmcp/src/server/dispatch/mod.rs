//! Dispatch of requests to the handlers that serve them.
//!
//! # Where it is decided
//!
//! - The revision of a request: `LegacySession::client_of_request` (`identity.rs`), by `RequestMeta::classify` of oxmcp-protocol
//!   `meta/request.rs`; for `initialize` it is `negotiate` in `server/features.rs`. Over HTTP, `Message::new` and `era`
//!   (`http/server/validation/message.rs`) decide earlier, by the body and then the header; headers that disagree with the body
//!   are refused with 400 and -32020 by `revision_header` there.
//! - A second `initialize`: `LegacySession::open` (`identity.rs`) refuses it with -32600. Over HTTP, `initialize` without a
//!   session ID, or with an unknown one, opens another session; on a stateless endpoint every `initialize` succeeds.
//! - Visibility: `Registry::get` (`server/registry.rs`); listings call `Feature::is_listed` there (`lists.rs`).

mod call;
mod client_bounds;
mod identity;
mod lists;
mod lookup;
mod methods;
mod recent;
mod replay;
mod requests;
mod role;
#[cfg(all(feature = "auth", feature = "http-server"))]
mod scopes;
mod session_hook;

pub(crate) use call::{Call, Served};
pub(crate) use client_bounds::keep_within;
pub(crate) use identity::{ClientCache, LegacySession};
pub(crate) use lists::{list, list_resources};
pub(crate) use lookup::{call_by_name, complete, read_resource};
pub(crate) use recent::RecentCache;
#[cfg(test)]
pub(crate) use recent::{MAX_ENTRIES, MAX_KEY_BYTES};
pub(crate) use replay::Replay;
pub(crate) use role::ServerRole;
#[cfg(all(feature = "auth", feature = "http-server"))]
pub(crate) use scopes::needed_scopes;
pub(crate) use session_hook::SessionHook;

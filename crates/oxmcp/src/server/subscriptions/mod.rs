//! Subscriptions: notifying clients of list changes, resource updates and events that extensions publish.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions), and for legacy
//! clients [resource subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
//!
//! # Where it is decided
//!
//! - `Server::changed` (`changes.rs`) collects changes in one set (`topics.rs`) and announces them after 10 ms with `notify_all`:
//!   to legacy sessions by `written_changes.rs`, to modern ones by `OpenSubscriptions::add` (`open_subscriptions.rs`), at once or
//!   by the task of `listen_handler.rs`. Other nodes learn of it through `nodes.rs` and the bus of `change_bus.rs`; a session
//!   that several nodes have is notified once (`ToldChanges` in `http/server/sessions/stored_events.rs`).
//! - Limits: `Quota::reserve` (`quota.rs`) and `open_subscriptions.rs`, -32603. The caches of clients are invalidated before any
//!   handler is notified of the change: `client/dispatch.rs`, `CacheState::invalidate` (`client/cache/response_cache.rs`), by
//!   `client/cache/key.rs`.

#[cfg(feature = "http-server")]
mod change_bus;
mod changes;
mod listen_handler;
#[cfg(feature = "http-server")]
mod nodes;
mod open_subscriptions;
mod quota;
mod server;
mod subscribe;
mod topics;
mod watched;
mod written_changes;

#[cfg(feature = "http-server")]
pub(crate) use change_bus::{BusMember, ChangeBus};
pub(crate) use listen_handler::listen;
pub(crate) use open_subscriptions::OpenSubscriptions;
pub(crate) use quota::Quota;
pub(crate) use subscribe::{subscribe, unsubscribe};
pub(crate) use topics::{Changes, DueTopics, Topics};
pub(crate) use watched::release;
pub(crate) use watched::{ResourceSubscriptions, WatchedResources};

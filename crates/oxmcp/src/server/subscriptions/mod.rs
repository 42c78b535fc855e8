//! Subscriptions: notifying clients of list changes, resource updates and events that extensions publish.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions), and for clients
//! until 2025-11-25 [resource
//! subscriptions](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
//!
//! | file | content |
//! |---|---|
//! | `server.rs` | the methods of `Server`: allowing subscriptions, resource updates, publishing |
//! | `changes.rs` | notifying all clients of a change, coalesced |
//! | `nodes.rs`, `change_bus.rs` | changes at other nodes: sending and receiving them, and the bus for it |
//! | `written_changes.rs` | the notifications of changes, written once for all clients that can be notified immediately |
//! | `topics.rs` | sets of topics that have changed, or that a client has subscribed to |
//! | `listen_handler.rs` | `subscriptions/listen`, a request that stays open |
//! | `open_subscriptions.rs` | the registry of these requests, and the notifications due for each |
//! | `subscribe.rs` | `resources/subscribe` and `resources/unsubscribe` |
//! | `watched.rs` | the resources that a session watches, and the hooks |
//! | `quota.rs` | the quota of a client's watches over one connection, and their share of the endpoint's budget |

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
pub(super) use listen_handler::listen;
pub(crate) use open_subscriptions::OpenSubscriptions;
pub(super) use quota::Quota;
pub(super) use subscribe::{subscribe, unsubscribe};
pub(crate) use topics::{Changes, DueTopics, Topics};
pub(super) use watched::release;
pub(crate) use watched::{ResourceSubscriptions, WatchedResources};

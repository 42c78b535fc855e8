//! Subscriptions: notifying clients of list changes, resource updates and what extensions publish.
//! See [subscriptions](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions), and for
//! clients until 2025-11-25 [those of then](https://modelcontextprotocol.io/specification/2025-11-25/server/resources#subscriptions).
//!
//! | file | what is in it |
//! |---|---|
//! | `server.rs` | the methods of `Server`: allowing subscriptions, resource updates, publishing |
//! | `changes.rs` | notifying all clients of a change, coalesced |
//! | `nodes.rs`, `change_bus.rs` | changes at other nodes: what is told and heard, and the bus for it |
//! | `written_changes.rs` | the notifications of changes, written once for all who can be notified at once |
//! | `topics.rs` | sets of what has changed, or of what a client has subscribed to |
//! | `listen.rs` | `subscriptions/listen`, a request that stays open |
//! | `listens.rs` | the registry of these, and what is due for each |
//! | `subscribe.rs` | `resources/subscribe` and `resources/unsubscribe` |
//! | `watched.rs` | the resources that a session watches, and the hooks |
//! | `quota.rs` | how much a client may watch over one connection, and what of the endpoint's budget that takes |

#[cfg(feature = "http-server")]
mod change_bus;
mod changes;
mod listen;
mod listens;
#[cfg(feature = "http-server")]
mod nodes;
mod quota;
mod server;
mod subscribe;
mod topics;
mod watched;
mod written_changes;

#[cfg(feature = "http-server")]
pub(crate) use change_bus::{BusMember, ChangeBus};
pub(super) use listen::listen;
pub(crate) use listens::Listens;
pub(super) use quota::Quota;
pub(super) use subscribe::{subscribe, unsubscribe};
pub(crate) use topics::{Changes, DueTopics, Topics};
pub(super) use watched::release;
pub(crate) use watched::{ResourceSubscriptions, WatchedResources};

//! Sessions that several nodes share. A server of one node uses none of it: `sessions/` calls it through `SharedSession` and
//! `StreamLog`.
//!
//! # Where it is decided
//!
//! - The opening of a session: `create` (`open.rs`) stores its record, and counts the sessions of all nodes; `restore` (`open.rs`)
//!   replays the record on another node.
//! - The state of a session: `Persistence` (`persistence.rs`) saves and checks it, behind `store/breaker.rs`; `ClusterSession`
//!   (`shared_session.rs`) says when, and reacts to the messages of other nodes (`session_bus.rs`).
//! - Streams of requests: `RequestLog` (`request_log.rs`) writes them under a lease (`leased.rs`); `Follower` (`follower.rs`) sends
//!   those of another node, and ends them if it is gone.
//! - The GET stream: `GetLog` (`get_log.rs`) takes it from the node that has it, and marks how much of it was read. Messages wait
//!   for it in `forward.rs`.
//! - Messages for another node: `relay.rs`. The answers that it waits for: `questions.rs`.
//! - The state that nodes have in common: `AnyCluster` (`cluster.rs`), with `SharedKeys` (`session/shared_keys.rs`).

#[expect(
    clippy::module_inception,
    reason = "it is the cluster itself, and the other modules are its parts"
)]
mod cluster;
mod follower;
mod forward;
mod get_log;
mod leased;
mod open;
mod persistence;
mod questions;
mod records;
mod relay;
mod replay;
mod request_log;
mod session_bus;
mod shared_session;

pub use cluster::Cluster;
pub(crate) use cluster::{AnyCluster, NAME, SharedSetting};
pub(crate) use open::{changes, create, restore, share};
pub(crate) use session_bus::SessionBus;

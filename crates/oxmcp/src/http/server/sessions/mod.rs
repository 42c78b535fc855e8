//! HTTP sessions, which `initialize` opens, for revisions before 2026-07-28.
//!
//! # Where it is decided
//!
//! - The number of sessions: `UnopenedSession::new` (`lifecycle.rs`) asks `Sessions::acquire` (`registry.rs`), which evicts the
//!   oldest session that was never used; otherwise the response is 429 for a principal's limit, and 503 for the endpoint's
//!   (`quota.rs`). Nodes count together in their store, which `create_record` (`nodes/session_bus.rs`) asks. The 2024-11-05
//!   transport counts separately and does not evict.
//! - Expiry: `sweep` (`lifecycle.rs`). Records that nodes share: `Persistence::save` (`persistence.rs`), `keep` and
//!   `take_delivery` (`nodes/session_bus.rs`), behind `store/breaker.rs`. What nodes have in common: `AnyCluster`
//!   (`http/cluster.rs`), with `SharedKeys` (`session/shared_keys.rs`).
//! - Resumption: `StreamWriter::write` (`stream_writer.rs`) keeps events; `Last-Event-ID` is read in `get.rs`, which replays with
//!   `StoredReplay`, or `EventStream::replay` if the stream is live. Streams of other nodes: `Follower` (`nodes/follower.rs`),
//!   which ends those of a node that is gone; the GET stream: `nodes/get_stream.rs`, fed by `forward.rs`; answers and
//!   cancellations: `relay.rs`. Events that are gone: 400 (`lost`). Events are dropped by age and size (`store/memory_events.rs`),
//!   and with their session (`end` in `lifecycle.rs`).

mod channel;
mod event_stream;
mod get;
mod lifecycle;
mod nodes;
mod persistence;
mod post;
mod quota;
mod registry;
mod restore;
mod session;
mod stored_events;
mod stream_writer;
mod streams;

pub(crate) use get::{delete, get};
pub(crate) use nodes::{Undelivered, relay, relay_batch};
pub(crate) use post::{Posted, open, post};
pub(crate) use quota::{QuotaExceeded, QuotaPermit, SessionQuota};
pub(crate) use registry::Sessions;
pub(crate) use restore::{changes, restore};
pub(crate) use session::{Session, is_id, new_id};

//! HTTP sessions, which `initialize` opens, for revisions before 2026-07-28.
//!
//! This module serves one node. A session that other nodes know has a `SharedSession` (`shared.rs`), which gives its streams other
//! logs than `StreamWriter` (`StreamLog` in `stream_log.rs`). The rest of the code of clusters is in `cluster/`.
//!
//! # Where it is decided
//!
//! - The number of sessions: `UnopenedSession::new` (`lifecycle.rs`) asks `Sessions::acquire` (`registry.rs`), which evicts the
//!   oldest session that was never used; otherwise the response is 429 for a principal's limit, and 503 for the endpoint's
//!   (`quota.rs`). The 2024-11-05 transport counts separately and does not evict.
//! - Expiry: `sweep` (`lifecycle.rs`).
//! - Resumption: `StreamWriter::write` (`stream_writer.rs`) keeps events; `Last-Event-ID` is read in `get.rs`, which replays with
//!   `StoredReplay`, or `EventStream::replay` (`event_stream.rs`) if the stream is live. Events that are gone: 400 (`lost`). Events
//!   are dropped by age and size (`store/memory_events.rs`), and with their session (`end` in `lifecycle.rs`).
//! - Slow and lost clients: `StreamReader` (`stream_reader.rs`).

mod channel;
mod event_stream;
mod get;
mod lifecycle;
mod post;
mod quota;
mod registry;
mod session;
mod shared;
mod stored_events;
mod stream_log;
mod stream_reader;
mod stream_writer;
mod streams;

pub(crate) use get::{delete, get};
pub(crate) use lifecycle::{UnopenedSession, WeakEndpoint};
pub(crate) use post::{Posted, open, post};
pub(crate) use quota::{QuotaExceeded, QuotaPermit, SessionQuota};
pub(crate) use registry::Sessions;
pub(crate) use session::{Session, SessionGuard, is_id, new_id};
pub(crate) use shared::{FollowedStream, SharedSession, renew};
pub(crate) use stored_events::{encode, is_note};
pub(crate) use stream_log::{Moment, NodeEvent, Opened, Replayed, StreamLog, Written};
pub(crate) use stream_writer::{Append, StreamKey, StreamWriter, log};
pub(crate) use streams::{GET_STREAM, Purpose, REPLAYED};

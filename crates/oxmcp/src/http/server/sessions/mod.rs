//! Sessions that `initialize` opens, for revisions before 2026-07-28 over HTTP.
//!
//! | | |
//! |---|---|
//! | `session` | a session: its connection, its use, and its record |
//! | `registry` | the sessions of an endpoint, by id |
//! | `quota` | the limits on the number of sessions, and the eviction of unused ones |
//! | `lifecycle` | opening, idle expiry, and end |
//! | `post` | POSTs: `initialize`, and messages of open sessions |
//! | `get` | GET and DELETE; resumption of streams that have ended |
//! | `streams` | the live streams, by name |
//! | `event_stream` | the task of one stream; resumption of streams that go on |
//! | `stream_writer` | storing of the stream's events, and the lease that this needs |
//! | `stored_events` | the encoding of messages and records as they are stored and sent |
//! | `channel` | the channel from that task to the response |
//! | `persistence` | the record of a session in a store |
//! | `nodes` | sessions that several nodes have |
//! | `restore` | sessions of other nodes, restored from their records |

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

pub(super) use get::{delete, get};
pub(super) use nodes::{Undelivered, relay, relay_batch};
pub(super) use post::{Posted, open, post};
pub(super) use quota::{QuotaExceeded, QuotaPermit, SessionQuota};
pub(super) use registry::Sessions;
pub(super) use restore::{changes, restore};
pub(super) use session::{Session, is_id, new_id};

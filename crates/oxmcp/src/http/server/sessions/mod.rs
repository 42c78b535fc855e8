//! Sessions that `initialize` opens: the eras before 2026-07-28 over HTTP.
//!
//! | | |
//! |---|---|
//! | `session` | a session: its connection, its use, its record |
//! | `registry` | the sessions of an endpoint, by id |
//! | `quota` | how many there may be, and which are evicted |
//! | `lifecycle` | opening, idle expiry, and end |
//! | `post` | POSTs: `initialize`, and messages of open sessions |
//! | `get` | GET and DELETE; resumption of streams that have ended |
//! | `streams` | the streams that are being sent on, by name |
//! | `event_stream` | the task of one stream; resumption of those that go on |
//! | `stream_writer` | what that task stores, and the lease under which it does |
//! | `stored_events` | messages and records, as they are stored and sent |
//! | `channel` | from that task to the response |
//! | `persistence` | the record of a session in a store |
//! | `nodes` | sessions that several nodes have |
//! | `restore` | sessions of other nodes, from their records |

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
pub(super) use nodes::{relay, relay_batch};
pub(super) use post::{Posted, open, post};
pub(super) use quota::{QuotaExceeded, QuotaPermit, SessionQuota};
pub(super) use registry::Sessions;
pub(super) use restore::{changes, restore};
pub(super) use session::{Session, is_id, new_id};

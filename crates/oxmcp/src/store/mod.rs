//! What outlives a connection, or a process: the events of streams, and the sessions of clients.
//!
//! The endpoint for HTTP keeps both in memory unless it is told otherwise. Implement the traits over whatever several
//! nodes share, with plain `async fn`s, and a client can go on at another node than the one where it began.
//!
//! | | keeps | in memory |
//! |---|---|---|
//! | [`EventStore`] | what was sent on the streams of legacy sessions, for clients that lost a connection | [`MemoryEventStore`] |
//! | [`SessionStore`] | what a legacy session is made of | [`MemorySessionStore`] |
//!
//! [`testing::event_store_contract`](crate::testing::event_store_contract) and
//! [`testing::session_store_contract`](crate::testing::session_store_contract) tell whether an implementation does what is
//! promised here. One that has not answered within 30 s has failed, and its future is dropped. Modern requests need neither: they have no sessions, and their streams are not resumed.

mod event_batch;
mod event_id;
mod events;
mod in_time;
mod memory_events;
mod memory_sessions;
mod memory_streams;
mod record;
mod sessions;

use std::{future::Future, pin::Pin};

pub use event_batch::EventBatch;
pub use event_id::EventId;
pub(crate) use events::AnyEventStore;
pub use events::{EventStore, Replay};
pub use memory_events::MemoryEventStore;
pub use memory_sessions::MemorySessionStore;
pub use record::SessionRecord;
pub(crate) use sessions::AnySessionStore;
pub use sessions::SessionStore;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

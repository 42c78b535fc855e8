//! Stores of what outlives a connection or a process: the events of streams, and the sessions of clients.
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
//! promised here. One that has not answered within 30 s has failed, and its future is dropped. Modern requests need neither:
//! they have no sessions, and their streams are not resumed.

// The files of this room:
//
// | `events`, `memory_events` | the trait of event stores, and the one in memory |
// | `sessions`, `memory_sessions` | the trait of session stores, and the one in memory |
// | `erased` | both traits as objects, with a time-out for each call |

mod erased;
mod events;
mod memory_events;
mod memory_sessions;
mod sessions;

pub(crate) use erased::{AnyEventStore, AnySessionStore};
pub use events::{EventBatch, EventId, EventStore, Replay};
pub use memory_events::MemoryEventStore;
pub use memory_sessions::MemorySessionStore;
pub use sessions::{SessionRecord, SessionStore};

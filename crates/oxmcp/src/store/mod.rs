//! Stores of what outlives a connection or a process: the events of streams, and the sessions of clients; and the bus between nodes.
//!
//! The endpoint for HTTP keeps both in memory unless it is told otherwise, and has no bus. Implement the traits over whatever several
//! nodes share, with plain `async fn`s, and a client can go on at another node than the one where it began.
//!
//! | | keeps | in memory |
//! |---|---|---|
//! | [`EventStore`] | what was sent on the streams of legacy sessions, for clients that lost a connection | [`MemoryEventStore`] |
//! | [`SessionStore`] | what a legacy session is made of | [`MemorySessionStore`] |
//! | [`Bus`] | nothing: it carries messages between nodes | [`MemoryBus`] |
//!
//! [`testing::event_store_contract`](crate::testing::event_store_contract),
//! [`testing::session_store_contract`](crate::testing::session_store_contract) and
//! [`testing::bus_contract`](crate::testing::bus_contract) tell whether an implementation does what is promised here. One that has
//! not answered within two seconds has failed, its future is dropped, and it is not asked for five seconds, then by one call alone
//! until it answers. At most 256 calls of one are under way at once; others wait their turn, for ten seconds. Modern requests need
//! neither store: they have no sessions, and their streams are not resumed.

// The files of this room:
//
// | `events`, `memory_events` | the trait of event stores, and the one in memory |
// | `sessions`, `memory_sessions` | the trait of session stores, and the one in memory |
// | `bus`, `memory_bus` | the trait of buses, and the one in memory |
// | `listen` | a subscription to a bus that goes on |
// | `erased` | the traits as objects, with a time-out for each call |
// | `breaker` | that time-out, the pause after it, and whether a store answers |
// | `hashed` | hashes of secrets |

mod breaker;
mod bus;
mod erased;
mod events;
mod hashed;
mod listen;
mod memory_bus;
mod memory_events;
mod memory_sessions;
mod sessions;

pub(crate) use breaker::{Breaker, StoreHealth};
pub use bus::{Bus, Delivery};
pub(crate) use erased::{
    AnyBus, AnyEventStore, AnySessionStore, any_bus, any_event_store, any_session_store,
};
pub use events::{Claim, EventBatch, EventId, EventStore, Lease, Replay, StreamWrite};
pub use hashed::hashed;
pub(crate) use listen::listen;
pub use memory_bus::MemoryBus;
pub use memory_events::MemoryEventStore;
pub use memory_sessions::MemorySessionStore;
pub use sessions::{Creation, SessionRecord, SessionStore, Setting, StoredSession, TOMBSTONE};

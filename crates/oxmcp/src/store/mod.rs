//! Stores of state that outlives a connection or a process: the events of streams, and the sessions of clients; and the bus
//! between nodes.
//!
//! By default the HTTP endpoint keeps both in memory, and has no bus. To let clients continue at another node than the one
//! where they began, implement the traits with plain `async fn`s over a store that the nodes share.
//!
//! | trait | contents | implementation in memory |
//! |---|---|---|
//! | [`EventStore`] | the events of the streams of legacy sessions, for clients that lost a connection | [`MemoryEventStore`] |
//! | [`SessionStore`] | the records of legacy sessions | [`MemorySessionStore`] |
//! | [`Bus`] | none: it carries messages between nodes | [`MemoryBus`] |
//!
//! [`testing::event_store_contract`](crate::testing::event_store_contract),
//! [`testing::session_store_contract`](crate::testing::session_store_contract) and
//! [`testing::bus_contract`](crate::testing::bus_contract) check an implementation against the contract of its trait. A store
//! that has not answered a call within two seconds has failed: the call's future is dropped, and the store is not called for
//! five seconds, and then by one call at a time until it answers. At most 256 calls of a store are in flight at once; others
//! wait their turn, for ten seconds at most. Modern requests need neither store, since they have no sessions, and their streams
//! are not resumed.

// The files of this module:
//
// | `events`, `memory_events` | the trait of event stores, and the one in memory |
// | `sessions`, `memory_sessions` | the trait of session stores, and the one in memory |
// | `bus`, `memory_bus` | the trait of buses, and the one in memory |
// | `listen` | a subscription to a bus that is renewed when it ends |
// | `erased` | the object-safe forms of the traits, with a time-out for each call |
// | `breaker` | that time-out, the pause after it, and the health of a store |
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

//! Stores for state that outlives a connection or a process: stream events and client sessions. Also the bus between nodes.
//!
//! By default, the HTTP endpoint keeps both in memory, and has no bus. To let clients continue at another node, implement the
//! traits with plain `async fn`s over a store that the nodes share.
//!
//! | trait | contents | implementation in memory |
//! |---|---|---|
//! | [`EventStore`] | the events of the streams of legacy sessions, for clients that lost a connection | [`MemoryEventStore`] |
//! | [`SessionStore`] | the records of legacy sessions | [`MemorySessionStore`] |
//! | [`Bus`] | none: it carries messages between nodes | [`MemoryBus`] |
//!
//! [`testing::event_store_contract`](crate::testing::event_store_contract),
//! [`testing::session_store_contract`](crate::testing::session_store_contract) and
//! [`testing::bus_contract`](crate::testing::bus_contract) check an implementation against the contract of its trait. They are in
//! the feature `contracts`.
//!
//! A call that takes longer than two seconds fails, and its future is dropped. The store is then not called for five seconds,
//! and after that by one call at a time until it responds. At most 256 calls of a store are in flight at once; others wait for
//! ten seconds at most.
//!
//! Modern requests need neither store: they have no sessions, and their streams are not resumed.

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
pub use events::{ClaimMode, EventBatch, EventId, EventStore, Lease, Replay, StreamWrite};
pub use hashed::hashed;
pub(crate) use listen::listen;
pub use memory_bus::MemoryBus;
pub use memory_events::MemoryEventStore;
pub use memory_sessions::MemorySessionStore;
pub use sessions::{
    CreateOutcome, SessionChange, SessionRecord, SessionStore, StoredSession, TOMBSTONE,
};

//! What outlives connections: events and sessions, the contracts of their stores, and the stores in memory.

mod contracts;
mod events;
mod sessions;

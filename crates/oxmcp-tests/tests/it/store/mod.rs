//! Stores of events and sessions: their contracts, and the stores in memory.

mod contracts;
mod events;
mod sessions;

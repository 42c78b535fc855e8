//! The event loop of a connection: its bounds, its writes and its end.

mod broken_connections;
mod coalesced_writes;
mod half_closed;
mod keep_alive;
mod last_words;
pub(crate) mod limits;
#[cfg(target_os = "linux")]
mod peak_memory;
mod session_handles;
mod shutdown;

//! The event loop of a connection and its output.
//!
//! | file | |
//! |---|---|
//! | `event_loop.rs` | reading, writing, fairness, backpressure, draining |
//! | `outbox.rs` | the output buffer, its backpressure, the memory that it keeps |
//! | `undriven.rs` | the output of connections without a driver, as over HTTP |
//! | `budget.rs` | the budget of bytes that the connections of an HTTP endpoint share |
//! | `restart.rs` | reconnecting to peers that have ended |
//! | `shutdown.rs`, `flush.rs` | the phases of the end; the deadline of the last of them |
//! | `keep_alive.rs` | pings |

#[cfg(feature = "http-server")]
pub(crate) mod budget;
pub(crate) mod event_loop;
mod flush;
pub(crate) mod keep_alive;
pub(crate) mod outbox;
#[cfg(feature = "client")]
mod restart;
pub(crate) mod shutdown;
#[cfg(feature = "http-server")]
pub(crate) mod stream_output;

//! The event loop of a connection and its output.
//!
//! | file | |
//! |---|---|
//! | `event_loop.rs` | reading, writing, fairness, backpressure, draining |
//! | `outbox.rs` | the output buffer, backpressure of those who append, memory that is kept |
//! | `undriven.rs` | the output of connections without a driver, as over HTTP |
//! | `shutdown.rs` | the phases of the end |
//! | `keep_alive.rs` | pings |

pub(crate) mod event_loop;
pub(crate) mod keep_alive;
pub(crate) mod outbox;
pub(crate) mod shutdown;
#[cfg(feature = "http-server")]
pub(crate) mod undriven;

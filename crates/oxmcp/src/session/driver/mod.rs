//! The event loop of a connection and its output.
//!
//! | file | |
//! |---|---|
//! | `event_loop.rs` | reading, writing, fairness, backpressure, draining |
//! | `outbox.rs` | the output buffer, backpressure of those who append, memory that is kept |
//! | `undriven.rs` | the output of connections without a driver, as over HTTP |
//! | `budget.rs` | the bytes that the connections of an HTTP endpoint hold together |
//! | `restart.rs` | peers that ended and are connected to anew |
//! | `shutdown.rs`, `flush.rs` | the phases of the end; how long the last of them may take |
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
pub(crate) mod undriven;

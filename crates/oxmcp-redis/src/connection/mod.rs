//! Connection to Redis: one for all commands, which reconnects automatically, with a timeout for each operation.

mod address;
mod handle;
#[cfg(feature = "cluster")]
mod nodes;
#[cfg(feature = "sentinel")]
mod sentinel;
mod server;

pub(crate) use handle::Connection;

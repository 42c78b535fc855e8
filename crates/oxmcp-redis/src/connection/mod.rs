//! Connection to Redis: one for all commands, which reconnects by itself, with a deadline for each operation.
//!
//! | | |
//! |---|---|
//! | `handle` | the connection that all stores share |
//! | `server` | connecting to one server, and its `INFO` |
//! | `address` | the address of Redis, in every form |
//! | `sentinel` | the primary, as sentinels name it |
//! | `nodes` | the nodes of a cluster |

mod address;
mod handle;
#[cfg(feature = "cluster")]
mod nodes;
#[cfg(feature = "sentinel")]
mod sentinel;
mod server;

pub(crate) use handle::Connection;

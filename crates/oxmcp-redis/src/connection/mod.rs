//! Connection to Redis: one for all commands, which connects again by itself, and the patience of each operation.
//!
//! | | |
//! |---|---|
//! | `handle` | the connection that all stores share |
//! | `server` | connecting to one server, and what it says of itself |
//! | `address` | where Redis is, in every form |
//! | `sentinel` | who is the primary, where sentinels know |
//! | `nodes` | the nodes of a cluster |

mod address;
mod handle;
#[cfg(feature = "cluster")]
mod nodes;
#[cfg(feature = "sentinel")]
mod sentinel;
mod server;

pub(crate) use handle::Connection;

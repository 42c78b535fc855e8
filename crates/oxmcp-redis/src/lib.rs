//! Stores of MCP servers in Redis or Valkey, which several processes can share.
//!
//! ```no_run
//! use oxmcp::{Server, StateKey, http::StreamableHttp, tasks::Tasks};
//! use oxmcp_redis::Redis;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oxmcp::Result<()> {
//! # let key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
//! // The same key in all processes, from where secrets are kept. `openssl rand -base64 32` makes one.
//! let store = Redis::connect("redis://localhost").await?.keys([StateKey::from_base64(key)?]);
//! let server = Server::new("office", "1.0.0").extension(Tasks::in_memory().extension());
//! StreamableHttp::from(server).cluster(store).serve("0.0.0.0:8080").await?.await;
//! # Ok(())
//! # }
//! ```
//!
//! The stores need Redis 7.0 or Valkey 7.2, or newer. Redis has the ids of tasks and the names of their owners as hashes, and
//! everything else sealed with the keys, so that neither its commands nor its files show them. The time is that of Redis.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The files of this crate:
//
// | `store` | [`Redis`], the handle, and its settings |
// | `tasks` | tasks |
// | `sessions` | sessions |
// | `events` | events of streams |
// | `cluster` | all stores as the cluster of an endpoint, and the facts that nodes compare |
// | `bus` | the bus between nodes |
// | `scripts`, `scripts/` | the Lua scripts of the stores |
// | `changes` | the subscription that wakes waiters when data changes |
// | `names` | the names of keys and channels |
// | `values` | the encoding of stored values: sealed or plain |
// | `connection/` | the connection to Redis in every form, and the deadline of each operation |
// | `failure` | the errors |

mod bus;
mod changes;
mod cluster;
mod connection;
mod events;
mod failure;
mod names;
mod scripts;
mod sessions;
mod store;
mod tasks;
mod values;

pub use store::Redis;

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

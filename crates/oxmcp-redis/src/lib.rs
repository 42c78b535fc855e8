//! Stores for MCP servers in Redis or Valkey, which several processes can share.
//!
//! ```no_run
//! use oxmcp::{Server, http::StreamableHttp, keys::StateKey, tasks::Tasks};
//! use oxmcp_redis::Redis;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oxmcp::Result<()> {
//! # let key = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
//! // The same key in all processes, from your secret store. Create one with `openssl rand -base64 32`.
//! let store = Redis::connect("redis://localhost").await?.keys([StateKey::from_base64(key)?]);
//! let server = Server::new("office", "1.0.0").extension(Tasks::in_memory().extension());
//! StreamableHttp::from(server).cluster(store).serve("0.0.0.0:8080").await?.ended().await;
//! # Ok(())
//! # }
//! ```
//!
//! The stores need Redis 7.0, Valkey 7.2, or newer. Task IDs and the names of their owners are stored as hashes, and everything
//! else is sealed with the keys, so that neither Redis commands nor its files show them. Leases and expiry use the clock of Redis.

#![cfg_attr(docsrs, feature(doc_cfg))]

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

//! Stores for an MCP server in one SQLite file, which keep sessions and tasks over restarts of its process.
//!
//! ```
//! use oxmcp::{Server, http::StreamableHttp, tasks::Tasks};
//! use oxmcp_sqlite::Sqlite;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oxmcp::Result<()> {
//! # let directory = std::env::temp_dir().join(format!("oxmcp-sqlite-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! # let path = directory.join("state.db");
//! let store = Sqlite::open(&path).await?;
//! let server = Server::new("office", "1.0.0").extension(Tasks::in_memory().extension());
//! // Sessions, their events and tasks are in the file. Over stdio, write `Tasks::new(store)`.
//! let endpoint = StreamableHttp::from(server).cluster(store);
//! # drop(endpoint);
//! # std::fs::remove_dir_all(directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! Acknowledged data is on the disk: it survives a crash of the program and of the machine. One thread writes, and concurrent
//! operations become one commit. Only one process can open the file at a time; a second one gets an error. SQLite is compiled into
//! this crate, and needs no system library.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod cluster;
mod database;
mod events;
mod failure;
mod schema;
mod sessions;
mod store;
mod tasks;

pub use store::Sqlite;

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

//! Stores of an MCP server in one SQLite file, for one process that restarts.
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
//! // Its sessions, their events and its tasks are in the file. Over stdio it is `Tasks::new(store)`.
//! let endpoint = StreamableHttp::from(server).cluster(store);
//! # drop(endpoint);
//! # std::fs::remove_dir_all(directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! Data that a store has acknowledged is on the disk: it outlives a crash of the program and of the machine. One thread writes, and
//! operations that arrive at the same time become one commit. Only one process can open the file at a time; another one is refused.
//! SQLite is compiled into this crate, and needs no library of the system.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The files of this crate:
//
// | `store` | [`Sqlite`], the handle, and its bounds |
// | `tasks` | tasks |
// | `sessions` | sessions |
// | `events` | events of streams |
// | `cluster` | all stores as the cluster of an endpoint, with keys and a bus in memory |
// | `schema` | the tables, and the checks of a file that is opened |
// | `database` | the thread that has the connection |
// | `failure` | the errors |

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

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
//! What a store has acknowledged is on the disk: it outlives a crash of the program and of the machine. One thread writes, and what
//! is asked of it at the same time becomes one commit. One process has the file; another one that opens it is refused. SQLite is a
//! part of this crate, and needs nothing of the system.

// The files of this crate:
//
// | `store` | [`Sqlite`], the handle, and its bounds |
// | `tasks` | tasks |
// | `sessions` | sessions |
// | `events` | events of streams |
// | `cluster` | all of it for an endpoint, with keys and a bus in memory |
// | `schema` | the tables, and whose file it is |
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

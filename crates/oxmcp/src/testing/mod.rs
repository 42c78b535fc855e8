//! Test utilities for servers and clients: both ends in one process, without real waits.
//!
//! [`connect()`] opens a client's session with a [`Server`](crate::Server), in a revision of your choice. It needs the features
//! `client` and `server`. [`ScriptedPeer`] is a peer of either role that sends exactly the messages of a test, and records the
//! ones it receives.
//!
//! The feature `contracts` adds tests for your own store or bus: `event_store_contract`, `session_store_contract` and
//! `bus_contract` with `http-server`, `task_store_contract` with `server` and `tasks`, and `token_store_contract` with `auth`
//! check an implementation against the contract of its trait. Enable it in the `dev-dependencies`.
//!
//! Everything works under tokio's paused time (`#[tokio::test(start_paused = true)]`).
//!
//! ```
//! use oxmcp::{JsonSchema, Revision, Server, Tool, testing};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Pair { a: f64, b: f64 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> oxmcp::Result<()> {
//! let server = Server::new("calculator", "1.0.0")
//!     .tool(Tool::new("add", "Add two numbers", |Pair { a, b }: Pair| async move { a + b }));
//!
//! let t = testing::connect(&server).revision(Revision::V2025_06_18).await?;
//! assert_eq!(t.call_tool("add", json!({"a": 1, "b": 2})).structured::<f64>().await?, 3.0);
//! # t.close().await
//! # }
//! ```

#[cfg(all(feature = "contracts", feature = "http-server"))]
mod bus_contract;
#[cfg(all(feature = "client", feature = "server"))]
mod connect;
#[cfg(all(feature = "contracts", any(feature = "auth", feature = "http-server")))]
mod contract_rules;
#[cfg(all(feature = "contracts", feature = "http-server"))]
mod event_contract;
mod scripted_peer;
#[cfg(all(feature = "contracts", feature = "http-server"))]
mod session_contract;
#[cfg(all(feature = "contracts", feature = "server", feature = "tasks"))]
mod task_contract;
#[cfg(all(feature = "contracts", feature = "auth"))]
mod token_store_contract;

#[cfg(all(feature = "contracts", feature = "http-server"))]
pub use bus_contract::bus_contract;
#[cfg(all(feature = "client", feature = "server"))]
pub use connect::{Connect, connect};
#[cfg(all(feature = "contracts", feature = "http-server"))]
pub use event_contract::event_store_contract;
pub use scripted_peer::ScriptedPeer;
#[cfg(all(feature = "contracts", feature = "http-server"))]
pub use session_contract::session_store_contract;
#[cfg(all(feature = "contracts", feature = "server", feature = "tasks"))]
pub use task_contract::task_store_contract;
#[cfg(all(feature = "contracts", feature = "auth"))]
pub use token_store_contract::token_store_contract;

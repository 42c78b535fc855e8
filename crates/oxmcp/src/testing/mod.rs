//! Test utilities for servers and clients: both ends in one process, without real waits.
//!
//! [`connect()`] opens a client's session with a [`Server`](crate::Server), in a revision of your choice. It needs the features
//! `client` and `server`. [`ScriptedPeer`] is a peer of either role that sends exactly the messages of a test, and records the
//! ones it receives.
//!
//! With the feature `http-server`, `event_store_contract`, `session_store_contract` and `bus_contract` check the implementation
//! of a store or bus against the contract of its trait. So do `task_store_contract` with `server` and `tasks`, and
//! `token_store_contract` with `auth`. Everything works under tokio's paused time (`#[tokio::test(start_paused = true)]`).
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

#[cfg(feature = "http-server")]
mod bus_contract;
#[cfg(all(feature = "client", feature = "server"))]
mod connect;
#[cfg(any(feature = "auth", feature = "http-server"))]
mod contract_rules;
#[cfg(feature = "http-server")]
mod event_contract;
mod scripted_peer;
#[cfg(feature = "http-server")]
mod session_contract;
#[cfg(all(feature = "server", feature = "tasks"))]
mod task_contract;
#[cfg(feature = "auth")]
mod token_store_contract;

#[cfg(feature = "http-server")]
pub use bus_contract::bus_contract;
#[cfg(all(feature = "client", feature = "server"))]
pub use connect::{Connect, connect};
#[cfg(feature = "http-server")]
pub use event_contract::event_store_contract;
pub use scripted_peer::ScriptedPeer;
#[cfg(feature = "http-server")]
pub use session_contract::session_store_contract;
#[cfg(all(feature = "server", feature = "tasks"))]
pub use task_contract::task_store_contract;
#[cfg(feature = "auth")]
pub use token_store_contract::token_store_contract;

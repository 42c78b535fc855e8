//! Test doubles for servers and clients: both ends in one process, and without waiting.
//!
//! [`connect()`] gives a client's session with a [`Server`](crate::Server), at a revision of your choice; it needs the features
//! `client` and `server`.
//! [`ScriptedPeer`] is a peer of either role that says exactly what a test tells it to say, and writes down what it
//! heard. With the feature `http-server`, `event_store_contract`, `session_store_contract` and `bus_contract` hold a store of yours against
//! what it must do; with `server` and `tasks` `task_store_contract`, and with `auth` `token_store_contract`. All work under tokio's virtual time (`#[tokio::test(start_paused = true)]`).
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

// The files of this room:
//
// | `connect` | a client and a server, connected in memory |
// | `scripted_peer` | [`ScriptedPeer`] |
// | `event_contract`, `session_contract`, `bus_contract` | the contracts of what nodes share |
// | `token_store_contract` | the contract of stores of credentials |
// | `task_contract` | the contract of stores of tasks |
// | `contract_rules` | what they have in common |

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

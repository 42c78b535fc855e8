//! Many servers of the Model Context Protocol as one: one list of tools, one place to call them, one set of handlers for their
//! questions.
//!
//! ```no_run
//! use oxmcp::{Client, Command};
//! use oxmcp_group::ClientGroup;
//! use serde_json::json;
//!
//! # async fn run() -> oxmcp::Result<()> {
//! let group = ClientGroup::from_config(Client::new("my-app", "1.0.0"), "mcp.json")?
//!     .server("files", Command::new("files-server"))
//!     .connect()
//!     .await?;
//! let result = group.call_tool("files_read", json!({"path": "notes.txt"})).await?;
//! # let _ = result;
//! group.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`ClientGroup`], [`GroupSession`], [`GroupCall`] | the group: its settings, its sessions, its calls |
//! | [`ServerStatus`], [`ServerState`], [`GroupEvent`] | the states of its servers, and their changes |
//! | [`Config`], [`ConfigReader`], [`ServerConfig`] | the configuration files of hosts |
//! | [`ToolRule`] | tools that are allowed or denied |
//! | `Gateway`, `ProxyServer` | servers behind a server (feature `gateway`) |
//! | [`ToolSearch`] | two tools in place of hundreds |
//! | [`ModelApi`] | tools and results in the forms of the APIs of models |
//! | [`router`] | names and URIs: which server they belong to |
//!
//! A server that is down, slow, or ends does not affect the others. The guide
//! [many servers](https://docs.rs/oxmcp/latest/oxmcp/guide/many_servers/) explains all of it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod config;
mod filter;
#[cfg(feature = "gateway")]
mod gateway;
mod group;
mod model;
pub mod router;

pub use config::{Config, ConfigError, ConfigReader, Input, Mistake, ServerConfig};
pub use filter::ToolRule;
#[cfg(feature = "gateway")]
pub use gateway::{Gateway, GatewaySession, ProxyServer, Upstream};
pub use group::{
    ClientGroup, GroupCall, GroupEvent, GroupEvents, GroupSession, Origin, ServerState,
    ServerStatus, ToolSearch,
};
pub use model::ModelApi;

/// The code in README.md is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

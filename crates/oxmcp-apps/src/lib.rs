//! [MCP Apps](https://modelcontextprotocol.io/extensions/apps/overview) for [oxmcp](https://docs.rs/oxmcp): user interfaces that
//! servers of the Model Context Protocol offer, and hosts show next to the conversation. It is the official extension
//! `io.modelcontextprotocol/ui`, in the revision 2026-01-26.
//!
//! # A server
//!
//! An [`App`] is an HTML document with a URI. Attach it to the tools whose results it shows, and add it to the server:
//!
//! ```
//! use oxmcp::Server;
//! use oxmcp_apps::{App, ServerExt, ToolExt};
//!
//! /// Tell the time in a city.
//! #[oxmcp::tool(read_only)]
//! async fn now(city: String) -> String {
//!     format!("It is ten past two in {city}.")
//! }
//!
//! let view = App::new("ui://clock/view.html", "<!doctype html><p>…</p><script>/* … */</script>")
//!     .connect("https://time.example.com")
//!     .border(true);
//! let server = Server::new("clock", "1.0.0").tool(now::tool().app(&view)).app(view);
//! # assert!(server.check().is_ok());
//! ```
//!
//! - The document gets the arguments and the result of the call from the host, by the messages of the
//!   [specification](https://github.com/modelcontextprotocol/ext-apps). It can call tools of its server: all of them, apart from
//!   those that are [`model_only`](ToolExt::model_only). Tools that are [`app_only`](ToolExt::app_only) are hidden from the model.
//! - A result should have content even if an app shows it: the model reads the content, and so do users of hosts without apps.
//!   Its structured content is for the app, too, and its `_meta` only for the app.
//! - By default the document can load nothing. [`connect`](App::connect) and its siblings add origins.
//! - The metadata is sent in every form that hosts read: on the entry of the listing and on the contents, with empty lists, and
//!   with the older key of tools. It needs revision 2025-06-18 or later; clients of older ones have the tools without the app.
//! - [`Server::check`](oxmcp::Server::check) finds mistakes, and so does the server before it serves. With the feature `host`,
//!   [`rules::check`] checks any server through a session.
//!
//! # A host
//!
//! With the feature `host`, the module [`host`] has what a Rust program needs to show apps. It does no I/O and shows no page: the
//! program has a web view or a browser, and pipes JSON messages between the page and an [`AppBridge`](host::AppBridge).
//!
//! | | |
//! |---|---|
//! | [`host::extension`] | declares that the client shows apps |
//! | [`host::is_for_model`] | hides tools that are only for views |
//! | [`host::AppPage`] | opens the app of a tool: document, policy, permissions |
//! | [`host::AppBridge`] | holds a view to the protocol |
//! | [`host::sandbox_proxy`] | the page between a host that is a web page and a view |
//!
//! # Features
//!
//! `server`, on by default, and `host`. The crate uses only the public API of `oxmcp`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod csp;
#[cfg(feature = "host")]
pub mod host;
mod html;
mod metadata;
pub mod rules;
#[cfg(feature = "server")]
mod server;

pub use csp::Csp;
pub use metadata::{AppMeta, Permission, ToolUi, Visibility};
#[cfg(feature = "server")]
pub use server::{App, AppHtml, ServerExt, ToolExt, client_shows_apps, extension};

/// The identifier of the extension.
pub const ID: &str = "io.modelcontextprotocol/ui";

/// The MIME type of apps.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The code in the README is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

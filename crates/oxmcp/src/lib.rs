//! The [Model Context Protocol](https://modelcontextprotocol.io) (MCP) for Rust: servers that give tools to language
//! models, and the clients that use them.
//!
//! A server is written once and serves clients of every revision of the protocol, several of them on one connection if
//! need be. A client finds out by itself what a server speaks. Nothing has to be chosen; all of it can be.
//!
//! # A server
//!
//! ```no_run
//! use oxmcp::{Server, ToolError, stdio};
//!
//! /// Add two numbers.
//! #[oxmcp::tool]
//! async fn add(a: f64, b: f64) -> f64 {
//!     a + b
//! }
//!
//! /// Divide a by b.
//! #[oxmcp::tool(read_only)]
//! async fn divide(
//!     /// the dividend
//!     a: f64,
//!     /// the divisor, not 0
//!     b: f64,
//! ) -> Result<f64, ToolError> {
//!     if b == 0.0 {
//!         return Err(ToolError::new("b must not be 0"));
//!     }
//!     Ok(a / b)
//! }
//!
//! #[tokio::main]
//! async fn main() -> oxmcp::Result<()> {
//!     let server = Server::new("calculator", "1.0.0").tools([add::tool(), divide::tool()]);
//!     server.run(stdio()).await
//! }
//! ```
//!
//! The attributes [`tool`](macro@tool), [`prompt`](macro@prompt) and [`resource`](macro@resource) write what can be written by hand: a
//! struct of the arguments, and [`Tool::new`]. A handler is an async function of its input, or of a [`RequestContext`] and its input;
//! see [`Handler`](traits::Handler). What it may return is listed at [`IntoToolResult`](traits::IntoToolResult), and what it fails with at [`ToolError`]. What handlers share is
//! a parameter with `#[state]`, which [`Server::state`] gives to all who take it.
//!
//! # A client
//!
//! ```no_run
//! use oxmcp::{Client, Command};
//! use serde_json::json;
//!
//! # async fn run() -> oxmcp::Result<()> {
//! let session = Client::new("my-app", "1.0.0").connect(Command::new("calculator")).await?;
//! let sum: f64 = session.call_tool("add", json!({"a": 1, "b": 2})).structured().await?;
//! assert_eq!(sum, 3.0);
//! session.close().await
//! # }
//! ```
//!
//! A [`Call`] is awaited as it is, or is first given a timeout, a function for its progress, or a token that cancels it.
//!
//! # Where things are
//!
//! | | |
//! |---|---|
//! | [`Server`], [`ServerSession`], [`Tool`], [`Prompt`], [`Resource`], [`ResourceTemplate`] | what a server offers, and to whom |
//! | [`tool`](macro@tool), [`prompt`](macro@prompt), [`resource`](macro@resource) | the attributes that make these of functions |
//! | [`Completer`] | what the arguments of prompts could be, while they are typed |
//! | [`Client`], [`ClientSession`], [`Call`], [`Listing`], [`Subscription`], [`ResourceWatch`] | what a client asks, and of whom |
//! | [`CacheOptions`], [`CacheMode`] | what a client keeps of the answers, and for how long |
//! | [`RequestContext`], [`Principal`] | what a handler knows of its request: progress, cancellation, the caller |
//! | [`RequestContext::ask`], [`Question`], [`Reply`], [`StateKey`] | asking the user, a model, or for the roots, in the middle of a request |
//! | [`logging`] | log messages for the user of the client |
//! | [`JsonSchema`], [`Schema`], [`SchemaOptions`] | schemas: inferred, customised, written down |
//! | [`transport`] | [`stdio()`], [`Command`], [`in_memory`], byte streams, and how to write your own |
//! | `http`, with the features `http-server` and `http-client` | an endpoint for every revision under one URL, and the client's way to one |
//! | `auth`, with the feature of that name | the steps of authorization: clients, keys, issuers, scopes, challenges |
//! | `store`, with the feature `http-server` | what outlives a connection or a process: events of streams, sessions |
//! | `tasks`, with the feature of that name | calls that go on when they have been answered |
//! | [`extension`], [`Extension`] | methods, notifications and settings that the protocol does not have |
//! | [`middleware`] | code that sees requests and notifications, on their way in or out |
//! | [`trace`] | spans of requests, and one trace on both sides |
//! | [`testing`] | client and server in one process, and a peer that follows a script |
//! | [`protocol`] | the types of the protocol, under the specification's names: [`protocol::Tool`] is what a client reads in a list, and [`Tool`] what a server is given |
//! | [`traits`] | what handlers may take and return, and other bounds that are rarely named |
//! | [`Limits`] | the bounds on all that a peer can make grow |
//!
//! # Revisions
//!
//! [`Revision`] lists them. The first four open a session with `initialize`; the last is stateless, and every request says
//! all that there is to know. Types hold the members of all revisions, and what is sent is fitted to the revision of the
//! peer. A client fails with [`Error::is_unsupported`] where the server's revision lacks a method, and sends nothing.
//! [`Server::revisions`] and [`Client::revisions`] restrict which are spoken.
//!
//! # Cancel safety
//!
//! Dropping a future is the way to cancel what it does, and on the wire it does this:
//!
//! - A [`Call`] that was sent and has no answer yet is cancelled: the server gets `notifications/cancelled`, and an answer that
//!   comes all the same is ignored. So do its timeout and its token. `initialize` alone is never cancelled, as the
//!   specification says.
//! - A handler whose call is cancelled sees it in [`RequestContext::cancelled`]. It is dropped at an `.await` after
//!   [`Limits::cancel_grace`], and nothing more is sent for its request.
//! - [`Client::connect`] closes the connection in the background, and ends the process where it started one.
//! - [`Server::run`] closes its session in the background; [`ServerSession::wait`] and [`ClientSession::wait`] only stop waiting.
//! - `close` goes on without you. A client's session closes with its last handle, too.
//!
//! Methods that differ say so.
//!
//! # Errors
//!
//! There is one [`Error`]. It is opaque and answers questions: its [`code`](Error::code), whether it is a
//! [timeout](Error::is_timeout), whether the connection is [closed](Error::is_closed), and so on. What a handler returns as an
//! `Error` is what the caller gets: code, message and data. A tool that fails is no such error, but a result that the model
//! reads; that is what [`ToolError`] makes.
//!
//! A panic in a handler fails its call and is logged; the session lives. Logs are events of [`tracing`].
//!
//! # Features and versions
//!
//! There are ten Cargo features. `client`, which includes [`Command`], and `server` are on by default; a program that is one of
//! them alone builds faster with `default-features = false` and that one. Not on by default are `http-server` and `http-client`, for
//! the two sides of `http`, which include their role; `tasks`, for calls that take long, which `http-server` includes; `auth`, for
//! logins and access tokens; `keyring`, for those that a keyring of the system protects; and `tracing-subscriber`, for the layer in
//! [`logging`]. `ring`, on by default, and `aws-lc-rs` choose the cryptography of TLS for `http-client`. [`testing::connect`] needs both
//! roles.
//!
//! The least Rust version is 1.88, and a newer one is a minor release; so is a new revision of the protocol, for which structs and
//! enums are `#[non_exhaustive]`. The crate runs on [tokio], which must have its timer and, for processes and sockets, its I/O
//! enabled.
//!
//! [tokio]: https://tokio.rs

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
#[cfg_attr(
    not(feature = "tasks"),
    expect(dead_code, reason = "tasks alone use all of it")
)]
mod client;
mod debug;
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "one role alone does not use all that both share")
)]
mod error;
#[cfg_attr(
    not(all(feature = "client", feature = "server", feature = "tasks")),
    expect(
        dead_code,
        reason = "one role alone does not use all that both share, and tasks alone use all of it"
    )
)]
pub mod extension;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod http;
mod limits;
mod logged;
pub mod protocol {
    //! Types of the protocol, under the specification's names: those of the crate `oxmcp-protocol`.
    //!
    //! Types hold the members of all revisions at once; their docs say which revisions have which. What is sent is made
    //! to fit the peer's revision on its way out, so nothing else has to care.
    //!
    //! Structs are open for members that later revisions add, and enums for variants: make them by their constructors,
    //! and set what else there is to set.
    //!
    //! Four names are here and at the crate's root: `Tool`, `Prompt`, `Resource` and `ResourceTemplate`. Here they are what a list
    //! shows to a client, data that can be written and read. At the root they are what a server is given, with the functions that do
    //! the work; what is here they make of themselves.
    //!
    //! ```
    //! use oxmcp::protocol::{Tool, ToolAnnotations};
    //!
    //! let mut tool = Tool::new("add", serde_json::json!({"type": "object"}))
    //!     .with_description("Add two numbers")
    //!     .with_annotations(ToolAnnotations::default().with_read_only_hint(true));
    //! tool.meta.insert("com.example/cost", 3);
    //! ```

    #[doc(inline)]
    pub use oxmcp_protocol::{Revision, TemplateError, method, revision, types::*};
}
#[cfg(feature = "server")]
#[cfg_attr(
    not(feature = "tasks"),
    expect(dead_code, unused_imports, reason = "tasks alone use all of it")
)]
mod server;
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "one role alone does not use all that both share")
)]
mod session;
#[cfg(feature = "http-server")]
pub mod store;
mod sync;
#[cfg(all(feature = "tasks", any(feature = "client", feature = "server")))]
pub mod tasks;
pub mod testing;
pub mod transport;

#[cfg(feature = "client")]
pub use client::{
    Accept, Answer, CacheMode, CacheOptions, Call, CallOutcome, Client, ClientSession, FeatureKind,
    Listen, Listing, ResourceWatch, Subscription, SubscriptionEnd, SubscriptionEvent,
};
pub use error::{Error, Result};
pub use extension::Extension;
pub use limits::{ClientLimits, HttpLimits, Limits};
/// Authorization as pure steps: the crate `oxmcp-auth`.
#[cfg(feature = "auth")]
pub use oxmcp_auth as auth;
pub use oxmcp_macros::JsonSchema;
pub use oxmcp_protocol::{ErrorCode, ErrorObject, RequestId, Revision};
pub use oxmcp_schema::{
    Schema, SchemaError, SchemaOptions, Violation, Violations, internal::JsonSchema,
};
#[cfg(feature = "server")]
pub use server::{
    ArgumentOptions, Asked, Completer, Completing, DetachableCall, FileResources, OrToolError,
    Prompt, Question, Reply, Resource, ResourceTemplate, Server, ServerSession, SessionCall,
    Structured, StructuredContent, TemplateVariables, Tool, ToolCall, ToolError, ToolResponse,
    WeakServer, Wrapped, file_resources, logging, prompt, resource, tool,
};
#[cfg(feature = "http-server")]
pub use session::SharedKeys;
#[cfg(any(feature = "server", feature = "auth"))]
pub use session::StateKey;
#[cfg(feature = "server")]
pub use session::StoreKeys;
pub use session::{
    Progress, ReportProgress, RequestContext, StateScope, middleware, trace, with_state,
};
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "client")]
pub use transport::Command;
pub use transport::{Principal, in_memory, stdio};

pub mod traits {
    //! The traits of what is given to the SDK: they say what is allowed, and programs rarely name them.
    //!
    //! The types of Rust implement them. A page here is where a function's bound leads to, and says what can stand there.
    //!
    //! | | |
    //! |---|---|
    //! | [`Handler`], [`HandlerFuture`], [`HandlerContext`] | functions that can be handlers |
    //! | [`StateArguments`], [`SharedAs`], [`OfState`] | handlers that share a state |
    //! | [`ToolArguments`], [`ToolInput`], [`IntoToolResult`], [`IntoToolError`] | what tools take, return and fail with |
    //! | [`PromptArguments`], [`PromptInput`], [`IntoPromptResult`] | what prompts take and return |
    //! | [`ResourceArguments`], [`TemplateArguments`], [`TemplateInput`], [`IntoResourceResult`] | what resources and templates take and return |
    //! | [`IntoCompleter`], [`CompleterArguments`], [`IntoCompletion`] | what completes, takes and returns |
    //! | [`AnswerArguments`], [`IntoElicitResult`], [`IntoCreateMessageResult`] | what the handlers of clients take and return |
    //! | [`IntoError`] | what handlers that are none of tools fail with |
    //! | [`IntoPromptArguments`], [`IntoSchema`], [`ProgressAmount`] | what calls take |
    //! | [`Questions`] | several questions that are asked at once |
    //! | [`DetachedWork`] | what takes over when a call was answered before its handler ended |

    #[cfg(feature = "client")]
    pub use crate::client::{
        AnswerArguments, IntoCreateMessageResult, IntoElicitResult, IntoPromptArguments,
    };
    #[cfg(feature = "server")]
    pub use crate::server::{
        CompleterArguments, IntoCompleter, IntoCompletion, IntoPromptResult, IntoResourceResult,
        IntoToolError, IntoToolResult, PromptArguments, PromptInput, Questions, ResourceArguments,
        TemplateArguments, TemplateInput, ToolArguments, ToolInput,
    };
    pub use crate::session::{
        DetachedAnswer, DetachedProgress, DetachedStep, DetachedStepEnd, DetachedWork, Handler,
        HandlerContext, HandlerFuture, IntoError, OfState, ProgressAmount, SharedAs,
        StateArguments,
    };
    #[doc(inline)]
    pub use oxmcp_schema::IntoSchema;
}

// So that derived code finds the crate from within it, too.
extern crate self as oxmcp;

/// What derived code needs. Not for use by hand: it can change with any release.
#[doc(hidden)]
pub mod __private {
    pub use oxmcp_schema::__private::*;
    pub use serde;
}

/// The code in the README is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

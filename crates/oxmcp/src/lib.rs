//! The [Model Context Protocol](https://modelcontextprotocol.io) (MCP) for Rust: servers that offer tools to language models,
//! and clients that use them.
//!
//! A server is written once and serves clients of every revision of the protocol, several of them on one connection if needed.
//! A client detects the revisions of a server automatically. Nothing has to be configured, but everything can be.
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
//! The attributes [`tool`](macro@tool), [`prompt`](macro@prompt) and [`resource`](macro@resource) generate code that can also
//! be written by hand: a struct of the arguments, and a call of [`Tool::new`]. A handler is an async function of its input, or
//! of a [`RequestContext`] and its input; see [`Handler`](traits::Handler). The types that it may return are listed at
//! [`IntoToolResult`](traits::IntoToolResult), and its errors at [`ToolError`]. State that handlers share is a parameter with
//! `#[state]`, which [`Server::state`] passes to all handlers that take it.
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
//! A [`Call`] can be awaited directly, or first be given a timeout, a function for its progress, or a cancellation token.
//!
//! # Overview
//!
//! | | |
//! |---|---|
//! | [`Server`], [`ServerSession`], [`Tool`], [`Prompt`], [`Resource`], [`ResourceTemplate`] | servers and their features |
//! | [`tool`](macro@tool), [`prompt`](macro@prompt), [`resource`](macro@resource) | the attributes that make these of functions |
//! | [`Completer`] | completion of the arguments of prompts and templates while they are typed |
//! | [`Client`], [`ClientSession`], [`Call`], [`Listing`], [`Subscription`], [`ResourceWatch`] | clients and their requests |
//! | [`CacheOptions`], [`CacheMode`] | the cache of a client |
//! | [`RequestContext`], [`Principal`] | the context of a request in a handler: progress, cancellation, the caller |
//! | [`RequestContext::ask`], [`Question`], [`Reply`], [`StateKey`] | elicitation, sampling and roots during a request |
//! | [`logging`] | log messages for the user of the client |
//! | [`JsonSchema`], [`Schema`], [`SchemaOptions`] | schemas: inferred, customised, or written by hand |
//! | [`transport`] | [`stdio()`], [`Command`], [`in_memory`], byte streams, and custom transports |
//! | `http`, with the features `http-server` and `http-client` | an endpoint for every revision under one URL, and its clients |
//! | `auth`, with the feature of that name | the steps of authorization: clients, keys, issuers, scopes, challenges |
//! | `store`, with the feature `http-server` | state that outlives a connection or a process: events, sessions |
//! | `tasks`, with the feature of that name | calls that run on after they were answered with a task |
//! | [`extension`], [`Extension`] | methods, notifications and settings beyond the protocol |
//! | [`middleware`] | layers around incoming and outgoing requests and notifications |
//! | [`trace`] | spans of requests, and traces that continue on the other side |
//! | [`testing`] | client and server in one process, and a scripted peer |
//! | [`protocol`] | the types of the protocol: clients read [`protocol::Tool`], and servers are given [`Tool`] |
//! | [`traits`] | the traits of arguments and results of handlers, and other bounds that are rarely named |
//! | [`Limits`] | the bounds on everything that a peer can make grow |
//!
//! # Revisions
//!
//! [`Revision`] lists the revisions. The first four open a session with `initialize`; the last is stateless, and every request
//! is self-contained. Types hold the members of all revisions, and messages are adapted to the revision of the peer. If the
//! server's revision lacks a method, a client fails with [`Error::is_unsupported`], and sends nothing. [`Server::revisions`]
//! and [`Client::revisions`] restrict the revisions that are used.
//!
//! # Cancel safety
//!
//! Dropping a future cancels its operation, with these effects on the wire:
//!
//! - A [`Call`] that was sent and has no response yet is cancelled: the server gets `notifications/cancelled`, and a response
//!   that still arrives is ignored. Its timeout and its token have the same effect. Only `initialize` is never cancelled, as
//!   the specification says.
//! - A handler whose call is cancelled is notified by [`RequestContext::cancelled`]. It is dropped at an `.await` after
//!   [`Limits::cancel_grace`], and nothing more is sent for its request. The [middleware](middleware#the-end-of-a-request) hears
//!   it.
//! - [`Client::connect`] closes the connection in the background, and ends the process if it started one.
//! - [`Server::run`] closes its session in the background; [`ServerSession::wait`] and [`ClientSession::wait`] only stop waiting.
//! - `close` continues in the background. A client's session closes with its last handle, too.
//!
//! Exceptions are documented at the methods.
//!
//! # Errors
//!
//! There is one [`Error`] type. It is opaque, with methods to examine it: its [`code`](Error::code), whether it is a
//! [timeout](Error::is_timeout), whether the connection is [closed](Error::is_closed), and so on. An `Error` that a handler
//! returns is sent to the caller: code, message and data. The failure of a tool is not such an error, but a result that the
//! model reads; [`ToolError`] creates it.
//!
//! A panic in a handler fails its call and is logged; the session continues. Logs are events of [`tracing`].
//!
//! # Features and versions
//!
//! There are ten Cargo features. `client`, which includes [`Command`], and `server` are on by default; a program with only one
//! of the two roles builds faster with `default-features = false` and that feature. Not on by default are `http-server` and
//! `http-client`, for the two sides of `http`, which include their role; `tasks`, for calls that take long, which `http-server`
//! includes; `auth`, for logins and access tokens; `keyring`, for tokens in a keyring of the system; and `tracing-subscriber`,
//! for the layer in [`logging`]. `ring`, on by default, and `aws-lc-rs` choose the cryptography of TLS for `http-client`.
//! [`testing::connect`] needs both roles.
//!
//! The minimum supported Rust version is 1.88. Raising it is a minor release, and so is support for a new revision of the
//! protocol, for which structs and enums are `#[non_exhaustive]`. The crate runs on [tokio], which must have its timer and, for
//! processes and sockets, its I/O enabled.
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
// Only documentation. `oxmcp-tests` compiles and runs the code in it.
#[cfg(all(doc, not(doctest)))]
#[path = "../guide/mod.rs"]
pub mod guide;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod http;
mod limits;
mod logged;
pub mod protocol {
    //! Types of the protocol, under the specification's names: those of the crate `oxmcp-protocol`.
    //!
    //! Types hold the members of all revisions at once; their docs say which revisions have which. Messages are adapted to the
    //! peer's revision when they are sent, so other code does not depend on the revision.
    //!
    //! Structs and enums are open for members and variants of later revisions: create structs by their constructors, and set
    //! other members afterwards.
    //!
    //! Four names exist both here and at the crate's root: `Tool`, `Prompt`, `Resource` and `ResourceTemplate`. Those here are
    //! the entries of lists that clients read, plain data that can be serialized and deserialized. Those at the root are given
    //! to servers, and include the functions that do the work; they contain the types here.
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
    ArgumentOptions, Asked, Completer, Completing, DetachableCall, FileResources, Finding,
    OrToolError, Prompt, Question, Reply, Resource, ResourceTemplate, Server, ServerSession,
    SessionCall, Structured, StructuredContent, TemplateVariables, Tool, ToolCall, ToolError,
    ToolResponse, WeakServer, Wrapped, file_resources, logging, prompt, resource, tool,
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
    //! The traits of the types that are passed to the SDK: they are bounds of its functions, and programs rarely name them.
    //!
    //! They are implemented for common Rust types. The page of a trait lists the types that satisfy a bound with it.
    //!
    //! | | |
    //! |---|---|
    //! | [`Handler`], [`HandlerFuture`], [`HandlerContext`] | functions that can be handlers |
    //! | [`StateArguments`], [`SharedAs`], [`OfState`] | handlers that share a state |
    //! | [`IntoFeature`] | tools, prompts, resources and templates that are added to a server |
    //! | [`ToolArguments`], [`ToolInput`], [`IntoToolResult`], [`IntoToolError`] | arguments, results and errors of tools |
    //! | [`PromptArguments`], [`PromptInput`], [`IntoPromptResult`] | arguments and results of prompts |
    //! | [`ResourceArguments`], [`TemplateArguments`], [`TemplateInput`], [`IntoResourceResult`] | those of resources |
    //! | [`IntoCompleter`], [`CompleterArguments`], [`IntoCompletion`] | completers, their arguments and results |
    //! | [`AnswerArguments`], [`IntoElicitResult`], [`IntoCreateMessageResult`] | those of clients' handlers |
    //! | [`IntoError`] | errors of handlers other than those of tools |
    //! | [`IntoPromptArguments`], [`IntoSchema`], [`ProgressAmount`] | arguments of calls |
    //! | [`Questions`] | several questions that are asked together |
    //! | [`DetachedWork`] | work to which a handler belongs after its call was answered |

    #[cfg(feature = "client")]
    pub use crate::client::{
        AnswerArguments, IntoCreateMessageResult, IntoElicitResult, IntoPromptArguments,
    };
    #[cfg(feature = "server")]
    pub use crate::server::{
        CompleterArguments, IntoCompleter, IntoCompletion, IntoFeature, IntoPromptResult,
        IntoResourceResult, IntoToolError, IntoToolResult, PromptArguments, PromptInput, Questions,
        ResourceArguments, TemplateArguments, TemplateInput, ToolArguments, ToolInput,
    };
    pub use crate::session::{
        DetachedAnswer, DetachedProgress, DetachedStep, DetachedStepEnd, DetachedWork, Handler,
        HandlerContext, HandlerFuture, IntoError, OfState, ProgressAmount, SharedAs,
        StateArguments,
    };
    #[doc(inline)]
    pub use oxmcp_schema::IntoSchema;
}

// Derived code refers to the crate by this name, also within it.
extern crate self as oxmcp;

/// Items for derived code. Not for use by hand: they can change with any release.
#[doc(hidden)]
pub mod __private {
    pub use oxmcp_schema::__private::*;
    pub use serde;
}

/// The code in the README is tested as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

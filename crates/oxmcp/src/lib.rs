//! The [Model Context Protocol](https://modelcontextprotocol.io) (MCP) for Rust: servers that offer tools to language models,
//! and clients that use them.
//!
//! You write a server once, and it serves clients of every protocol revision, several of them on one connection if needed. A
//! client detects the revisions of a server automatically. Nothing has to be configured, but everything can be.
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
//! The attributes [`tool`](macro@tool), [`prompt`](macro@prompt) and [`resource`](macro@resource) generate code that you can
//! also write by hand: a struct for the arguments, and a call of [`Tool::new`]. A handler is an async function of its input, or
//! of a [`RequestContext`] and its input; see [`Handler`](traits::Handler). [`IntoToolResult`](traits::IntoToolResult) lists
//! the types that it may return, and [`ToolError`] its errors. Shared state is a parameter marked `#[state]`, which
//! [`Server::state`] passes to all handlers that take it.
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
//! Await a [`Call`] directly, or first set a timeout, a progress callback, or a cancellation token.
//!
//! # Overview
//!
//! | | |
//! |---|---|
//! | [`Server`], [`ServerSession`], [`Tool`], [`Prompt`], [`Resource`], [`ResourceTemplate`] | servers and their features |
//! | [`tool`](macro@tool), [`prompt`](macro@prompt), [`resource`](macro@resource) | the attributes that turn functions into these |
//! | [`Completer`] | completion of arguments of prompts and templates while the user types |
//! | [`Client`], [`ClientSession`], [`Call`], [`Listing`], [`Subscription`], [`ResourceWatch`] | clients and their requests |
//! | [`CacheOptions`], [`CacheMode`] | the cache of a client |
//! | [`ListingOmission`], [`ToleratedDeviation`] | the tolerated deviations of a server from the specification |
//! | [`RequestContext`], [`Principal`] | the context of a request: progress, cancellation, the caller |
//! | [`RequestContext::ask`], [`Question`], [`Reply`] | elicitation, sampling and roots during a request |
//! | [`keys`] | the keys that encrypt what leaves the process: the state of such requests, logins, and stored data |
//! | [`logging`] | log messages for the user of the client |
//! | [`JsonSchema`], [`Schema`], [`SchemaOptions`] | schemas: inferred, customized, or written by hand |
//! | [`transport`] | [`stdio()`], [`Command`], [`in_memory`], byte streams, and custom transports |
//! | `http`, with the features `http-server` and `http-client` | an endpoint for every revision under one URL, and its clients |
//! | `auth`, with the feature of that name | the steps of authorization: clients, keys, issuers, scopes, challenges |
//! | `store`, with the feature `http-server` | state that outlives a connection or a process: events, sessions |
//! | `tasks`, with the feature of that name | calls that outlive their response |
//! | [`extension`], [`Extension`] | methods, notifications and settings beyond the protocol |
//! | `layers`, with the feature of that name | limits on rates, concurrency, time and results, and an audit log |
//! | [`middleware`] | layers around incoming and outgoing requests and notifications |
//! | [`trace`] | spans of requests, and traces that continue on the other side |
//! | [`testing`] | client and server in one process, and a scripted peer |
//! | [`protocol`] | the types of the protocol: clients read [`protocol::Tool`], and servers are given [`Tool`] |
//! | [`traits`] | the traits of arguments and results of handlers, and other rarely named bounds |
//! | [`Limits`] | the limits on everything that a peer can make grow |
//!
//! # Revisions
//!
//! [`Revision`] lists the revisions. The first four open a session with `initialize`; the last is stateless, and every request
//! is self-contained. Types have the members of all revisions, and messages are adapted to the peer's revision. If the server's
//! revision lacks a method, the call fails with [`Error::is_unsupported`], and nothing is sent. [`Server::revisions`] and
//! [`Client::revisions`] restrict the revisions.
//!
//! # Cancel safety
//!
//! Dropping a future cancels its operation, with these effects on the wire:
//!
//! - A [`Call`] in flight is cancelled: the server receives `notifications/cancelled`, and a late response is ignored. Its
//!   timeout and its token have the same effect. Only `initialize` is never cancelled, as the specification requires.
//! - A handler whose call is cancelled is notified by [`RequestContext::cancelled`]. After [`Limits::cancel_grace`] it is
//!   dropped at its next `.await`, and nothing more is sent for its request. The [middleware](middleware#the-end-of-a-request)
//!   is notified.
//! - [`Client::connect`] closes the connection in the background, and ends the process that it started, if any.
//! - [`Server::run`] closes its session in the background; [`ServerSession::wait`] and [`ClientSession::wait`] only stop waiting.
//! - `close` continues in the background. A client's session closes with its last handle, too.
//!
//! Exceptions are documented at the methods.
//!
//! # Errors
//!
//! All operations fail with one [`Error`] type. It is opaque, with methods to examine it: its [`code`](Error::code), whether it
//! is a [timeout](Error::is_timeout), whether the connection is [closed](Error::is_closed), and so on. If a handler returns an
//! `Error`, the caller receives its code, message and data. A failed tool is different: it returns a result that the model
//! reads, which [`ToolError`] creates.
//!
//! A panic in a handler fails its call and is logged; the session continues. Logs are events of [`tracing`].
//!
//! # Features and versions
//!
//! There are twelve Cargo features. `server` is on by default; `client` includes [`Command`]. A program that is only a client
//! builds faster with `default-features = false`. `ring`, on by default, and `aws-lc-rs` choose the
//! cryptography of TLS for `http-client`. [`testing::connect`] needs both roles. The other features are off by default:
//!
//! - `http-server` and `http-client`: the two sides of `http`. Each includes its role, and `http-server` also `tasks`.
//! - `tasks`: tool calls that outlive their response.
//! - `auth`: logins and access tokens.
//! - `keyring`: tokens in the system's keyring.
//! - `layers`: limits and an audit log for servers in production.
//! - `contracts`: tests of your own stores, in [`testing`].
//! - `tracing-subscriber`: the layer in [`logging`].
//!
//! The minimum supported Rust version is 1.88. Raising it is a minor release. So is support for a new protocol revision, for
//! which structs and enums are `#[non_exhaustive]`. The crate runs on [tokio] with the timer enabled and, for processes and
//! sockets, I/O.
//!
//! [tokio]: https://tokio.rs

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
#[cfg_attr(
    not(feature = "tasks"),
    expect(dead_code, reason = "only tasks use all of it")
)]
mod client;
mod debug;
#[cfg_attr(
    not(all(feature = "client", feature = "server")),
    expect(dead_code, reason = "a single role does not use all shared code")
)]
mod error;
#[cfg_attr(
    not(all(feature = "client", feature = "server", feature = "tasks")),
    expect(
        dead_code,
        reason = "a single role does not use all shared code, and only tasks use all of it"
    )
)]
pub mod extension;
// Only documentation. `oxmcp-tests` compiles and runs the code in it.
#[cfg(all(doc, not(doctest)))]
#[path = "../guide/mod.rs"]
pub mod guide;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod http;
#[cfg(any(feature = "server", feature = "auth"))]
pub mod keys {
    //! Keys that encrypt what leaves the process.
    //!
    //! [`StateKey`] is the secret that a program sets, on a server, a login or a store. The other types derive keys from it, for
    //! authors of stores and clusters.

    #[cfg(feature = "http-server")]
    pub use crate::session::SharedKeys;
    pub use crate::session::StateKey;
    #[cfg(feature = "server")]
    pub use crate::session::StoreKeys;
}
mod limits;
mod logged;
pub mod protocol {
    //! The protocol's types, under the specification's names, from the crate `oxmcp-protocol`.
    //!
    //! Types have the members of all revisions; their docs name the revisions of each. Messages are adapted to the peer's
    //! revision when they are sent, so your code does not depend on the revision.
    //!
    //! Structs and enums may gain members and variants with later revisions: create structs with their constructors, then set
    //! other members.
    //!
    //! Four names exist both here and at the crate's root: `Tool`, `Prompt`, `Resource` and `ResourceTemplate`. The types here
    //! are plain data, the entries of lists that clients read. The types at the root are for servers: they wrap the types here
    //! and add the handlers.
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
    expect(dead_code, unused_imports, reason = "only tasks use all of it")
)]
mod server;
#[cfg_attr(
    not(all(feature = "client", feature = "server", feature = "tasks")),
    expect(
        dead_code,
        reason = "a single role does not use all shared code, and only tasks use all of it"
    )
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
    Listen, Listing, ListingOmission, ResourceWatch, Subscription, SubscriptionEnd,
    SubscriptionEvent, ToleratedDeviation,
};
pub use error::{Error, Result};
pub use extension::Extension;
pub use limits::{ClientLimits, HttpLimits, Limits};
/// Authorization without I/O: the crate `oxmcp-auth`.
#[cfg(feature = "auth")]
pub use oxmcp_auth as auth;
pub use oxmcp_macros::JsonSchema;
pub use oxmcp_protocol::{ErrorCode, ErrorObject, RequestId, Revision};
pub use oxmcp_schema::{
    Schema, SchemaError, SchemaOptions, Violation, Violations, internal::JsonSchema,
};
#[cfg(all(feature = "layers", feature = "server"))]
pub use server::layers;
#[cfg(feature = "server")]
pub use server::{
    ArgumentOptions, ArgumentTransform, Completer, CompletionInput, DetachableCall, FileResources,
    Finding, OrToolError, Prompt, Question, Reply, Resource, ResourceTemplate, SearchOptions,
    Server, ServerSession, SessionCall, StoredFile, Structured, StructuredContent,
    TemplateVariables, Tool, ToolCall, ToolError, ToolResponse, ToolTransform, UserDecision,
    WeakServer, Wrapped, file_mime_type, file_resources, logging, prompt, resource, tool,
};
pub use session::{
    Progress, ProgressReport, RequestContext, StateScope, middleware, trace, with_state,
};
pub use tokio_util::sync::CancellationToken;
#[cfg(feature = "client")]
pub use transport::Command;
pub use transport::{in_memory, principal::Principal, stdio};

pub mod traits {
    //! Traits that bound the arguments of the SDK's functions. Programs rarely name them.
    //!
    //! They are implemented for common Rust types, which the page of each trait lists.
    //!
    //! | | |
    //! |---|---|
    //! | [`Handler`], [`HandlerFuture`], [`HandlerContext`] | functions that can be handlers |
    //! | [`StateArguments`], [`SharedAs`], [`OfState`] | handlers that share a state |
    //! | [`IntoFeature`] | tools, prompts, resources and templates that are added to a server |
    //! | [`ToolArguments`], [`ToolInput`], [`IntoToolResult`], [`IntoToolError`] | arguments, results and errors of tools |
    //! | [`PromptArguments`], [`PromptInput`], [`IntoPromptResult`] | arguments and results of prompts |
    //! | [`ResourceArguments`], [`TemplateArguments`], [`TemplateInput`], [`IntoResourceResult`] | arguments and results of resources |
    //! | [`IntoCompleter`], [`CompleterArguments`], [`IntoCompletion`] | completers, their arguments and results |
    //! | [`AnswerArguments`], [`IntoElicitResult`], [`IntoCreateMessageResult`] | arguments and results of clients' handlers |
    //! | [`IntoError`] | errors of handlers other than those of tools |
    //! | [`IntoPromptArguments`], [`IntoSchema`], [`ProgressAmount`] | arguments of calls |
    //! | [`Questions`] | questions that are asked together |
    //! | [`DetachedWork`] | the work of a handler after its call was answered |

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

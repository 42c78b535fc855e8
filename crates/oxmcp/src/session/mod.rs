//! The engine of a connection, which both roles share: its driver, requests in both directions, notifications, shutdown and
//! middleware. Nothing here knows what a tool is.
//!
//! | room | |
//! |---|---|
//! | `connection.rs` | the state of a connection, and the [`Role`](connection::Role) that it needs to know |
//! | `driver/` | the event loop, the output buffer, shutdown, pings |
//! | `inbound/` | requests that the peer makes |
//! | `outbound/` | calls that this side makes |
//! | `notifications/` | ordered delivery to users' handlers, progress both ways |
//! | `handler/` | what a handler is, gets and fails with |
//! | `middleware/` | what requests and notifications pass on their way |
//! | `sealing.rs` | what travels with clients or lies in stores, and the keys that seal it |
//! | `shared_keys.rs` | the keys that all nodes of a server share |
//! | `trace/` | spans of requests in both directions, and how a trace goes on at the peer |
//! | `panics.rs`, `task.rs` | panics that are caught, and small parts of asynchronous code |
//!
//! A request over a pipe goes from `driver/event_loop.rs` to `inbound/receive.rs`, from there through the role to
//! `inbound/run.rs`, and its answer by `driver/outbox.rs` back to the event loop.

pub(crate) mod connection;
pub(crate) mod driver;
pub(crate) mod handler;
pub(crate) mod inbound;
pub mod middleware;
pub(crate) mod notifications;
pub(crate) mod outbound;
pub(crate) mod panics;
#[cfg(any(feature = "server", feature = "auth"))]
pub(crate) mod sealing;
#[cfg(feature = "http-server")]
pub(crate) mod shared_keys;
pub(crate) mod task;
pub mod trace;

pub use connection::RequestContext;
pub use handler::{
    detached::{DetachedAnswer, DetachedProgress, DetachedStep, DetachedStepEnd, DetachedWork},
    state_scope::{OfState, StateScope},
    traits::{Handler, HandlerContext, HandlerFuture, IntoError},
    with_state::{SharedAs, StateArguments, with_state},
};
pub use notifications::progress_out::{Progress, ProgressAmount, ReportProgress};
#[cfg(any(feature = "server", feature = "auth"))]
pub use sealing::StateKey;
#[cfg(feature = "server")]
pub use sealing::StoreKeys;
#[cfg(feature = "http-server")]
pub use shared_keys::SharedKeys;

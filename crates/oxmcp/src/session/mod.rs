//! The engine of a connection, shared by both roles: its driver, requests in both directions, notifications, shutdown and
//! middleware. It is independent of tools, prompts and resources.
//!
//! A request over a pipe goes from `driver/event_loop.rs` to `inbound/receive.rs`, from there through the role to
//! `inbound/run.rs`, and its answer through `driver/outbox.rs` back to the event loop.

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
pub(crate) mod tolerance;
pub mod trace;

pub use connection::RequestContext;
pub use handler::{
    detached::{DetachedAnswer, DetachedProgress, DetachedStep, DetachedStepEnd, DetachedWork},
    state_scope::{OfState, StateScope},
    traits::{Handler, HandlerContext, HandlerFuture, IntoError},
    with_state::{SharedAs, StateArguments, with_state},
};
pub use notifications::progress_out::{Progress, ProgressAmount, ProgressReport};
#[cfg(any(feature = "server", feature = "auth"))]
pub use sealing::StateKey;
#[cfg(feature = "server")]
pub use sealing::StoreKeys;
#[cfg(feature = "http-server")]
pub use shared_keys::SharedKeys;

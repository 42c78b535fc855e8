//! The engine of a connection, which both roles share: its driver, requests in both directions, notifications, shutdown and
//! middleware. Nothing here knows what a tool is.
//!
//! | room | |
//! |---|---|
//! | `connection.rs` | the state of a connection, and the [`Role`] that it needs to know |
//! | `driver/` | the event loop, the output buffer, shutdown, pings |
//! | `inbound/` | requests that the peer makes |
//! | `outbound/` | calls that this side makes |
//! | `notifications/` | ordered delivery to users' handlers, progress both ways |
//! | `handler/` | what a handler is, gets and fails with |
//! | `middleware/` | what requests and notifications pass on their way |
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
pub(crate) mod task;

pub use connection::RequestContext;
pub use handler::{
    traits::{Handler, HandlerContext, HandlerFuture, IntoError},
    with_state::{SharedAs, StateArguments, with_state},
};
pub use notifications::progress_out::{Progress, ProgressAmount, ReportProgress};

// old names
pub(crate) use connection::{Arrival, Connection, ContextParts, Origin, Outcome, Peer, Role, Side};
#[cfg(feature = "http-server")]
pub(crate) use driver::undriven::{Attached as Hearing, Last, Reply};
pub(crate) use driver::{event_loop::drive, keep_alive::keep_alive};
pub(crate) use handler::traits as failure;
#[cfg(feature = "http-client")]
pub(crate) use handler::traits::with_causes;
pub(crate) use inbound::{
    body::{Body, Encode, Line},
    inline_execution::InlineExecution as Pace,
    run::{Work, respond_inline as respond_now, run as serve, run_question as attend},
};
pub(crate) use notifications::queue::{BoundedQueue as Bounded, NotificationQueue as Lane};
pub(crate) use outbound::{
    call::{ContinuationGuard as GoingOn, DeadlinePause as Asking},
    calls::{CallResult, own_id},
    options::{CallOptions, OnProgress, shared_progress},
};
pub(crate) use panics::catch_panic as guarded;
#[cfg(feature = "http-server")]
pub(crate) use task::Latch as CancelSignal;
pub(crate) use task::{BoxFuture, after};
pub(crate) type IdleWait<'a> = inbound::in_flight::IdleWait<'a, ContextParts>;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub(crate) mod waiting {
    pub(crate) use super::task::store_waker as note;
}

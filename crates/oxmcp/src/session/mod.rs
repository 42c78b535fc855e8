//! The driver of a connection, and what both roles share above it: dispatch, calls in flight, cancellation, progress,
//! timeouts, shutdown and middleware. Nothing here knows what a tool is.

mod connection;
pub(crate) mod driver;
pub(crate) mod handler;
pub(crate) mod inbound;
pub mod middleware;
pub(crate) mod notifications;
pub(crate) mod outbound;
pub(crate) mod panics;
mod role;
mod task;
pub(crate) mod waiting;

use driver::{outbox, pump, room, turn};
pub(crate) use handler::error as failure;
use inbound::{backlog, batch, in_flight as inflight};
use notifications::queue as lane;
use notifications::{progress_in as progress_queue, progress_tokens as wanted};
use outbound::{answers, call_result, call_table, calls, clock, patience, pending, plain_call};
use task as cancel;

use std::{future::Future, pin::Pin};

pub(crate) use connection::{Connection, Origin, Outcome};
pub(crate) use driver::event_loop::drive;
pub(crate) use driver::keep_alive::keep_alive;
#[cfg(feature = "http-server")]
pub(crate) use driver::undriven::{Hearing, Last, Reply};
pub use handler::context::RequestContext;
pub(crate) use handler::context::{ContextParts, Peer};
pub use handler::error::IntoError;
#[cfg(feature = "http-client")]
pub(crate) use handler::error::with_causes;
pub use handler::traits::{Handler, HandlerContext, HandlerFuture};
pub use handler::with_state::{SharedAs, StateArguments, with_state};
pub(crate) use inbound::batch::Batch;
pub(crate) use inbound::body::{Body, Encode, Line};
pub(crate) use inbound::in_flight::IdleWait;
pub(crate) use inbound::inline_execution::Pace;
pub(crate) use inbound::run::{Work, attend, guarded, respond_now, serve};
pub(crate) use notifications::bounded::Bounded;
pub use notifications::progress_out::{Progress, ProgressAmount, ReportProgress};
pub(crate) use notifications::queue::Lane;
pub(crate) use outbound::call_result::CallResult;
pub(crate) use outbound::calls::own_id;
pub(crate) use outbound::deadline::after;
pub(crate) use outbound::going_on::GoingOn;
pub(crate) use outbound::options::{CallOptions, OnProgress, shared_progress};
pub(crate) use outbound::patience::Asking;
pub(crate) use outbound::pending::Outgoing;
pub(crate) use outbound::plain_call::PlainCall;
pub(crate) use role::{Arrival, Role, Side};
#[cfg(feature = "http-server")]
pub(crate) use task::CancelSignal;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

//! The driver of a connection, and what both roles share above it: dispatch, calls in flight, cancellation, progress,
//! timeouts, shutdown and middleware. Nothing here knows what a tool is.

mod answers;
mod backlog;
mod batch;
mod body;
mod bounded;
mod call;
mod call_options;
mod call_result;
mod call_table;
mod calls;
mod cancel;
mod clock;
mod connection;
mod context;
mod deadline;
mod driver;
pub(crate) mod failure;
mod going_on;
pub(crate) mod handler;
mod inflight;
mod keep_alive;
mod lane;
pub mod middleware;
mod outbox;
mod pace;
pub(crate) mod panics;
mod patience;
mod pending;
mod plain_call;
mod progress;
mod progress_queue;
mod pump;
mod receive;
#[cfg(feature = "http-server")]
mod reply;
mod role;
mod room;
mod serve;
mod tell;
mod turn;
pub(crate) mod waiting;
mod wanted;
mod with_state;

use std::{future::Future, pin::Pin};

pub(crate) use batch::Batch;
pub(crate) use body::{Body, Encode, Line};
pub(crate) use bounded::Bounded;
pub(crate) use call_options::{CallOptions, OnProgress, shared_progress};
pub(crate) use call_result::CallResult;
pub(crate) use calls::own_id;
#[cfg(feature = "http-server")]
pub(crate) use cancel::CancelSignal;
pub(crate) use connection::{Connection, Origin, Outcome};
pub use context::RequestContext;
pub(crate) use context::{ContextParts, Peer};
pub(crate) use deadline::after;
pub(crate) use driver::drive;
pub use failure::IntoError;
#[cfg(feature = "http-client")]
pub(crate) use failure::with_causes;
pub(crate) use going_on::GoingOn;
pub use handler::{Handler, HandlerContext, HandlerFuture};
pub(crate) use inflight::IdleWait;
pub(crate) use keep_alive::keep_alive;
pub(crate) use lane::Lane;
pub(crate) use pace::Pace;
pub(crate) use patience::Asking;
pub(crate) use pending::Outgoing;
pub(crate) use plain_call::PlainCall;
pub use progress::{Progress, ProgressAmount, ReportProgress};
#[cfg(feature = "http-server")]
pub(crate) use reply::{Hearing, Last, Reply};
pub(crate) use role::{Arrival, Role, Side};
pub(crate) use serve::{Work, attend, guarded, respond_now, serve};
pub use with_state::{SharedAs, StateArguments, with_state};

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

//! Requests and notifications of the peer, from the message to the answer.
//!
//! | file | |
//! |---|---|
//! | `receive.rs` | messages are parsed and dispatched; malformed ones are refused |
//! | `backlog.rs` | messages that wait while too much is unsent |
//! | `batch.rs` | batches of 2025-03-26 |
//! | `in_flight.rs` | the requests being served: admission, duplicate ids, cancellation |
//! | `run.rs` | the handler runs, inline or on a task, and its answer is written |
//! | `inline_execution.rs` | the choice between the two |
//! | `watchdog.rs` | handlers that block their thread are named, and do not keep a process |
//! | `body.rs` | the result, before it is serialized |

pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod in_flight;
pub(crate) mod inline_execution;
pub(crate) mod receive;
pub(crate) mod run;
#[cfg(feature = "server")]
pub(crate) mod watchdog;

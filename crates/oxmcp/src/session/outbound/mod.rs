//! Calls of this side, from the options to the answer.
//!
//! | file | |
//! |---|---|
//! | `call.rs` | sending a call, waiting for its answer, cancelling it |
//! | `options.rs` | timeouts, progress, cancellation, metadata |
//! | `calls.rs` | the table of pending calls, their answers and alarms |
//! | `deadline.rs` | the deadline of a call, and the events that put it off |

pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod deadline;
pub(crate) mod options;

//! Calls of this side, from the options to the answer.
//!
//! | file | |
//! |---|---|
//! | `call.rs` | a call is sent, waited for, cancelled |
//! | `options.rs` | time-outs, progress, cancellation, metadata |
//! | `calls.rs` | the table of the calls that wait, their answers and alarms |
//! | `deadline.rs` | how long a call may take, and what puts that off |

pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod deadline;
pub(crate) mod options;

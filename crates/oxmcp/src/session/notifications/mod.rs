//! Notifications in both directions.
//!
//! | file | |
//! |---|---|
//! | `queue.rs` | in: the users' handlers, one at a time, in order |
//! | `progress_in.rs` | in: the progress of a call of this side |
//! | `progress_out.rs` | out: the progress of a request that is served |
//! | `progress_rate.rs` | out: the rate of the reports of progress |
//! | `progress_tokens.rs` | out: the requests whose senders want progress |
//! | `of_request.rs` | out: other notifications that belong to a request |

pub(crate) mod of_request;
pub(crate) mod progress_in;
pub(crate) mod progress_out;
pub(crate) mod progress_rate;
pub(crate) mod progress_tokens;
pub(crate) mod queue;

//! Requests to servers, from the method of the session to the typed result.
//!
//! | | |
//! |-|-|
//! | `operations.rs` | a method of [`ClientSession`](super::ClientSession) for each request |
//! | `call.rs` | [`Call`](super::Call), the builder of a call and its future |
//! | `call_driver.rs` | the driver that makes the calls of tools if the response may not be the result yet |
//! | `call_request.rs` | the request of a call: made once, made again, classified by its response |
//! | `multi_round_trip.rs` | input that servers ask for within a result: given by handlers, or by the caller |
//! | `results.rs` | results as typed values |
//! | `output_schemas.rs` | the schemas against which results are validated |
//! | `task_support.rs` | the tools that run as tasks, in 2025-11-25 |
//! | `listing.rs` | all pages of a list |
//! | `header_mirroring.rs`, `log_level.rs` | the HTTP headers and the log level that are sent with a request |

pub(crate) mod call;
pub(crate) mod call_driver;
pub(crate) mod call_request;
pub(super) mod header_mirroring;
pub(super) mod listing;
mod log_level;
pub(crate) mod multi_round_trip;
pub(super) mod operations;
pub(crate) mod output_schemas;
pub(crate) mod results;
pub(crate) mod task_support;

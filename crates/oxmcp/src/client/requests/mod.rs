//! Requests to servers, from the method of the session to the typed result.

pub(crate) mod call;
pub(crate) mod call_answer;
pub(crate) mod call_driver;
pub(crate) mod call_request;
pub(crate) mod header_mirroring;
pub(crate) mod left_out;
pub(crate) mod listing;
mod log_level;
pub(crate) mod multi_round_trip;
pub(crate) mod operations;
pub(crate) mod output_schemas;
pub(crate) mod results;
pub(crate) mod task_support;

//! Requests to servers.

pub(super) mod call;
pub(super) mod exchange;
mod extension;
pub(super) mod header_mirroring;
pub(super) mod listing;
pub(super) mod log_level;
pub(super) mod manual_rounds;
pub(super) mod multi_round_trip;
pub(super) mod operations;
pub(super) mod results;
pub(super) mod sending;
mod structured;

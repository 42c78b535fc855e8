//! The client's cache of what servers say stays fresh.

pub(crate) mod freshness;
mod sharing;

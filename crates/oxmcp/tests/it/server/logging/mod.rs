//! Log messages to clients: levels, order, rates, and events of `tracing`.

pub(crate) mod messages;
mod outside_requests;
mod rate;
#[cfg(feature = "tracing-subscriber")]
mod tracing_layer;

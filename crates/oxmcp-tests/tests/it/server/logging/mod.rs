//! Log messages to clients: levels, order, rates, and events of `tracing`.

pub(crate) mod messages;
#[cfg(feature = "tracing-subscriber")]
mod tracing_layer;

//! Log messages to clients: `messages` (levels, order, rates), and `tracing_layer` (events of `tracing`).

pub(crate) mod messages;
#[cfg(feature = "tracing-subscriber")]
mod tracing_layer;

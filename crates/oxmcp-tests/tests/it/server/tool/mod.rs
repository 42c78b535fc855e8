//! Tools: lists, handlers, validation.

mod handlers;
mod listing;
mod mended_arguments;
mod refused_values;
#[cfg(all(feature = "http-client", feature = "http-server"))]
mod search;
mod transform;
mod validation;

//! Tools: lists, handlers, validation.

mod handlers;
mod listing;
mod mended_arguments;
mod refused_values;
mod validation;

//! Tools: lists, handlers, validation.

mod handlers;
mod listing;
mod validation;

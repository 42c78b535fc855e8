//! The tests of the crate as its users see it, in one binary.

mod schema_explicit;
mod schema_inference;
mod schema_messages;
mod schema_options;
mod transport;
mod ui;

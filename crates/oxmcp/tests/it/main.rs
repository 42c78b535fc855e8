//! The tests of the crate as its users see it, in one binary.

mod transport;
//! The integration tests of the crate, in one binary: a module per theme.
mod schema_explicit;
mod schema_inference;
mod schema_messages;
mod schema_options;
mod ui;

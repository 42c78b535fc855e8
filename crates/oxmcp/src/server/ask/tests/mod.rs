//! Tests of the parts that decide and do nothing.

mod form;
mod state;

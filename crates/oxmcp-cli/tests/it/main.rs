//! Tests of the command, as scripts and hosts run it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot run fails"
)]

mod bridge;
mod check;
mod commands;
mod install;
mod project;
mod support;
mod transcript;
mod ui;

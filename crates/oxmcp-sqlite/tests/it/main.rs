//! Tests of the SQLite stores, each with its own file.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod endpoint;
mod events;
mod left_tasks;
mod place;
mod sessions;
mod tasks;
mod writer;

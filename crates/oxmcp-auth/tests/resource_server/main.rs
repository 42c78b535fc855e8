//! Tests of the resource server's side.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests; clippy excuses only functions with #[test]"
)]

mod introspection;
mod requests;
mod support;
mod verification;
